//! The order of disks in a guest, and the disk that it boots from.

use std::collections::HashMap;

use crate::{Device, Disk, Domain, TargetBus, target_number};

/// The order of disks in libvirt: grouped by bus, sorted by the numbers in their names (`virDomainDiskInsert`).
pub fn libvirt_order(disks: &[Disk]) -> Vec<usize> {
    let mut first_of_bus: HashMap<TargetBus, usize> = HashMap::new();
    for (nth, disk) in disks.iter().enumerate() {
        let bus = disk.frontend.effective_bus();
        first_of_bus.entry(bus).or_insert(nth);
    }
    let mut order: Vec<usize> = (0..disks.len()).collect();
    order.sort_by_key(|nth| {
        let frontend = &disks[*nth].frontend;
        let number = target_number(frontend.target.as_deref().unwrap_or_default());
        (first_of_bus[&frontend.effective_bus()], number)
    });
    order
}

impl Domain {
    /// The hard disk that the firmware tries first: the lowest boot order, otherwise the first in [`libvirt_order`].
    pub fn boot_disk(&self) -> Option<usize> {
        let is_disk = |nth: &usize| {
            let device = self.disks[*nth].frontend.effective_device();
            matches!(device, Device::Disk | Device::Lun)
        };
        let disks = libvirt_order(&self.disks).into_iter().filter(is_disk);
        // Of equals the first is the minimum.
        disks.min_by_key(|nth| self.disks[*nth].frontend.boot_order.unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackendSource, Frontend};

    fn disk(target: &str, bus: TargetBus) -> Disk {
        Disk::new(Frontend::new(target, bus), BackendSource::Empty)
    }

    #[test]
    fn the_boot_order_decides_and_then_the_order_of_libvirt() {
        let mut domain = Domain::default();
        assert_eq!(domain.boot_disk(), None);
        domain.disks = vec![
            disk("vdaa", TargetBus::Virtio),
            disk("sda", TargetBus::Sata),
            disk("vdz", TargetBus::Virtio),
        ];
        assert_eq!(libvirt_order(&domain.disks), [2, 0, 1]);
        assert_eq!(domain.boot_disk(), Some(2));
        domain.disks[2].frontend.device = Some(Device::Cdrom);
        assert_eq!(domain.boot_disk(), Some(0));
        domain.disks[1].frontend.boot_order = Some(2);
        assert_eq!(domain.boot_disk(), Some(1));
        domain.disks[0].frontend.boot_order = Some(1);
        assert_eq!(domain.boot_disk(), Some(0));
    }
}
