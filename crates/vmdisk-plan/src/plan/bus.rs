//! Bus, target name and controllers of a disk.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_facts::Capability;
use vmdisk_model::{
    Address, Architecture, Board, Controller, ControllerField, ControllerType, DetectZeroes,
    Device, Discard, Disk, DiskField, DriveAddress, FieldPath, Format, Frontend, Image, IoThreadId,
    IoThreadQueues, MachineType, ScsiControllerModel, TargetBus,
};

use super::choice::Chosen;
use super::existing::ControllerKey;
use super::guest::is_pc;
use super::planner::Planner;
use crate::spec::{BackendSpec, BusSpec, DeviceAccess, DiskSpec, MediaSpec, SpecPath};

/// The bus of the model.
pub(super) const fn target_bus(bus: BusSpec) -> TargetBus {
    match bus {
        BusSpec::Virtio => TargetBus::Virtio,
        BusSpec::VirtioScsi | BusSpec::Scsi => TargetBus::Scsi,
        BusSpec::Sata => TargetBus::Sata,
        BusSpec::Ide => TargetBus::Ide,
        BusSpec::Usb => TargetBus::Usb,
        BusSpec::Nvme => TargetBus::Nvme,
        BusSpec::Fdc => TargetBus::Fdc,
        BusSpec::Sd => TargetBus::Sd,
    }
}

/// True if a drive for such media can be on the bus.
pub(super) const fn fits(media: MediaSpec, bus: BusSpec) -> bool {
    use BusSpec::{Fdc, Ide, Sata, Scsi, Usb, VirtioScsi};
    match media {
        MediaSpec::Disk => !matches!(bus, Fdc),
        MediaSpec::Floppy => matches!(bus, Fdc),
        MediaSpec::Cdrom => matches!(bus, Sata | Ide | Scsi | VirtioScsi | Usb),
    }
}

/// True if the guest is to see the host's SCSI device itself.
pub(crate) fn is_lun(disk: &DiskSpec) -> bool {
    match &disk.backend {
        BackendSpec::Device(device) => device.access == Some(DeviceAccess::Lun),
        BackendSpec::Network(network) => network.access == Some(DeviceAccess::Lun),
        _ => false,
    }
}

/// The names of disks on one bus, in the order in which they are handed out. Each NVMe disk has a serial number, which is
/// its controller's.
fn target_name(bus: TargetBus, nth: usize) -> String {
    if bus == TargetBus::Nvme {
        return format!("nvme{nth}n1");
    }
    // vda … vdz, vdaa …: like numbers, but without a zero.
    let mut letters = Vec::new();
    let mut rest = nth + 1;
    while rest > 0 {
        letters.push(b'a' + ((rest - 1) % 26) as u8);
        rest = (rest - 1) / 26;
    }
    let letters = letters.iter().rev().map(|letter| char::from(*letter));
    bus.target_prefix().chars().chain(letters).collect()
}

