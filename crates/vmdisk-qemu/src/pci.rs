//! Places on PCI buses: as addressed, else left to QEMU.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_model::{Address, Domain, FieldPath, PciAddress, Switch};

use crate::board::Board;
use crate::json::JsonObject;
use crate::options::Medium;
use crate::writer::Writer;

/// Slots of the root bus and the further buses that addresses speak of.
#[derive(Debug)]
pub(crate) struct PciSlots {
    /// Number of devices without an address that fit the root bus, if that is known.
    room: Option<usize>,
    /// The slots to hand out. Only where some device has an address: QEMU gives a device without one
    /// the first slot that is free at that moment, which may be one that a later device is due.
    free: Option<std::vec::IntoIter<u32>>,
    /// Number of devices that were given no address.
    unaddressed: usize,
    /// Further buses, each with the field that speaks of it and whether it has more than one slot.
    buses: BTreeMap<u32, (FieldPath, bool)>,
}

impl PciSlots {
    /// Collects the addresses of a guest's disks and controllers.
    pub(crate) fn new(domain: &Domain, board: Board) -> Self {
        use vmdisk_model::{ControllerField, DiskField};
        let disks = domain.disks.iter().enumerate().map(|(nth, disk)| {
            (
                FieldPath::Disk(nth, DiskField::Address),
                &disk.frontend.address,
            )
        });
        let controllers = domain
            .controllers
            .iter()
            .enumerate()
            .map(|(nth, controller)| {
                (
                    FieldPath::Controller(nth, ControllerField::Address),
                    &controller.address,
                )
            });
        let mut addressed = BTreeSet::new();
        let mut buses: BTreeMap<u32, (FieldPath, bool)> = BTreeMap::new();
        for (at, address) in controllers.chain(disks) {
            match address {
                Some(Address::Pci(address)) if address.bus == 0 => {
                    addressed.insert(address.slot);
                }
                Some(Address::Pci(address)) => {
                    let bus = buses.entry(address.bus).or_insert((at, false));
                    bus.1 |= address.slot != 0;
                }
                Some(
                    Address::Drive(_)
                    | Address::Usb(_)
                    | Address::Ccw(_)
                    | Address::VirtioMmio
                    | Address::SpaprVio(_)
                    | Address::Unassigned
                    | Address::Other(_),
                )
                | None => {}
            }
        }
        let free = (!addressed.is_empty()).then(|| {
            let is_free =
                |slot: &u32| !addressed.contains(slot) && !board.taken_slots().contains(slot);
            (0..32).filter(is_free).collect::<Vec<_>>().into_iter()
        });
        addressed.extend(board.taken_slots());
        PciSlots {
            room: board
                .root_bus()
                .map(|_| 32_usize.saturating_sub(addressed.len())),
            free,
            unaddressed: 0,
            buses,
        }
    }
}

