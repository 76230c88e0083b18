//! Disks that get another bus.

use vmdisk_facts::{Target, Version};
use vmdisk_fields::{DISK_FIELDS, disk as row_of};
use vmdisk_model::{
    Device, Disk, DiskField, Domain, Fields as _, Frontend, FrontendKind, TargetBus,
};

use super::change::{ChangeKind, DefinitionChange, PlannedChange, empty};
use super::place::{PlacedDisk, storage_of};
use crate::spec::{Difference, GuestOs, bus_of};

/// The disks whose bus differs.
pub(super) struct Buses<'a> {
    want: &'a Domain,
    guest: &'a Domain,
    disks: Vec<Rebus>,
}

/// A disk that gets another bus.
struct Rebus {
    /// Its number in the plan.
    new: usize,
    /// Its number in the guest.
    old: usize,
    differences: Vec<Difference>,
}

impl<'a> Buses<'a> {
    /// Compares the planned disks with those of the guest, which are `named` as in the plan.
    pub(super) fn of(want: &'a Domain, guest: &'a Domain, named: &Domain) -> Self {
        let planned = want.disks.iter().enumerate();
        let pairs = planned.filter_map(|(new, disk)| {
            let target = &disk.frontend.target;
            let mut all = named.disks.iter();
            let old = all.position(|it| it.frontend.target == *target && target.is_some())?;
            Some((new, old))
        });
        let is_other = |(new, old): &(usize, usize)| {
            let kinds = [
                want.frontend_kind(&want.disks[*new]),
                guest.frontend_kind(&guest.disks[*old]),
            ];
            let is_foreign = kinds.contains(&FrontendKind::Foreign);
            kinds[0] != kinds[1] && !is_foreign && !kinds.contains(&FrontendKind::VhostUserBlk)
        };
        let disks = pairs.filter(is_other).map(|(new, old)| Rebus {
            new,
            old,
            differences: Vec::new(),
        });
        Buses {
            want,
            guest,
            disks: disks.collect(),
        }
    }

    /// The numbers of the planned disks.
    pub(super) fn planned(&self) -> impl Iterator<Item = usize> {
        self.disks.iter().map(|it| it.new)
    }

    /// The guest without the disks that leave their places.
    pub(super) fn others(&self, guest: &Domain) -> Domain {
        let mut others = guest.clone();
        let mut nth = 0..;
        let is_old = |nth: usize| self.disks.iter().any(|it| it.old == nth);
        others
            .disks
            .retain(|_| nth.next().is_some_and(|nth| !is_old(nth)));
        others
    }

    /// True for a key that a planned disk gets with its bus.
    pub(super) fn takes(&self, new: usize, key: &str) -> bool {
        let Some(disk) = self.disks.iter().find(|it| it.new == new) else {
            return false;
        };
        let frontends = [
            &self.want.disks[disk.new].frontend,
            &self.guest.disks[disk.old].frontend,
        ];
        let is_of_bus = |field: &DiskField| {
            let [new, old] = frontends.map(|frontend| fits(*field, frontend, None));
            row_of(*field).spec == Some(key) && new != old
        };
        ["bus", "target", "iothread", "queues"].contains(&key) || DISK_FIELDS.iter().any(is_of_bus)
    }

    /// Notes that a planned disk gets a key with its bus.
    pub(super) fn note(&mut self, new: usize, difference: Difference) {
        let mut disks = self.disks.iter_mut();
        if let Some(disk) = disks.find(|it| it.new == new) {
            disk.differences.push(difference);
        }
    }

    /// The changes, with the planned disks as they are placed in the guest.
    pub(super) fn changes(
        self,
        placed: impl Iterator<Item = &'a PlacedDisk>,
        (os, target): (Option<GuestOs>, &Target),
    ) -> impl Iterator<Item = PlannedChange> {
        let frontends: Vec<(DefinitionChange, Frontend)> = placed
            .zip(&self.disks)
            .map(|(placed, disk)| {
                let old = &self.guest.disks[disk.old];
                let frontend = frontend(old, &placed.disk, target.libvirt);
                (placed.surroundings(self.guest), frontend)
            })
            .collect();
        let mut after = self.guest.clone();
        for (disk, (surroundings, frontend)) in self.disks.iter().zip(&frontends) {
            after.disks[disk.old].frontend.clone_from(frontend);
            after.controllers.extend(surroundings.controllers.clone());
        }
        let boots = [self.guest.boot_disk(), after.boot_disk()];
        let kept = self.others(self.guest);
        let changes = self.disks.into_iter().zip(frontends);
        changes.map(move |(disk, (surroundings, frontend))| {
            let old = &self.guest.disks[disk.old];
            let new = &after.disks[disk.old];
            let words = |guest: &Domain, disk: &Disk| {
                let bus = bus_of(guest, disk).map(|bus| bus.to_string());
                format!("{} ({})", bus.unwrap_or_default(), disk.name())
            };
            let (before, now) = (words(self.guest, old), words(&after, new));
            let (was, kind) = (self.guest.frontend_kind(old), after.frontend_kind(new));
            let is_hard_disk = matches!(new.frontend.effective_device(), Device::Disk | Device::Lun);
            let mut drives = kept.disks.iter();
            let is_loaded = drives.any(|other| kept.frontend_kind(other) == kind);
            let refusal = match os {
                _ if boots[0] != boots[1] => Some(other_boot_disk(self.guest, boots)),
                _ if !is_hard_disk => None,
                Some(GuestOs::Windows) if !is_loaded => Some(without_driver(kind)),
                None => Some(format!(
                    "a guest without a driver for {} does not find the disk, and the system of this guest is not known: write \
                     `os: linux` or `os: windows` for the guest",
                    kind.name()
                )),
                Some(GuestOs::Windows | GuestOs::Linux) => None,
            };
            let afterwards = match os {
                Some(GuestOs::Linux) if is_hard_disk => Some(of_linux(was, kind)),
                _ => None,
            };
            PlannedChange {
                what: format!("{} from {before} to {now}", storage_of(new)),
                differences: disk.differences,
                refusal,
                afterwards,
                definition: DefinitionChange {
                    frontend: Some((disk.old, frontend)),
                    ..surroundings
                },
                ..empty(ChangeKind::Bus, new.name())
            }
        })
    }
}

