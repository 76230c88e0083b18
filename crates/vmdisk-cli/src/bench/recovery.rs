//! Cleanup of leftovers of killed runs before another run begins.

use std::path::{Path, PathBuf};

use vmdisk_bench_runner::host_changes::{self, RevertOutcome};
use vmdisk_bench_runner::safety;

use crate::io::Io;
use crate::sanitize;

/// Reverts changes of killed runs to the host, and reports them.
pub(super) fn revert_changes(io: &mut Io<'_>) {
    let RevertOutcome { done, failed } =
        host_changes::revert_left_over(Path::new(host_changes::FOLDER));
    for what in done {
        say(io, &format!("reverted a change of a killed run: {what}"));
    }
    for what in failed {
        say(
            io,
            &format!("could not revert a change of a killed run: {what}"),
        );
    }
}

/// Removes the images of killed runs in directories, and reports them.
pub(super) fn remove_images(directories: &[PathBuf], io: &mut Io<'_>) {
    for directory in directories {
        for path in safety::clear_left_over(directory) {
            say(
                io,
                &format!("removed a directory of a killed run: {}", path.display()),
            );
        }
    }
}

fn say(io: &mut Io<'_>, text: &str) {
    io.say(&format!("{}\n", sanitize::line(text)));
}
