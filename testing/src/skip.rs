//! Tests that cannot run here: each says so, fails where every test is required, and is counted at the end of the run.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

/// Returns true if what a test needs is there. Otherwise the test is skipped, with a line that gives the reason.
///
/// # Panics
/// As [`skipped`].
#[must_use]
pub fn is_given(is_there: bool, needs: &str) -> bool {
    if !is_there {
        skipped(&format!("needs {needs}"));
    }
    is_there
}

/// Skips a test that cannot run here, with a line that gives the reason.
///
/// # Panics
/// If `VMDISK_REAL=require` is set, which requires every test to run.
pub fn needed<T>(made: Result<T, String>) -> Option<T> {
    made.map_err(|reason| skipped(&reason)).ok()
}

/// Records that a test does not run here.
///
/// # Panics
/// If `VMDISK_REAL=require` is set, which requires every test to run.
pub fn skipped(reason: &str) {
    let is_required = std::env::var_os("VMDISK_REAL").is_some_and(|value| value == "require");
    assert!(
        !is_required,
        "VMDISK_REAL=require, and the test cannot run here: {reason}"
    );
    skipped_even_if_required(reason);
}

/// Records that a test does not run for a reason that no package removes; `VMDISK_REAL=require` does not make it a failure.
#[expect(clippy::print_stderr, reason = "a skipped test must be visible")]
pub fn skipped_even_if_required(reason: &str) {
    eprintln!("skipped: {reason}");
    let Some(path) = record() else { return };
    let file = OpenOptions::new().create(true).append(true).open(path);
    // One call writes the line, so that lines of several tests do not mix.
    let written = file.and_then(|mut file| file.write_all(format!("{reason}\n").as_bytes()));
    drop(written);
}

/// Returns the reasons of all tests that the same run of cargo skipped, each with its number, and forgets them.
pub fn take_skipped() -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    let Some(path) = record() else { return reasons };
    let text = fs::read_to_string(&path).unwrap_or_default();
    drop(fs::remove_file(path));
    for line in text.lines() {
        *reasons.entry(line.to_owned()).or_default() += 1;
    }
    reasons
}

/// The file for the reasons of one run: cargo is the parent of all its tests.
fn record() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let target = program
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file())?;
    let run = std::os::unix::process::parent_id();
    Some(target.join("tmp").join(format!("skipped-{run}")))
}
