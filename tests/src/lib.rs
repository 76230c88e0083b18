//! What tests across crates share: where things are, and when a real program may be missing.

/// The guide of the library, whose example is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
pub struct LibraryGuide;

pub mod fix_cases;
pub mod fuzz;
pub mod help_cases;
pub mod interfaces;
mod libvirts;
mod qemus;
mod running;

use std::path::{Path, PathBuf};

pub use libvirts::{LibvirtBuild, LibvirtSession, NEWER_LIBVIRT, Step, Verdict, libvirts};
pub use qemus::{QEMU_VERSIONS, QemuBuild, on_each_qemu, qemus};
pub use running::{guest, io, open_files};

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

/// Returns true if what a test needs is there. Otherwise the test is skipped, with a line that gives the reason.
///
/// # Panics
/// Under `VMDISK_REAL=require`, if what the test needs is missing.
pub fn real(is_there: bool, test: &str, needs: &str) -> bool {
    vmdisk_testing::is_given(is_there, &format!("{needs} ({test})"))
}

/// libvirt's own test data, if `VMDISK_CORPUS` points at it; says so and skips otherwise.
///
/// # Panics
/// If the variable is set and the folder is missing or empty.
pub fn corpus(test: &str, folder: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("VMDISK_CORPUS") else {
        vmdisk_testing::skipped_even_if_required(
            "needs VMDISK_CORPUS (a folder with libvirt's test data)",
        );
        return None;
    };
    let folder = PathBuf::from(root).join(folder);
    let is_full = std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    assert!(
        is_full,
        "{test}: VMDISK_CORPUS is set, and {} is missing or empty",
        folder.display()
    );
    Some(folder)
}

/// True if `program` is on the search path.
pub fn has_program(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

/// Compares `found` with a golden file; `VMDISK_BLESS=yes` writes the file instead, for a person to read.
///
/// # Panics
/// If the file differs, with the first line that does.
pub fn assert_golden(path: &Path, found: &str) {
    if std::env::var_os("VMDISK_BLESS").is_some_and(|value| value == "yes") {
        std::fs::write(path, found).expect("golden files can be written");
        return;
    }
    let expected = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{}: {error} (VMDISK_BLESS=yes writes it)", path.display()));
    if expected == found {
        return;
    }
    let line = expected
        .lines()
        .zip(found.lines())
        .position(|(expected, found)| expected != found)
        .unwrap_or_else(|| expected.lines().count().min(found.lines().count()));
    panic!(
        "{} differs from line {} on\nexpected: {}\nfound:    {}\n\nall that was found:\n{found}",
        path.display(),
        line + 1,
        expected.lines().nth(line).unwrap_or("(the end)"),
        found.lines().nth(line).unwrap_or("(the end)"),
    );
}

/// What a run of the command came to.
#[derive(Debug)]
pub struct Run {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs a command in the repository's root with `stdin` as its input.
///
/// # Panics
/// If the program cannot be started, is killed, or prints something that is not UTF-8.
pub fn run(program: &str, arguments: &[&str], stdin: &str) -> Run {
    run_in(repository(), program, arguments, stdin)
}

/// Runs a command in `folder`.
///
/// # Panics
/// As [`run`].
pub fn run_in(folder: &Path, program: &str, arguments: &[&str], stdin: &str) -> Run {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        // 2026-11-22: ages of facts are counted to it.
        .env("SOURCE_DATE_EPOCH", "1795305600")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut input = child.stdin.take().expect("it was piped");
    // A program that does not want its input may close it.
    let _ = input.write_all(stdin.as_bytes());
    drop(input);
    let output = child.wait_with_output().expect("it was started");
    Run {
        code: output
            .status
            .code()
            .unwrap_or_else(|| panic!("{program} was killed")),
        stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("output is UTF-8"),
    }
}
