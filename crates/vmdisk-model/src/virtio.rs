//! Options of all virtio devices.

use crate::Switch;

/// Options of a virtio device, whatever it is; of a disk or of a SCSI controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioOptions {
    /// The device goes through the guest's IOMMU; libvirt `driver/@iommu` (3.5.0), QEMU `iommu_platform`. Default: off.
    pub iommu: Option<Switch>,
    /// The device caches translations of addresses; libvirt `driver/@ats` (3.5.0), QEMU `ats`. Default: off.
    pub ats: Option<Switch>,
    /// Packed virtqueues; libvirt `driver/@packed` (6.3.0), QEMU `packed` (4.2). Default: off.
    pub packed: Option<Switch>,
    /// Each queue has a page of its own for notifications; libvirt `driver/@page_per_vq` (7.9.0), QEMU
    /// `page-per-vq` (2.8).
    pub page_per_vq: Option<Switch>,
}
