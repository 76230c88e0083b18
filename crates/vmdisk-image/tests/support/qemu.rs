//! The real qemu-img, where there is one.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// `false`, with one line, where qemu-img is not installed; a failure where `VMDISK_REAL=require` asks for it.
pub(crate) fn is_installed() -> bool {
    let installed = Command::new("qemu-img")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    vmdisk_testing::is_given(installed, "qemu-img")
}

pub(crate) fn run(directory: &Path, arguments: &[&str]) -> Output {
    Command::new("qemu-img")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

/// Runs qemu-img and wants it to succeed.
pub(crate) fn succeed(directory: &Path, arguments: &[&str]) {
    let output = run(directory, arguments);
    assert!(
        output.status.success(),
        "qemu-img {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// `qemu-img create` with options.
pub(crate) fn create(directory: &Path, format: &str, options: &str, rest: &[&str]) {
    let mut arguments = vec!["create", "-q", "-f", format];
    if !options.is_empty() {
        arguments.extend(["-o", options]);
    }
    arguments.extend(rest);
    succeed(directory, &arguments);
}

/// `qemu-img create` with a LUKS key. SHA-512 is slow enough for its benchmark of keys on fast machines.
pub(crate) fn create_encrypted(directory: &Path, format: &str, options: &str, rest: &[&str]) {
    let mut arguments = vec![
        "create",
        "-q",
        "--object",
        "secret,id=key,data=secret",
        "-f",
        format,
        "-o",
        options,
    ];
    arguments.extend(rest);
    succeed(directory, &arguments);
}

/// What `qemu-img info` says of a file, probing its format.
pub(crate) fn info(directory: &Path, file: &str) -> Value {
    let output = run(directory, &["info", "-U", "--output=json", file]);
    assert!(
        output.status.success(),
        "qemu-img info {file}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether QEMU opens a file with a format, and what it says when it does not.
pub(crate) fn opens(directory: &Path, format: &str, file: &str) -> Result<Value, String> {
    let output = run(
        directory,
        &["info", "-U", "--output=json", "-f", format, file],
    );
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
