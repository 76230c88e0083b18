//! Hosts where `/dev/kvm` exists and boots nothing.

use std::cell::Cell;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, mount_bind, mount_remount};

use crate::mounts;

const NODE: &str = "/dev/kvm";

/// Hides `/dev/kvm` from the programs that this thread starts from now on.
///
/// libvirt tries it with each QEMU that it has not seen yet, for up to a minute where it boots nothing. Without it,
/// libvirt refuses guests of type `kvm`, so that only tests with emulated guests can hide it. Mounts need root; without it everything stays as it is.
pub fn without_kvm() {
    thread_local! {
        static IS_DONE: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_DONE.replace(true) && Path::new(NODE).exists() {
        let _ = hide();
    }
}

fn hide() -> io::Result<()> {
    mounts::of_this_thread()?;
    // A node that cannot be opened is what libvirt remembers as "no KVM". Root may open any file but one that is mounted
    // read-only.
    mount_bind("/proc/version", NODE)?;
    mount_remount(NODE, MountFlags::BIND | MountFlags::RDONLY, "")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::process::Command;

    #[test]
    fn programs_of_this_thread_alone_cannot_open_kvm() {
        let opens = || OpenOptions::new().read(true).write(true).open(NODE).is_ok();
        if !rustix::process::geteuid().is_root() || !opens() {
            return;
        }
        std::thread::spawn(|| {
            without_kvm();
            without_kvm();
            let script = format!("[ -e {NODE} ] && ! (: <>{NODE}) 2>/dev/null");
            let status = Command::new("sh").args(["-c", &script]).status();
            assert!(status.unwrap().success());
        })
        .join()
        .unwrap();
        assert!(opens());
    }
}