impl Planner<'_> {
    /// Makes a disk for each of the spec, with its bus and its name.
    pub(crate) fn name_disks(&mut self) {
        let spec = self.spec;
        let mut taken: BTreeSet<String> = spec
            .disks
            .iter()
            .filter_map(|disk| disk.target.clone())
            .collect();
        for name in self.existing.targets() {
            if !taken.insert(name.to_owned()) {
                self.refuse_target(name);
            }
        }
        let mut next: BTreeMap<&'static str, usize> = BTreeMap::new();
        for (index, disk) in spec.disks.iter().enumerate() {
            let bus = self.decide_disk(index, DiskField::TargetBus, "bus", disk.bus, |planner| {
                Some(choose_bus(planner, disk))
            });
            let bus = target_bus(bus.unwrap_or(BusSpec::Virtio));
            let target = self.decide_disk(
                index,
                DiskField::TargetDev,
                "target",
                disk.target.clone(),
                |_| {
                    let nth = next.entry(bus.target_prefix()).or_default();
                    let name = free_name(bus, nth, &mut taken);
                    let reason = format!("the next free name on bus {bus}");
                    Some(Chosen::by_default(name, reason))
                },
            );
            self.refuse_on_board(index, bus);
            let mut frontend = Frontend::new(target.unwrap_or_default(), bus);
            frontend.device = self.plan_device(index, disk);
            frontend.boot_order = disk.boot;
            // `plan_storage` puts the source there.
            let source = Image::file(String::new(), Format::Raw);
            self.domain.disks.push(Disk::new(frontend, source));
        }
        self.refuse_nvme_serials();
        if !self.existing.is_there() {
            self.boot_disk = self.domain.boot_disk();
        }
    }

    /// Refuses NVMe disks on one controller with different serial numbers.
    fn refuse_nvme_serials(&mut self) {
        let spec = self.spec;
        let mut serials: BTreeMap<String, &Option<String>> = BTreeMap::new();
        for (index, disk) in spec.disks.iter().enumerate() {
            let target = self.domain.disks[index].frontend.target.as_deref();
            let Some((controller, _)) = target.and_then(nvme_controller) else {
                continue;
            };
            let serial = *serials.entry(controller.to_owned()).or_insert(&disk.serial);
            if *serial == disk.serial {
                continue;
            }
            let free = (0..).map(|nth| format!("nvme{nth}"));
            let free = free
                .filter(|other| !serials.contains_key(other))
                .find(|other| !self.existing.targets().any(|name| name.starts_with(other)));
            let message = format!("the disks of {controller} share one serial number");
            let at = SpecPath::disk(index).key("target");
            self.refuse(at, message).help = free.map(|controller| {
                format!("write `target: {controller}n1`, on a controller of its own")
            });
        }
    }

    /// Refuses a disk whose bus the machine does not have.
    fn refuse_on_board(&mut self, index: usize, bus: TargetBus) {
        let board = self.domain.board();
        let at = SpecPath::disk(index).key("bus");
        if board.has_bus(bus) == Some(false) {
            let media = self.spec.disks[index].media();
            let buses = BusSpec::ALL
                .iter()
                .filter(|other| board.has_bus(target_bus(**other)) == Some(true))
                .filter(|other| fits(media, **other));
            let buses: Vec<String> = buses.map(|bus| format!("`bus: {bus}`")).collect();
            let help = match buses[..] {
                [] => format!("use another machine: this one has no bus for a {media} drive"),
                _ => format!("write {}", buses.join(" or ")),
            };
            let message = format!("machine {} has no bus {bus}", board.name());
            self.refuse(at, message).help = Some(help);
        }
    }

    /// Refuses the disks for which their bus has no room left.
    pub(crate) fn refuse_beyond_room(&mut self) {
        let mut whole = self.existing.clone_or_new(&self.domain);
        let before = whole.disks.len();
        whole.disks.extend_from_slice(&self.domain.disks);
        whole
            .controllers
            .extend_from_slice(&self.domain.controllers);
        for (nth, room) in whole.beyond_room(before) {
            let bus = whole.disks[nth].frontend.effective_bus();
            let help = match bus {
                TargetBus::Fdc => "a machine has only one floppy controller",
                TargetBus::Ide => "use `bus: sata` or `bus: virtio`",
                TargetBus::Scsi => {
                    "no PCI slot is left for a controller: remove a device of the guest, or use `bus: sata`"
                }
                _ => "use `bus: virtio-scsi`, of which one controller has room for 255 disks",
            };
            let at = SpecPath::disk(nth - before).key("bus");
            self.refuse(at, format!("bus {bus} has room for {room} drives"))
                .help = Some(help.to_owned());
        }
    }

    /// Refuses the disk that asks for the name of a disk of the guest.
    fn refuse_target(&mut self, name: &str) {
        let mut disks = self.spec.disks.iter();
        if let Some(index) = disks.position(|disk| disk.target.as_deref() == Some(name)) {
            let message = format!("the guest has a disk `{name}`");
            self.refuse(SpecPath::disk(index).key("target"), message)
                .help = Some("remove `target` to get the next free name".to_owned());
        }
    }

    fn plan_device(&mut self, index: usize, disk: &DiskSpec) -> Option<Device> {
        if is_lun(disk) {
            self.note_asked(
                FieldPath::Disk(index, DiskField::Device),
                "as",
                Some(DeviceAccess::Lun),
            );
            return Some(Device::Lun);
        }
        let media = self.decide_disk(index, DiskField::Device, "media", disk.media, |_| {
            let media = disk.media();
            let reason = match media {
                MediaSpec::Cdrom => "its name ends in .iso; write `media: disk` for a disk",
                MediaSpec::Disk | MediaSpec::Floppy => {
                    "a hard disk, unless `media` is set or the name ends in .iso"
                }
            };
            Some(Chosen::by_default(media, reason))
        });
        media.map(MediaSpec::device)
    }

    /// Adds the SCSI controllers that disks need, and says where on them each disk sits.
    pub(crate) fn plan_scsi_controllers(&mut self) {
        let spec = self.spec;
        let mut groups: BTreeMap<ControllerKey, Vec<usize>> = BTreeMap::new();
        // In the order of the first disk of each, so that a change elsewhere moves nothing.
        let mut order: Vec<ControllerKey> = Vec::new();
        for (index, disk) in self.domain.disks.iter().enumerate() {
            if disk.frontend.bus != Some(TargetBus::Scsi) {
                continue;
            }
            let frontend = &disk.frontend;
            let threads: Vec<u32> = frontend
                .iothread
                .iter()
                .chain(frontend.iothread_mapping.iter().map(|row| &row.iothread))
                .map(|id| id.0)
                .collect();
            let key = (threads, spec.disks[index].queues);
            let members = groups.entry(key.clone()).or_default();
            if members.is_empty() {
                order.push(key);
            }
            members.push(index);
        }
        let mut number = self.existing.next_scsi_controller();
        for key in order {
            let members = groups.remove(&key).unwrap_or_default();
            if let Some(controller) = self.existing.scsi_controller(&key) {
                let used = self.existing.units_of(controller);
                self.place_on_scsi(controller, &used, &members);
                continue;
            }
            self.add_scsi_controller(number, key, &members);
            self.place_on_scsi(number, &BTreeSet::new(), &members);
            number += 1;
        }
        self.add_usb_controller();
    }

    /// Adds the USB controller that libvirt adds to a PC, and to no `virt` machine.
    fn add_usb_controller(&mut self) {
        let mut disks = self.domain.disks.iter();
        let is_needed = disks.any(|disk| disk.frontend.bus == Some(TargetBus::Usb));
        if is_needed && self.domain.board() == Board::PcieVirt && !self.existing.has_usb() {
            let mut controller = Controller::new(ControllerType::Usb, 0);
            controller.other_model = Some("qemu-xhci".to_owned());
            self.domain.controllers.push(controller);
        }
    }

    fn add_scsi_controller(&mut self, number: u32, key: ControllerKey, members: &[usize]) {
        let (threads, queues) = key;
        let spec = self.spec;
        let at = self.domain.controllers.len();
        let is_asked = members
            .iter()
            .any(|index| spec.disks[*index].bus == Some(BusSpec::VirtioScsi));
        let mut controller = Controller::virtio_scsi(number);
        self.decide(
            FieldPath::Controller(at, ControllerField::Model),
            "controller",
            is_asked.then_some(ScsiControllerModel::VirtioScsi),
            |planner| {
                let reason = match is_pc(planner.domain.architecture) {
                    true => "the default on x86 is an emulated LSI 53C895A, which is slow",
                    false => "the fastest controller, for which every Linux guest has a driver",
                };
                Some(Chosen::by_default(ScsiControllerModel::VirtioScsi, reason))
            },
        );
        controller.queues = queues.or_else(|| self.controller_queues(at));
        match threads[..] {
            [] => {}
            [one] => controller.iothread = Some(IoThreadId(one)),
            [..] => {
                controller.iothread_mapping = threads
                    .iter()
                    .map(|id| IoThreadQueues {
                        iothread: IoThreadId(*id),
                        queues: Vec::new(),
                    })
                    .collect();
            }
        }
        self.domain.controllers.push(controller);
    }

    /// Gives disks free units of a SCSI controller: that of its name to a disk with a name in the spec, else the next.
    fn place_on_scsi(&mut self, controller: u32, used: &BTreeSet<u32>, members: &[usize]) {
        let mut used = used.clone();
        let mut unnamed = Vec::new();
        for index in members {
            let target = self.spec.disks[*index].target.as_deref();
            let named = target.and_then(|name| DriveAddress::of_target(TargetBus::Scsi, name));
            match named.filter(|place| place.controller == controller) {
                Some(place) if used.insert(place.unit) => self.place_disk(*index, place),
                _ => unnamed.push(*index),
            }
        }
        // A narrow bus keeps unit 7 for itself, and so does libvirt on every one.
        let units = (0..).filter(|unit| *unit != 7 && !used.contains(unit));
        for (unit, index) in units.zip(unnamed) {
            self.place_disk(index, DriveAddress::of_unit(controller, unit));
        }
    }

    fn place_disk(&mut self, index: usize, place: DriveAddress) {
        let frontend = &mut self.domain.disks[index].frontend;
        // On SCSI both belong to the controller.
        frontend.iothread = None;
        frontend.iothread_mapping.clear();
        frontend.queues = None;
        frontend.address = Some(Address::Drive(place));
    }
}

