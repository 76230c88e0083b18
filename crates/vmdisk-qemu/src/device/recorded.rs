//! The recorded devices.

use vmdisk_facts::{MemberTable, Owner};

/// The recorded device with the same properties; `None` for a device that is unrelated to disks.
pub(crate) fn device_owner(driver: &str) -> Option<Owner<'_>> {
    let table = MemberTable::recorded();
    let is_recorded = |name: &str| table.members(Owner::Device(name)).is_some();
    let alias = match driver {
        "virtio-blk" | "virtio-blk-ccw" => "virtio-blk-pci",
        "virtio-scsi" | "virtio-scsi-ccw" => "virtio-scsi-pci",
        "vhost-user-blk-ccw" => "vhost-user-blk-pci",
        "lsi" => "lsi53c895a",
        name => name,
    };
    is_recorded(alias).then_some(Owner::Device(alias))
}
