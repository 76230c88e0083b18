//! Addresses of disks on their controllers.

use std::collections::HashMap;

use vmdisk_model::{
    Address, ControllerType, DiskField, DriveAddress, FieldPath, TargetBus, target_number,
};

use super::{Conflict, ConflictKind, Resolved};

/// Assigns each disk on a controller the address implied by its target name, and finds conflicting addresses.
///
/// Source: libvirt `virDomainDiskDefAssignAddress`, and `virDomainDefDuplicateDriveAddressesValidate` for refused
/// addresses. libvirt does not choose another address if one is in use.
pub(super) fn resolve(resolved: &mut Resolved) {
    let mut taken: HashMap<(TargetBus, DriveAddress), usize> = HashMap::new();
    for nth in 0..resolved.domain.disks.len() {
        let at = FieldPath::Disk(nth, DiskField::Address);
        let frontend = &mut resolved.domain.disks[nth].frontend;
        let bus = frontend.effective_bus();
        if frontend.address.is_none() {
            let target = frontend.target.as_deref().unwrap_or_default();
            // Another check refuses a disk without a name.
            let has_number =
                target.is_empty() || bus == TargetBus::Nvme || target_number(target).is_some();
            if let Some(place) = DriveAddress::of_target(bus, target) {
                frontend.address = Some(Address::Drive(place));
                let DriveAddress {
                    controller,
                    bus: channel,
                    target,
                    unit,
                } = place;
                let value = format!(
                    "controller='{controller}' bus='{channel}' target='{target}' unit='{unit}'"
                );
                resolved.decide(at, value, reason(bus));
            } else if !has_number {
                resolved.conflicts.push(Conflict {
                    at,
                    with: None,
                    kind: ConflictKind::NameWithoutNumber,
                });
            }
        }
        let frontend = &resolved.domain.disks[nth].frontend;
        let Some(Address::Drive(place)) = frontend.address else {
            continue;
        };
        if let Some(other) = taken.insert((bus, place), nth) {
            // The first disk with the address keeps it.
            taken.insert((bus, place), other);
            resolved.conflicts.push(Conflict {
                at,
                with: Some(FieldPath::Disk(other, DiskField::Address)),
                kind: ConflictKind::SameAddress,
            });
        }
    }
}

/// The type of controller that libvirt adds for disks with an address on one.
pub(super) const fn controller_of(bus: TargetBus) -> Option<ControllerType> {
    match bus {
        TargetBus::Scsi => Some(ControllerType::Scsi),
        TargetBus::Sata => Some(ControllerType::Sata),
        TargetBus::Ide => Some(ControllerType::Ide),
        TargetBus::Fdc => Some(ControllerType::Fdc),
        TargetBus::Nvme => Some(ControllerType::Nvme),
        TargetBus::Virtio | TargetBus::Usb | TargetBus::Sd | TargetBus::Xen | TargetBus::Uml => {
            None
        }
    }
}

const fn reason(bus: TargetBus) -> &'static str {
    match bus {
        TargetBus::Scsi => "from the number in the target's name, seven disks to a SCSI controller",
        TargetBus::Sata => "from the number in the target's name, six disks to a SATA controller",
        TargetBus::Ide => {
            "from the number in the target's name, two disks to a channel and two channels to a controller"
        }
        TargetBus::Fdc => "from the number in the target's name, two drives to a controller",
        _ => "from the number in the target's name",
    }
}

#[cfg(test)]
mod tests {
    use vmdisk_model::{BackendSource, Disk, Domain, Frontend};

    use super::*;
    use crate::Unmodeled;

    fn resolved(targets: &[(&str, TargetBus)]) -> Resolved {
        let disks = targets
            .iter()
            .map(|(target, bus)| Disk::new(Frontend::new(*target, *bus), BackendSource::Empty));
        let domain = Domain {
            disks: disks.collect(),
            ..Domain::default()
        };
        super::super::resolve(&domain, &Unmodeled::default())
    }

    fn places(resolved: &Resolved) -> Vec<Option<(u32, u32, u32)>> {
        let place = |disk: &Disk| match disk.frontend.address {
            Some(Address::Drive(place)) => Some((place.controller, place.bus, place.unit)),
            _ => None,
        };
        resolved.domain.disks.iter().map(place).collect()
    }

    #[test]
    fn a_disk_without_an_address_sits_where_its_name_says_and_nowhere_else() {
        let found = resolved(&[
            ("sda", TargetBus::Scsi),
            ("sdh", TargetBus::Scsi),
            ("sdg", TargetBus::Sata),
            ("hdd", TargetBus::Ide),
            ("fdb", TargetBus::Fdc),
            ("sdb", TargetBus::Usb),
            ("vda", TargetBus::Virtio),
        ]);
        let place = |controller, bus, unit| Some((controller, bus, unit));
        assert_eq!(
            places(&found),
            [
                place(0, 0, 0),
                place(1, 0, 0),
                place(1, 0, 0),
                place(0, 1, 1),
                place(0, 0, 1),
                None,
                None,
            ]
        );
        assert_eq!(found.conflicts, []);
    }

    #[test]
    fn two_disks_in_one_place_and_a_name_without_a_number_are_conflicts() {
        let found = resolved(&[
            ("sda", TargetBus::Scsi),
            ("hda", TargetBus::Scsi),
            ("data", TargetBus::Virtio),
            ("vda", TargetBus::Scsi),
        ]);
        let at = |nth| FieldPath::Disk(nth, DiskField::Address);
        let conflict = |nth, with: Option<usize>, kind| Conflict {
            at: at(nth),
            with: with.map(at),
            kind,
        };
        assert_eq!(
            found.conflicts,
            [
                conflict(1, Some(0), ConflictKind::SameAddress),
                conflict(2, None, ConflictKind::NameWithoutNumber),
                conflict(3, Some(0), ConflictKind::SameAddress),
            ]
        );
    }

    #[test]
    fn ten_thousand_disks_are_resolved_in_no_time() {
        let disk = |nth: usize| {
            let mut disk = Disk::new(Frontend::new("", TargetBus::Scsi), BackendSource::Empty);
            disk.frontend.target = Some(format!("sd{}", "a".repeat(nth % 5 + 1)));
            disk
        };
        let domain = Domain {
            disks: (0..10_000).map(disk).collect(),
            ..Domain::default()
        };
        let found = super::super::resolve(&domain, &Unmodeled::default());
        assert_eq!(found.conflicts.len(), 10_000 - 5);
    }
}
