//! Questions to a QEMU that runs.

use std::path::PathBuf;

use serde_json::json;
use vmdisk_qmp::QemuProcess;

/// The kernel and the first file system of a guest (`cargo xtask guest`), if they are there.
///
/// They are looked for in the folder that `VMDISK_GUEST` names, else in `target/guest`.
pub fn guest() -> Option<(PathBuf, PathBuf)> {
    let folder = std::env::var_os("VMDISK_GUEST")
        .map_or_else(|| crate::repository().join("target/guest"), PathBuf::from);
    let (kernel, initramfs) = (folder.join("kernel"), folder.join("initramfs"));
    (kernel.is_file() && initramfs.is_file()).then_some((kernel, initramfs))
}

/// Runs a command of qemu-io on a node that no device uses.
///
/// # Panics
/// If QEMU does not answer.
pub fn io(qemu: &mut QemuProcess, node: &str, command: &str) -> String {
    let line = format!("qemu-io {node} \"{command}\"");
    let answer = qemu
        .ask("human-monitor-command", json!({ "command-line": line }))
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    answer.as_str().expect("it answers with text").to_owned()
}

/// The files that the process has open, with the flags of `open(2)`.
///
/// # Panics
/// If the process has ended.
pub fn open_files(qemu: &QemuProcess) -> Vec<(PathBuf, u32)> {
    let process = qemu.process_id();
    let mut files = Vec::new();
    let folder = std::fs::read_dir(format!("/proc/{process}/fd")).expect("it runs");
    for entry in folder {
        let entry = entry.expect("it runs");
        let Ok(path) = std::fs::read_link(entry.path()) else {
            continue;
        };
        let number = entry.file_name().into_string().expect("it is a number");
        let Ok(info) = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")) else {
            continue;
        };
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        files.push((path, flags.expect("every descriptor has flags")));
    }
    files
}
