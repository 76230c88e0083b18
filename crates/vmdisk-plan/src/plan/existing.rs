//! A guest that disks are added to: the names and places in use, and the devices that can serve more disks.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_model::{
    Address, Architecture, Controller, ControllerType, Disk, Domain, DomainType, MachineType,
    ScsiControllerModel, TargetBus,
};

use crate::spec::{GuestDrivers, GuestSpec, GuestType};

/// Why one SCSI controller cannot serve for another disk: its event loops and its queues are its own.
pub(super) type ControllerKey = (Vec<u32>, Option<u32>);

/// The guest that disks are added to; nothing for a guest that is new.
#[derive(Clone, Copy)]
pub(crate) struct Existing<'a>(Option<&'a Domain>);

/// The machine of a guest that exists; on x86, `pc` is the default of libvirt and QEMU.
pub(crate) fn machine_of(guest: &Domain) -> Option<String> {
    let is_pc = matches!(
        guest.architecture,
        None | Some(Architecture::X86_64 | Architecture::I686)
    );
    let machine = guest.machine.as_ref().map(|MachineType(name)| name.clone());
    machine.or_else(|| is_pc.then(|| "pc".to_owned()))
}

/// The guest as a spec, as far as the choices for its disks depend on it. A guest with a disk on virtio has the driver.
pub(super) fn as_asked(guest: &Domain, asked: Option<&GuestSpec>) -> GuestSpec {
    let mut disks = guest.disks.iter();
    let has_virtio = disks.any(|disk| disk.frontend.effective_bus() == TargetBus::Virtio);
    let drivers = asked.and_then(|asked| asked.drivers);
    GuestSpec {
        os: asked.and_then(|asked| asked.os),
        drivers: drivers.or(has_virtio.then_some(GuestDrivers::Virtio)),
        name: guest.name.clone(),
        guest_type: match guest.domain_type {
            Some(DomainType::Qemu) => Some(GuestType::Qemu),
            Some(DomainType::Kvm | DomainType::Other(_)) | None => Some(GuestType::Kvm),
        },
        arch: guest.architecture,
        machine: machine_of(guest),
        firmware: guest.firmware,
        vcpus: guest.vcpus,
        cpu: guest.cpu,
        memory: guest.memory,
        ..GuestSpec::default()
    }
}

impl<'a> Existing<'a> {
    pub(super) const fn new(guest: Option<&'a Domain>) -> Self {
        Existing(guest)
    }

    pub(super) const fn is_there(self) -> bool {
        self.0.is_some()
    }

    pub(super) fn disks(self) -> &'a [Disk] {
        self.0.map_or(&[], |guest| &guest.disks)
    }

    /// Names of its disks.
    pub(super) fn targets(self) -> impl Iterator<Item = &'a str> {
        let disks = self.disks().iter();
        disks.filter_map(|disk| disk.frontend.target.as_deref())
    }

    /// Its iothreads, each with the number of its disks and controllers.
    pub(super) fn iothreads(self) -> BTreeMap<u32, usize> {
        let Some(guest) = self.0 else {
            return BTreeMap::new();
        };
        let mut load: BTreeMap<u32, usize> = guest
            .iothreads
            .iter()
            .map(|thread| (thread.id.0, 0))
            .collect();
        let of_disks = guest.disks.iter().flat_map(|disk| {
            let several = disk
                .frontend
                .iothread_mapping
                .iter()
                .map(|row| row.iothread);
            disk.frontend.iothread.into_iter().chain(several)
        });
        let of_controllers = guest.controllers.iter().flat_map(|controller| {
            let several = controller.iothread_mapping.iter().map(|row| row.iothread);
            controller.iothread.into_iter().chain(several)
        });
        for id in of_disks.chain(of_controllers) {
            if let Some(users) = load.get_mut(&id.0) {
                *users += 1;
            }
        }
        load
    }

    /// The guest, or one with the machine of another and without devices.
    pub(super) fn clone_or_new(self, other: &Domain) -> Domain {
        self.0.cloned().unwrap_or_else(|| Domain {
            architecture: other.architecture,
            machine: other.machine.clone(),
            ..Domain::default()
        })
    }

    /// True if it has a USB controller.
    pub(super) fn has_usb(self) -> bool {
        let mut controllers = self.0.iter().flat_map(|guest| &guest.controllers);
        controllers.any(|controller| controller.controller_type == ControllerType::Usb)
    }

    fn scsi_controllers(self) -> impl Iterator<Item = (u32, &'a Controller)> {
        let controllers = self.0.map_or(&[][..], |guest| &guest.controllers);
        controllers
            .iter()
            .filter(|controller| controller.controller_type == ControllerType::Scsi)
            .map(|controller| (controller.index.unwrap_or_default(), controller))
    }

    /// The first number that no SCSI controller has.
    pub(super) fn next_scsi_controller(self) -> u32 {
        let last = self.scsi_controllers().map(|(index, _)| index).max();
        last.map_or(0, |index| index + 1)
    }

    /// A virtio-scsi controller with these iothreads and queues.
    pub(super) fn scsi_controller(self, (threads, queues): &ControllerKey) -> Option<u32> {
        let fits = |controller: &Controller| {
            let several = controller.iothread_mapping.iter().map(|row| row.iothread);
            let own: Vec<u32> = controller
                .iothread
                .into_iter()
                .chain(several)
                .map(|id| id.0)
                .collect();
            controller.scsi_model == Some(ScsiControllerModel::VirtioScsi)
                && own == *threads
                && (queues.is_none() || controller.queues == *queues)
        };
        let mut all = self.scsi_controllers();
        all.find(|(_, controller)| fits(controller))
            .map(|(index, _)| index)
    }

    /// Units of a SCSI controller that disks and host devices use.
    pub(super) fn units_of(self, controller: u32) -> BTreeSet<u32> {
        let place = |disk: &'a Disk| match &disk.frontend.address {
            Some(Address::Drive(place)) => Some(place),
            _ => None,
        };
        let disks = self.disks().iter();
        let on_scsi = disks.filter(|disk| disk.frontend.bus == Some(TargetBus::Scsi));
        let of_host = self.0.iter().flat_map(|guest| &guest.scsi_host_devices);
        on_scsi
            .filter_map(place)
            .chain(of_host)
            .filter(|place| place.controller == controller)
            .map(|place| place.unit)
            .collect()
    }
}
