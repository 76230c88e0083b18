//! Mounts of one thread and of the programs that it starts.

use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Mounts an empty file system over a folder, for this thread and the programs that it starts from now on.
///
/// # Errors
/// If the folder cannot be created or mounted on, for example without root privileges.
pub fn with_own_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    of_this_thread()?;
    Ok(mount(
        "tmpfs",
        folder,
        "tmpfs",
        MountFlags::empty(),
        Some(c"mode=0700"),
    )?)
}

/// Separates the mounts of this thread from those of the host.
#[allow(unsafe_code, reason = "a namespace of one thread")]
pub(crate) fn of_this_thread() -> io::Result<()> {
    // SAFETY: descriptors stay shared; only mounts, and with them the working directory, become this thread's own.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }?;
    Ok(mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )?)
}