/// The guest side of a disk in its new place: what its new bus does not have goes, and what only its new bus has comes.
fn frontend(old: &Disk, placed: &Disk, libvirt: Option<Version>) -> Frontend {
    let mut disk = old.clone();
    for field in DISK_FIELDS {
        let [had, has] = [old, placed].map(|disk| fits(*field, &disk.frontend, libvirt));
        let value = placed.get(*field).filter(|_| has);
        if had == has {
            continue;
        }
        if let Some(slot) = disk.field_mut(*field) {
            slot.clear();
            if let Some(value) = value {
                slot.set(value);
            }
        }
    }
    let planned = &placed.frontend;
    Frontend {
        target: planned.target.clone(),
        bus: planned.bus,
        address: planned.address.clone(),
        iothread: planned.iothread,
        iothread_mapping: planned.iothread_mapping.clone(),
        ..disk.frontend
    }
}

/// True if a disk in such a place can have a field.
fn fits(field: DiskField, frontend: &Frontend, libvirt: Option<Version>) -> bool {
    let bus = frontend.effective_bus();
    match field {
        DiskField::IoThread | DiskField::IoThreadMapping => bus == TargetBus::Virtio,
        DiskField::DpoFua => bus == TargetBus::Scsi,
        DiskField::LoadParm => matches!(bus, TargetBus::Virtio | TargetBus::Scsi),
        _ => {
            let is_before = |(major, minor, micro)| {
                libvirt.map(|libvirt| libvirt < Version(major, minor, micro))
            };
            let takers = row_of(field).takers;
            let device = frontend.effective_device();
            takers.elsewhere(bus, device, is_before).is_none()
        }
    }
}

fn other_boot_disk(guest: &Domain, [before, after]: [Option<usize>; 2]) -> String {
    let name = |nth: Option<usize>| nth.map_or("no disk", |nth| guest.disks[nth].name());
    format!(
        "the firmware would try {} before {}: write a `target` that comes before those of the other disks on this bus",
        name(after),
        name(before)
    )
}

fn without_driver(kind: FrontendKind) -> String {
    let (name, driver) = (
        kind.name(),
        match kind.is_virtio() {
            true => " (the driver CD of virtio-win has it)",
            false => "",
        },
    );
    format!(
        "Windows loads a driver for {name} at boot only after it has seen a drive on it, and no other drive of the guest is on \
         it: add a second, small disk on it (`--change add`), start the guest once, install the driver{driver}, and change \
         the bus then"
    )
}

/// What must be true in a Linux guest before it starts with the disk on another bus.
fn of_linux(was: FrontendKind, kind: FrontendKind) -> String {
    let module = match kind {
        FrontendKind::VirtioBlk => "virtio_blk",
        FrontendKind::VirtioScsi => "virtio_scsi",
        FrontendKind::Sata => "ahci",
        FrontendKind::Ide => "ata_piix",
        FrontendKind::Usb => "usb_storage",
        FrontendKind::Nvme => "nvme",
        _ => "the driver of its controller",
    };
    let name = match was {
        FrontendKind::VirtioBlk => "/dev/vda1",
        FrontendKind::Nvme => "/dev/nvme0n1p1",
        _ => "/dev/sda1",
    };
    format!(
        "before it starts so, the initramfs of the guest needs `{module}` (`dracut --force --add-drivers {module}`, or a line in \
         `/etc/initramfs-tools/modules` and `update-initramfs -u`), and `/etc/fstab` and the boot loader need `UUID=` in place \
         of names such as `{name}`"
    )
}
