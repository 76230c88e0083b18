//! Host resources for tests of several crates: programs and loop devices.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod cases;
mod editor;
mod kvm;
mod loop_device;
mod loop_mount;
mod mounts;
mod programs;
mod skip;

use std::path::Path;
use std::process::Command;

pub use cases::{Case, HOST_CONFIG, cases, cases_file, check_reports, host_cases, host_inputs};
pub use editor::Editor;
pub use kvm::without_kvm;
pub use loop_device::LoopDevice;
pub use loop_mount::LoopMount;
pub use mounts::with_own_folder;
pub use programs::{copy_program, write_program};
pub use skip::{is_given, needed, skipped, skipped_even_if_required, take_skipped};

/// Runs a program and returns its output.
///
/// # Errors
/// If it cannot be started or fails: its name, its arguments and its message.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{program} {}: {}",
        arguments.join(" "),
        said.trim()
    ))
}

/// Checks that a program is installed.
///
/// # Errors
/// If it cannot print its version.
pub fn installed(program: &str) -> Result<(), String> {
    run(program, &["--version"]).map(drop)
}

/// Checks that libvirt's QEMU driver starts without a daemon, in a private root. It changes owners there, so it
/// needs root privileges.
///
/// # Errors
/// If virsh or QEMU is missing, or the driver does not start.
pub fn libvirt_driver(root: &Path) -> Result<(), String> {
    installed("qemu-system-x86_64")?;
    without_kvm();
    let uri = format!("qemu:///embed?root={}", root.display());
    let started = run("virsh", &["--quiet", "--connect", &uri, "version"]);
    started.map(drop).map_err(|error| {
        let last = error.lines().rfind(|line| !line.is_empty());
        last.unwrap_or_default().to_owned()
    })
}
