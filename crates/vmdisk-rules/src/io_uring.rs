//! The availability of io_uring on a host, and the alternative.

use vmdisk_rule::{Context, Missing};

use vmdisk_facts::{HostIndex, io_uring};
use vmdisk_model::{AioMode, Disk, HostStorage, Image};

/// libvirt passes `io` on only for files and devices.
pub(crate) const fn is_opened_by_path(image: &Image) -> bool {
    image.protocol.on_host().is_some()
}

/// The reason why the kernel or its settings deny io_uring to QEMU; `None` if they allow it.
pub(crate) fn denied(host: &HostIndex<'_>) -> Result<Option<String>, Missing> {
    if let Some(why) = io_uring::lacking(&host.facts().kernel) {
        return Ok(Some(why));
    }
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
        Some(group) => outside_of(host, group),
    }
}

/// The reason why QEMU is denied io_uring where one group may use it: its user is not a member.
fn outside_of(host: &HostIndex<'_>, group: i64) -> Result<Option<String>, Missing> {
    let what =
        || format!("whether QEMU's user is in group {group}, the only group that may use io_uring");
    let user = host
        .facts()
        .libvirt
        .as_ref()
        .and_then(|libvirt| libvirt.qemu_user.as_ref());
    let Some(user) = Context::known(user, what)? else {
        return Err(Missing::new(
            what(),
            "the user that QEMU runs as is not known",
        ));
    };
    // An account that was only assumed to be QEMU's, from its usual name, proves nothing.
    if !user.is_configured.is_settled() {
        return Err(Missing::new(
            what(),
            "libvirt's qemu.conf could not be read",
        ));
    }
    let is_in = match u32::try_from(group) {
        Ok(group) => Context::known(user.is_in(group), what)?.unwrap_or(false),
        Err(_) => false,
    };
    let name = Context::known(user.name.as_str(), what)?.unwrap_or("QEMU's user");
    Ok((!is_in).then(|| {
        format!(
            "kernel.io_uring_disabled is 1, kernel.io_uring_group is {group}, and QEMU's user {name} is not in that group"
        )
    }))
}

/// The alternative: Linux AIO for a device with `O_DIRECT`, threads otherwise.
pub(crate) fn better(disk: &Disk, image: &Image) -> AioMode {
    match image.protocol.on_host() {
        Some(HostStorage::Device(_)) if disk.backend.is_direct() => AioMode::Native,
        Some(HostStorage::Device(_) | HostStorage::File(_)) | None => AioMode::Threads,
    }
}