fn choose_bus(planner: &Planner<'_>, disk: &DiskSpec) -> Chosen<BusSpec> {
    if is_lun(disk) {
        let reason = "only a SCSI controller passes SCSI commands on";
        return Chosen::by_default(BusSpec::VirtioScsi, reason);
    }
    let is_pc = planner
        .domain
        .machine
        .as_ref()
        .is_some_and(MachineType::is_i440fx);
    match disk.media() {
        MediaSpec::Floppy => Chosen::by_default(BusSpec::Fdc, "a floppy drive"),
        _ if planner.domain.board() == Board::Isa => {
            Chosen::by_default(BusSpec::Ide, "the only bus of disks on this machine")
        }
        MediaSpec::Cdrom => match planner.domain.architecture {
            Some(Architecture::X86_64 | Architecture::I686) if is_pc => Chosen::by_default(
                BusSpec::Ide,
                "every installer has a driver for a CD drive on it",
            ),
            Some(Architecture::X86_64 | Architecture::I686) => Chosen::by_default(
                BusSpec::Sata,
                "every installer has a driver for a CD drive on it",
            ),
            _ => Chosen::by_default(BusSpec::VirtioScsi, "this machine has no AHCI"),
        },
        MediaSpec::Disk if wants_hidden_discards(planner, disk) => {
            let reason = "with this machine type virtio-blk hides discards from the guest";
            Chosen::by_fact(BusSpec::VirtioScsi, reason).instead_of("machine-type-old-defaults")
        }
        MediaSpec::Disk if planner.is_windows_pc() => {
            let bus = if is_pc { BusSpec::Ide } else { BusSpec::Sata };
            let reason = "the installer of Windows has no driver for virtio; with the driver CD of virtio-win, write `drivers: virtio`";
            Chosen::by_default(bus, reason)
        }
        MediaSpec::Disk => {
            let reason = "the fastest bus that Linux and BSD guests support; Windows needs a driver for it (`os: windows`)";
            Chosen::by_default(BusSpec::Virtio, reason).instead_of("bus-emulated")
        }
    }
}

