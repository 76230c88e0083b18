//! The library as programs in C, JavaScript and Go call it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    unsafe_code,
    reason = "tests call as C does, and start programs"
)]

mod c;
mod go;
mod node;
mod playground;

use std::path::{Path, PathBuf};
use std::process::Command;

use vmdisk::calls::{self, CallOptions};
use vmdisk_testing::Case;

/// A file of this repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// The directory of what cargo builds.
fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).unwrap().to_owned()
}

/// A file that a chore writes below `target/`.
fn built(path: &str, chore: &str) -> Result<PathBuf, String> {
    let file = target().join(path);
    match file.exists() {
        true => Ok(file),
        false => Err(format!("no {path}: `cargo xtask {chore}` builds it")),
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(from, to).unwrap();
}

/// The output of a program that must succeed.
fn output(command: &mut Command) -> Vec<u8> {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}\n{printed:.2000}");
    done.stdout
}

/// The report that each interface must print.
fn report(case: &Case) -> String {
    let host = case.facts.as_deref();
    let host = host.map(|facts| vmdisk::Host::parse(facts).unwrap());
    let options = CallOptions::parse(&case.options).unwrap();
    let call = match case.call {
        "lint_all" => calls::lint_all,
        _ => calls::lint,
    };
    call(&case.text, host.as_ref(), &options).unwrap()
}
