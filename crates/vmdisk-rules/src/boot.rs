//! The disk that a guest boots from.

use vmdisk_model::{Architecture, Device, Disk, Domain};

/// The disk that the firmware tries first: the lowest boot order, otherwise the first in the list.
pub(crate) fn disk(domain: &Domain) -> Option<(usize, &Disk)> {
    let disks = || {
        let all = domain.disks.iter().enumerate();
        all.filter(|(_, disk)| {
            matches!(disk.frontend.effective_device(), Device::Disk | Device::Lun)
        })
    };
    disks()
        .filter_map(|(index, disk)| Some((disk.frontend.boot_order?, index, disk)))
        .min_by_key(|(order, index, _)| (*order, *index))
        .map(|(_, index, disk)| (index, disk))
        .or_else(|| disks().next())
}

/// True if SeaBIOS may have to boot from this disk: it is the default firmware of a PC, and cannot boot from disks with
/// sectors of 4096 bytes.
pub(crate) fn may_be_seabios(domain: &Domain, index: usize) -> bool {
    let is_pc = matches!(
        domain.architecture,
        Some(Architecture::X86_64 | Architecture::I686) | None
    );
    is_pc && disk(domain).is_some_and(|(first, _)| first == index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmdisk_model::{Format, Frontend, Image, TargetBus};

    #[test]
    fn the_boot_order_decides_and_then_the_place() {
        let disk_called = |target: &str, bus| {
            let image = Image::file(format!("/{target}.img"), Format::Raw);
            Disk::new(Frontend::new(target, bus), image)
        };
        let mut domain = Domain {
            disks: vec![
                disk_called("sda", TargetBus::Sata),
                disk_called("vda", TargetBus::Virtio),
            ],
            ..Domain::default()
        };
        let first = |domain: &Domain| disk(domain).map(|(index, _)| index);
        assert_eq!(first(&domain), Some(0));
        domain.disks[1].frontend.boot_order = Some(2);
        assert_eq!(first(&domain), Some(1));
        domain.disks[0].frontend.boot_order = Some(1);
        assert_eq!(first(&domain), Some(0));
        assert!(may_be_seabios(&domain, 0) && !may_be_seabios(&domain, 1));
        domain.architecture = Some(Architecture::Aarch64);
        assert!(!may_be_seabios(&domain, 0));
    }
}
