//! Disks with io_uring, and the alternative.

use vmdisk_model::{AioMode, Disk, HostStorage, Image};

/// libvirt passes `io` on only for files and devices.
pub(crate) const fn is_opened_by_path(image: &Image) -> bool {
    image.protocol.on_host().is_some()
}

/// The alternative: Linux AIO for a device with `O_DIRECT`, threads otherwise.
pub(crate) fn better(disk: &Disk, image: &Image) -> AioMode {
    match image.protocol.on_host() {
        Some(HostStorage::Device(_)) if disk.backend.is_direct() => AioMode::Native,
        Some(HostStorage::Device(_) | HostStorage::File(_)) | None => AioMode::Threads,
    }
}
