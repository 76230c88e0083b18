//! The advice to move a disk to virtio.

use vmdisk_fields::{self as fields, DISK_FIELDS, Settings, setting};
use vmdisk_model::{Address, Disk, DiskField, FieldPath, Fields, TargetBus};
use vmdisk_rule::Context;

/// The setting that moves a disk to virtio, without the settings that virtio disks do not have.
pub(crate) fn on_virtio(context: &Context<'_>, index: usize, disk: &Disk) -> Settings {
    let has_other_address = matches!(
        disk.frontend.address,
        Some(Address::Drive(_) | Address::Usb(_))
    );
    // On a command line, the address is part of the device that is replaced.
    let address = (has_other_address && context.is_for_libvirt()).then_some(DiskField::Address);
    let removed = only_elsewhere(disk).chain(address);
    let at = |field| FieldPath::Disk(index, field);
    setting(at(DiskField::TargetBus), TargetBus::Virtio).without(removed.map(at))
}

/// The settings of a disk that virtio disks do not have.
pub(crate) fn only_elsewhere(disk: &Disk) -> impl Iterator<Item = DiskField> {
    let device = disk.frontend.effective_device();
    let is_only_elsewhere = move |field: &DiskField| {
        let takers = &fields::disk(*field).takers;
        let elsewhere = || takers.elsewhere(TargetBus::Virtio, device, |_| None);
        // Most fields may be on every disk.
        !takers.is_everywhere() && disk.has(*field) && elsewhere().is_some()
    };
    DISK_FIELDS.iter().copied().filter(is_only_elsewhere)
}