/// True if discards are required that a virtio-blk device of this machine type does not support.
fn wants_hidden_discards(planner: &Planner<'_>, disk: &DiskSpec) -> bool {
    let is_wanted =
        disk.discard == Some(Discard::Unmap) || disk.detect_zeroes == Some(DetectZeroes::Unmap);
    let is_image = !matches!(disk.backend, BackendSpec::VhostUserBlk(_));
    // Only virtio-blk has it.
    let needs_virtio_blk = disk.queue_size.is_some();
    is_wanted
        && is_image
        && !needs_virtio_blk
        && !planner.host.may(Capability::MachineVirtioBlkDiscard)
}

/// The controller and the namespace in the name of an NVMe disk.
fn nvme_controller(target: &str) -> Option<(&str, &str)> {
    let number = target.strip_prefix("nvme")?.find('n')?;
    Some(target.split_at("nvme".len() + number))
}

/// The first name on `bus` from number `nth` that is not taken; it is taken now, and `nth` is the number after it.
fn free_name(bus: TargetBus, nth: &mut usize, taken: &mut BTreeSet<String>) -> String {
    loop {
        let name = target_name(bus, *nth);
        *nth += 1;
        let is_on = |own: &str| {
            let mut others = taken.iter().filter_map(|other| nvme_controller(other));
            others.any(|(other, _)| other == own)
        };
        let is_shared = nvme_controller(&name).is_some_and(|(own, _)| is_on(own));
        if !is_shared && taken.insert(name.clone()) {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_on_behind_z() {
        for (nth, name) in [
            (0, "vda"),
            (25, "vdz"),
            (26, "vdaa"),
            (701, "vdzz"),
            (702, "vdaaa"),
        ] {
            assert_eq!(target_name(TargetBus::Virtio, nth), name);
        }
        assert_eq!(target_name(TargetBus::Nvme, 1), "nvme1n1");
        assert_eq!(target_name(TargetBus::Usb, 1), "sdb");
    }
}
