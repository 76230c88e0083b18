//! The properties of a disk that follow from the name of its driver.

use vmdisk_fields::DeviceModel;
use vmdisk_model::{Device, TargetBus, VirtioModel};

/// The properties of a disk that follow from the name of its driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskDriver {
    pub(crate) model: DeviceModel,
    pub(crate) bus: TargetBus,
    pub(crate) device: Device,
    pub(crate) virtio: Option<VirtioModel>,
    /// True for an NVMe controller that is also its only disk.
    pub(crate) is_whole_nvme: bool,
}

/// Reads the name of a driver; `None` if it is not a disk.
pub(crate) fn disk_driver(driver: &str) -> Option<DiskDriver> {
    let (base, virtio) = if let Some(base) = driver.strip_suffix("-non-transitional") {
        (base, Some(VirtioModel::NonTransitional))
    } else if let Some(base) = driver.strip_suffix("-transitional") {
        (base, Some(VirtioModel::Transitional))
    } else {
        (driver, None)
    };
    let base = ["-pci", "-ccw", "-device"]
        .iter()
        .find_map(|end| base.strip_suffix(end))
        .unwrap_or(base);
    let (model, bus, device) = match base {
        "virtio-blk" => (DeviceModel::VirtioBlk, TargetBus::Virtio, Device::Disk),
        "vhost-user-blk" => (DeviceModel::VhostUserBlk, TargetBus::Virtio, Device::Disk),
        "scsi-hd" | "scsi-disk" => (DeviceModel::ScsiHd, TargetBus::Scsi, Device::Disk),
        "scsi-cd" => (DeviceModel::ScsiCd, TargetBus::Scsi, Device::Cdrom),
        "scsi-block" | "scsi-generic" => (DeviceModel::ScsiBlock, TargetBus::Scsi, Device::Lun),
        "ide-hd" | "ide-drive" => (DeviceModel::IdeHd, TargetBus::Ide, Device::Disk),
        "ide-cd" => (DeviceModel::IdeCd, TargetBus::Ide, Device::Cdrom),
        "usb-storage" => (DeviceModel::UsbStorage, TargetBus::Usb, Device::Disk),
        "floppy" => (DeviceModel::Floppy, TargetBus::Fdc, Device::Floppy),
        "nvme-ns" | "nvme" => (DeviceModel::NvmeNamespace, TargetBus::Nvme, Device::Disk),
        _ => return None,
    };
    Some(DiskDriver {
        model,
        bus,
        device,
        virtio,
        is_whole_nvme: base == "nvme",
    })
}
