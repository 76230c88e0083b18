//! Whether a host lets QEMU have io_uring, and what to take instead.

use vmdisk_facts::HostIndex;
use vmdisk_model::{AioMode, Disk, Image, Protocol};

use crate::{Context, Missing};

/// libvirt writes `io` for files and devices only, and drops it for everything else.
pub(crate) const fn is_opened_by_path(image: &Image) -> bool {
    match image.protocol {
        Protocol::File { .. } | Protocol::HostDevice { .. } => true,
        Protocol::Other(_) => false,
    }
}

/// Why QEMU gets no ring; `None` if it gets one.
pub(crate) fn denied(host: &HostIndex<'_>) -> Result<Option<String>, Missing> {
    let limits = &host.facts().limits;
    let what = || "kernel.io_uring_disabled".to_owned();
    let disabled = Context::known(limits.io_uring_disabled.clone(), what)?;
    match disabled {
        None | Some(0) => return Ok(None),
        Some(1) => {}
        Some(2..) => {
            return Ok(Some(
                "kernel.io_uring_disabled is 2: no process gets io_uring".to_owned(),
            ));
        }
    }
    let what = || "kernel.io_uring_group".to_owned();
    let group = Context::known(limits.io_uring_group.clone(), what)?;
    match group {
        None | Some(..0) => Ok(Some(
            "kernel.io_uring_disabled is 1 and kernel.io_uring_group names no group, so only privileged processes get io_uring"
                .to_owned(),
        )),
        Some(group) => Err(Missing::new(
            format!("whether QEMU's user is in group {group}, which alone gets io_uring"),
            "not collected",
        )),
    }
}

/// What to take instead: Linux AIO for a device past the page cache, threads for everything else.
pub(crate) fn better(disk: &Disk, image: &Image) -> AioMode {
    match image.protocol {
        Protocol::HostDevice { .. } if disk.backend.is_direct() => AioMode::Native,
        Protocol::HostDevice { .. } | Protocol::File { .. } | Protocol::Other(_) => {
            AioMode::Threads
        }
    }
}
