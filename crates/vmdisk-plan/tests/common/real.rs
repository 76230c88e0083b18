//! When a real program may be missing.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the library starts nothing; tests run what it writes"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Whether a test may go on: it needs these programs. Otherwise it says in one line what was skipped,
/// and fails under `VMDISK_REAL=require`.
pub(crate) fn has_programs(test: &str, programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| find(program).is_none())
        .collect();
    is_given(missing.is_empty(), test, &missing.join(", "))
}

/// Returns true if the machine has what a test needs; the test is skipped otherwise.
pub(crate) fn is_given(is_there: bool, test: &str, needs: &str) -> bool {
    vmdisk_testing::is_given(is_there, &format!("{needs} ({test})"))
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let folders = path.split(':').map(Path::new);
    folders
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Runs a program that must succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = try_run(program, arguments);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a program.
pub(crate) fn try_run(program: &str, arguments: &[&str]) -> Output {
    let file = find(program).unwrap_or_else(|| panic!("{program} is not installed"));
    Command::new(file).args(arguments).output().unwrap()
}

/// Runs a script, with these variables set besides.
pub(crate) fn run_script(text: &str, variables: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.sh");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new("/bin/sh");
    command.arg(&file).envs(variables.iter().copied());
    command.output().unwrap()
}
