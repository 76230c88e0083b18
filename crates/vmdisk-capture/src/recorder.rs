//! What stands for programs that are not on this machine, so that a command finds them.

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::{fs, io};

use vmdisk_qemu::{RUNNERS, Runner};

/// The instruction sets of QEMU's programs.
const TARGETS: [&str; 34] = [
    "aarch64",
    "alpha",
    "arm",
    "avr",
    "cris",
    "hppa",
    "i386",
    "loongarch64",
    "m68k",
    "microblaze",
    "microblazeel",
    "mips",
    "mips64",
    "mips64el",
    "mipsel",
    "nios2",
    "or1k",
    "ppc",
    "ppc64",
    "riscv32",
    "riscv64",
    "rx",
    "s390x",
    "sh4",
    "sh4eb",
    "sparc",
    "sparc64",
    "tricore",
    "x86_64",
    "x86_64-microvm",
    "x86_64-headless",
    "xtensa",
    "xtensaeb",
    "ppcemb",
];

/// The program that ends at once with success, in the folder of the recorders.
pub(crate) const PROGRAM: &str = ".recorder";

/// Makes the folder: an executable under each name that no folder of PATH has. A kvm or `qemu-kvm` is there only on a machine
/// without any QEMU: a script may prefer it.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    let program = folder.join(PROGRAM);
    fs::write(&program, "#!/bin/sh\n")?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let systems = TARGETS.map(|target| format!("qemu-system-{target}"));
    let mut names: Vec<&str> = systems.iter().map(String::as_str).collect();
    if !names.iter().any(|name| is_installed(name)) {
        names.extend(["qemu-kvm", "kvm"]);
    }
    names.extend(["qemu-storage-daemon", "qemu-img"]);
    names.extend(
        RUNNERS
            .iter()
            .filter(|it| is_replaced(it))
            .map(|it| it.name),
    );
    for name in names.iter().filter(|name| !is_installed(name)) {
        symlink(PROGRAM, folder.join(name))?;
    }
    Ok(())
}

/// True for a program that does not work in a sandbox, or is not everywhere. The others really run.
pub(crate) fn is_replaced(runner: &Runner) -> bool {
    let runs = [
        "bash", "builtin", "command", "dash", "env", "exec", "ksh", "nice", "nohup", "sh",
        "stdbuf", "time", "timeout",
    ];
    !runs.contains(&runner.name)
}

/// True if a folder of PATH has this program.
fn is_installed(name: &str) -> bool {
    path().iter().any(|folder| folder.join(name).exists())
}

/// The folders of PATH.
pub(crate) fn path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path).collect()
}

/// PATH with the folder of the recorders at its end: a program that is there answers questions.
pub(crate) fn path_with(folder: &Path) -> OsString {
    let folders = path().into_iter().chain([folder.to_owned()]);
    std::env::join_paths(folders).unwrap_or_else(|_| folder.into())
}
