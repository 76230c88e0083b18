//! What a run that was killed left behind is taken away before another begins.

use std::path::{Path, PathBuf};

use vmdisk_bench_runner::host_changes::{self, TakenBack};
use vmdisk_bench_runner::safety;

use crate::io::Io;
use crate::sanitize;

/// Sets back what runs changed on the host, removes their images, and says what it did.
pub(super) fn recover(directories: &[PathBuf], io: &mut Io<'_>) {
    let TakenBack { done, failed } =
        host_changes::take_back_left_over(Path::new(host_changes::FOLDER));
    for what in done {
        say(io, &format!("taken back of a run that was killed: {what}"));
    }
    for what in failed {
        say(
            io,
            &format!("not taken back of a run that was killed: {what}"),
        );
    }
    for directory in directories {
        for path in safety::clear_left_over(directory) {
            say(
                io,
                &format!("removed of a run that was killed: {}", path.display()),
            );
        }
    }
}

fn say(io: &mut Io<'_>, text: &str) {
    io.say(&format!("{}\n", sanitize::line(text)));
}
