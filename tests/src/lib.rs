//! What tests across crates share: where things are, and when a real program may be missing.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests package lies in the repository")
}

/// `fixtures/` in the repository.
pub fn fixtures() -> PathBuf {
    repository().join("fixtures")
}

/// Whether a test may go on: true if what it needs `is_there`. Otherwise it says in one line what
/// was skipped, and fails under `VMDISK_REAL=require`.
///
/// # Panics
/// Under `VMDISK_REAL=require`, if what the test needs is missing.
pub fn real(is_there: bool, test: &str, needs: &str) -> bool {
    if !is_there {
        let required = std::env::var_os("VMDISK_REAL").is_some_and(|value| value == "require");
        assert!(!required, "{test}: VMDISK_REAL=require, and {needs} is missing");
        say_skipped(test, needs);
    }
    is_there
}

/// libvirt's own test data, if `VMDISK_CORPUS` points at it; says so and skips otherwise.
///
/// # Panics
/// If the variable is set and the folder is missing or empty.
pub fn corpus(test: &str, folder: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("VMDISK_CORPUS") else {
        say_skipped(test, "VMDISK_CORPUS (a folder with libvirt's test data)");
        return None;
    };
    let folder = PathBuf::from(root).join(folder);
    let is_full = std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    assert!(is_full, "VMDISK_CORPUS is set, and {} is missing or empty", folder.display());
    Some(folder)
}

#[allow(clippy::print_stderr, reason = "a skipped test says so to whoever runs it")]
fn say_skipped(test: &str, needs: &str) {
    eprintln!("skipped: {test}: needs {needs}");
}

/// True if `program` is on the search path.
pub fn has_program(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}
