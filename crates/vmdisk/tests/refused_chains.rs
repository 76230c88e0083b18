//! Opens with the installed QEMU an image that a rule calls refused, and holds its text to the evidence.
//!
//! What libvirt does not start is tried in `tests/tests/real_libvirt`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    reason = "tests make files and start programs, and say what they skip; the library does neither"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use vmdisk::rules::{Evidence, find};

/// Whether the programs are installed; without them the test says so, and fails under `VMDISK_REAL=require`.
fn are_installed(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let installed = Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success());
        vmdisk_testing::is_given(installed, program)
    })
}

fn output(program: &str, arguments: &[&str], folder: &Path) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Runs qemu-img and wants it to succeed.
fn qemu_img(arguments: &[&str], folder: &Path) {
    let output = output("qemu-img", arguments, folder);
    assert!(
        output.status.success(),
        "qemu-img {arguments:?}: {output:?}"
    );
}

/// The text that a rule quotes of a program.
fn quoted(rule: &str, program: &str) -> &'static str {
    let rule = find(rule).unwrap_or_else(|| panic!("there is no rule {rule}"));
    rule.evidence
        .iter()
        .find_map(|evidence| match evidence {
            Evidence::Refused { by, text, .. } if by.starts_with(program) => Some(*text),
            Evidence::Refused { .. }
            | Evidence::Measured { .. }
            | Evidence::Source(_)
            | Evidence::Cve(_)
            | Evidence::NotMeasuredHere(_) => None,
        })
        .unwrap_or_else(|| panic!("{} quotes nothing of {program}", rule.name))
}

/// A folder with an image that says of itself that it is corrupt.
fn images(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("what an earlier run left can be removed");
    }
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let create = ["create", "-q", "-f", "qcow2", "corrupt", "1M"];
    qemu_img(&create, &folder);
    edit(&folder.join("corrupt"), |bytes| bytes[79] |= 2);
    folder
}

fn edit(image: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = std::fs::read(image).expect("it was just made");
    change(&mut bytes);
    std::fs::write(image, bytes).expect("it is writable");
}

#[test]
fn qemu_refuses_a_corrupt_image_in_the_words_that_its_rule_quotes() {
    if !are_installed(&["qemu-img", "qemu-io"]) {
        return;
    }
    let folder = images("refused-chains");
    let output = output(
        "qemu-io",
        &["-f", "qcow2", "-c", "quit", "corrupt"],
        &folder,
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "QEMU opens it: {said}");
    assert!(
        said.contains(quoted("qcow2-corrupt-bit", "QEMU")),
        "QEMU says: {said}"
    );
}