impl Writer<'_> {
    /// Adds the place of a PCI device to its properties.
    pub(crate) fn pci_place(
        &mut self,
        device: &mut JsonObject,
        address: Option<&Address>,
        at: FieldPath,
    ) {
        match address {
            Some(Address::Pci(address)) => self.pci_address(device, *address, at),
            Some(Address::Drive(_)) => {
                self.problem(at, "the device sits on PCI, not on a disk controller");
            }
            Some(
                Address::Usb(_) | Address::Ccw(_) | Address::VirtioMmio | Address::SpaprVio(_),
            ) => {
                self.problem(
                    at,
                    "the device sits on PCI, and its address is of another type",
                );
            }
            Some(Address::Unassigned) if self.medium == Medium::Monitor => {
                self.pci_next_slot(device, at);
            }
            Some(Address::Unassigned) => {
                let message = "a device that is plugged in later has no place on a command line";
                self.problem(at, message);
            }
            Some(Address::Other(word)) => {
                self.leave_out(
                    at,
                    format!("an address of type '{word}' is not written: QEMU chooses the place"),
                );
                self.pci_next_slot(device, at);
            }
            None => self.pci_next_slot(device, at),
        }
    }

    fn pci_address(&mut self, device: &mut JsonObject, address: PciAddress, at: FieldPath) {
        let PciAddress {
            domain,
            bus,
            slot,
            function,
            multifunction,
        } = address;
        let Some(root) = self.machine.board.root_bus() else {
            if self.machine.board == Board::Unknown {
                self.leave_out(
                    at,
                    "the PCI address is not written: the machine is not known, and with it the name of its bus",
                );
            } else {
                let board = self.machine.board.name();
                self.problem(at, format!("{board} has no PCI bus"));
            }
            return;
        };
        if domain != 0 {
            self.problem(at, format!("PCI domain {domain} has no name in QEMU"));
            return;
        }
        if bus == 0 && self.is_plugged_into_express() {
            self.problem_with_help(
                at,
                format!(
                    "{root} of {} takes nothing while the guest runs",
                    self.machine.board.name()
                ),
                "give it an address on a bus of a root port, or none",
            );
            return;
        }
        match bus {
            0 => device.push("bus", root),
            bus => device.push("bus", format!("pci.{bus}")),
        }
        match function {
            0 => device.push("addr", format!("{slot:#x}")),
            function => device.push("addr", format!("{slot:#x}.{function:#x}")),
        }
        device.push_some("multifunction", multifunction.map(|on| on == Switch::On));
    }

    /// True for a device that is plugged into a machine whose root bus takes none.
    fn is_plugged_into_express(&self) -> bool {
        self.medium == Medium::Monitor && self.machine.board.is_pci_express()
    }

    /// Names the port that a device without an address is plugged into.
    fn pci_next_port(&mut self, device: &mut JsonObject, at: FieldPath) {
        if self.machine.board == Board::Unknown && self.pci.unaddressed == 0 {
            self.leave_out(
                at,
                "no machine is named: one with PCI Express, such as q35, takes devices in its ports alone",
            );
        }
        self.pci.unaddressed += 1;
        if self.machine.board.is_pci_express() {
            let number = self.pci.unaddressed;
            let port = self.ids.take(&format!("hotplug{number}"));
            self.leave_out(
                at,
                format!("it goes into the port `{port}`, which QEMU must have been started with: -device pcie-root-port,id={port},chassis={number}"),
            );
            device.push("bus", port);
        }
    }

    fn pci_next_slot(&mut self, device: &mut JsonObject, at: FieldPath) {
        if self.medium == Medium::Monitor {
            // Which slots are free only the running QEMU knows.
            self.pci_next_port(device, at);
            return;
        }
        self.pci.unaddressed += 1;
        if let Some(room) = self.pci.room
            && self.pci.unaddressed > room
        {
            // Once: thousands more would tell nobody anything.
            if self.pci.unaddressed > room + 1 {
                return;
            }
            let board = self.machine.board.name();
            self.problem_with_help(
                at,
                format!("the PCI bus of {board} has room for {room} devices, and this is one more"),
                "put disks on a virtio-scsi controller, which takes hundreds",
            );
            return;
        }
        let slot = self.pci.free.as_mut().and_then(Iterator::next);
        if let (Some(slot), Some(root)) = (slot, self.machine.board.root_bus()) {
            device.push("bus", root);
            device.push("addr", format!("{slot:#x}"));
        }
    }

    /// Writes the ports and bridges that make the buses which addresses speak of.
    pub(crate) fn write_pci_buses(&mut self) {
        let Some(root) = self.machine.board.root_bus() else {
            return;
        };
        let buses = std::mem::take(&mut self.pci.buses);
        for (bus, (at, has_slots)) in buses {
            if self.medium == Medium::Monitor {
                let message = format!(
                    "its bus `pci.{bus}` must be there already: no port is made while the guest runs"
                );
                self.leave_out(at, message);
                continue;
            }
            let (driver, chassis) = match (self.machine.board.is_pci_express(), has_slots) {
                (true, false) => ("pcie-root-port", Some("chassis")),
                (true, true) => ("pcie-pci-bridge", None),
                (false, _) => ("pci-bridge", Some("chassis_nr")),
            };
            let id = self.ids.take(&format!("pci.{bus}"));
            let mut device = JsonObject::new().with("driver", driver).with("id", id);
            if let Some(chassis) = chassis {
                device.push(chassis, bus);
            }
            let before = self.pci.free.is_some();
            self.pci_next_slot(&mut device, at);
            if !before {
                device.push("bus", root);
            }
            self.device(device, at);
        }
    }
}
