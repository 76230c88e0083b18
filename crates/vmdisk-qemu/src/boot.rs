//! The boot order: that of the devices, otherwise that of the machine.

use vmdisk_model::{BootDevice, Device, Domain, libvirt_order};

/// The `bootindex` of each disk.
///
/// The boot order of the machine names kinds of devices. The first disk of a kind gets the number, as in libvirt
/// (`qemuProcessPrepareDeviceBootorder`).
pub(crate) fn boot_indexes(domain: &Domain) -> Vec<Option<u32>> {
    let own: Vec<Option<u32>> = domain
        .disks
        .iter()
        .map(|disk| disk.frontend.boot_order)
        .collect();
    if own.iter().any(Option::is_some) {
        return own;
    }
    let mut indexes = own;
    let (mut first_disk, mut first_cd, mut first_floppy) = (None, None, None);
    for nth in libvirt_order(&domain.disks) {
        let first = match domain.disks[nth].frontend.effective_device() {
            Device::Disk | Device::Lun => &mut first_disk,
            Device::Cdrom => &mut first_cd,
            Device::Floppy => &mut first_floppy,
        };
        first.get_or_insert(nth);
    }
    for (number, device) in (1..).zip(&domain.boot_devices) {
        let first = match device {
            BootDevice::Disk => first_disk,
            BootDevice::Cdrom => first_cd,
            BootDevice::Floppy => first_floppy,
            BootDevice::Network => None,
        };
        if let Some(nth) = first {
            // The last position of a repeated kind counts.
            indexes[nth] = Some(number);
        }
    }
    indexes
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmdisk_model::{BackendSource, Disk, Frontend, Scope, TargetBus};

    #[test]
    fn the_first_disk_of_a_kind_has_the_place_of_its_kind_unless_disks_have_places_of_their_own() {
        let disk = |target: &str, device| {
            let mut disk = Disk::new(Frontend::new(target, TargetBus::Sata), BackendSource::Empty);
            disk.frontend.device = Some(device);
            disk
        };
        let mut domain = Domain {
            disks: vec![
                disk("sdc", Device::Disk),
                disk("sda", Device::Cdrom),
                disk("sdb", Device::Disk),
            ],
            ..Domain::default()
        };
        // Disks without a guest have no order.
        domain.scope = Scope::DisksOnly;
        domain.boot_from_first_disk();
        assert_eq!(boot_indexes(&domain), [None, None, None]);
        domain.scope = Scope::WholeGuest;
        assert_eq!(boot_indexes(&domain), [None, None, None]);
        domain.boots_from_others = true;
        domain.boot_from_first_disk();
        assert_eq!(boot_indexes(&domain), [None, None, None]);
        domain.boots_from_others = false;
        domain.boot_from_first_disk();
        // libvirt has disks in the order of their names.
        assert_eq!(boot_indexes(&domain), [None, None, Some(1)]);
        domain.boot_devices = vec![BootDevice::Cdrom, BootDevice::Network, BootDevice::Disk];
        assert_eq!(boot_indexes(&domain), [None, Some(1), Some(3)]);
        domain.disks[0].frontend.boot_order = Some(7);
        assert_eq!(boot_indexes(&domain), [Some(7), None, None]);
    }
}
