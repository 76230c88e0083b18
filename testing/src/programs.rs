//! Programs that tests write and start.
//!
//! Another program writes them: children that other tests start meanwhile would have a file of this one open for writing, and
//! the kernel starts no such file.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a script that can be started, and the directories above it.
///
/// # Panics
/// If it cannot be written.
pub fn write_program(path: &Path, text: &str) {
    install(Path::new("/dev/stdin"), path, text);
}

/// Copies a program, so that everybody can start it.
///
/// # Panics
/// If it cannot be copied.
pub fn copy_program(from: &Path, to: &Path) {
    install(from, to, "");
}

fn install(from: &Path, to: &Path, input: &str) {
    let mut command = Command::new("install");
    command.args(["-D", "-m", "755"]).args([from, to]);
    let mut run = || {
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait()
    };
    let ended = run().map(|status| status.success());
    assert!(matches!(ended, Ok(true)), "{}: {ended:?}", to.display());
}
