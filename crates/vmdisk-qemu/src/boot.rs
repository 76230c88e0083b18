//! The boot order: that of the devices, otherwise that of the machine.

use vmdisk_model::{BootDevice, Device, Domain, Scope};

use crate::names::libvirt_order;
use crate::options::Style;

/// The `bootindex` of each disk.
///
/// The boot order of the machine names kinds of devices. The first disk of a kind gets the number, as in libvirt
/// (`qemuProcessPrepareDeviceBootorder`). Without an order libvirt boots from the first disk
/// (`virDomainDefBootOrderPostParse`).
pub(crate) fn boot_indexes(domain: &Domain, style: Style) -> Vec<Option<u32>> {
    let own: Vec<Option<u32>> = domain
        .disks
        .iter()
        .map(|disk| disk.frontend.boot_order)
        .collect();
    if own.iter().any(Option::is_some) {
        return own;
    }
    let is_libvirts_default = domain.boot_devices.is_empty()
        && domain.scope == Scope::WholeGuest
        && matches!(style, Style::Libvirt);
    let devices = if is_libvirts_default {
        &[BootDevice::Disk][..]
    } else {
        &domain.boot_devices
    };
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
    for (number, device) in (1..).zip(devices) {
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
    use vmdisk_model::{BackendSource, Disk, Frontend, TargetBus};

    fn indexes(domain: &Domain, style: Style) -> Vec<Option<u32>> {
        boot_indexes(domain, style)
    }

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
        assert_eq!(indexes(&domain, Style::Readable), [None, None, None]);
        // libvirt has disks in the order of their names.
        assert_eq!(indexes(&domain, Style::Libvirt), [None, None, Some(1)]);
        domain.boot_devices = vec![BootDevice::Cdrom, BootDevice::Network, BootDevice::Disk];
        assert_eq!(indexes(&domain, Style::Readable), [None, Some(1), Some(3)]);
        domain.disks[0].frontend.boot_order = Some(7);
        assert_eq!(indexes(&domain, Style::Libvirt), [Some(7), None, None]);
    }
}
