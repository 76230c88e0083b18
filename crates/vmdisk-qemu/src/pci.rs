//! PCI addresses: as configured, otherwise left to QEMU.

use vmdisk_model::{Address, FieldPath, PciAddress, Switch};

use crate::json::JsonObject;
use crate::options::Medium;
use crate::pci_slots::NextSlot;
use crate::writer::Writer;
use vmdisk_model::Board;

impl Writer<'_> {
    /// Adds the address of a PCI device to its properties.
    pub(crate) fn pci_place(
        &mut self,
        device: &mut JsonObject,
        address: Option<&Address>,
        at: FieldPath,
    ) {
        match address {
            Some(Address::Pci(address)) => self.pci_address(device, *address, at),
            Some(Address::Drive(_)) => {
                self.problem(at, "the device is on PCI, not on a disk controller");
            }
            Some(
                Address::Usb(_) | Address::Ccw(_) | Address::VirtioMmio | Address::SpaprVio(_),
            ) => {
                self.problem(
                    at,
                    "the device is on PCI, but its address is of another type",
                );
            }
            Some(Address::Unassigned) if self.medium() == Medium::Monitor => {
                self.pci_next_slot(device, at);
            }
            Some(Address::Unassigned) => {
                let message = "a device that is attached later cannot be on a command line";
                self.problem(at, message);
            }
            // Any free slot.
            Some(Address::Other(word)) if word == "pci" => self.pci_next_slot(device, at),
            Some(Address::Other(word)) => {
                self.leave_out(
                    at,
                    format!("an address of type '{word}' is not written: QEMU chooses one"),
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
        let Some(root) = self.machine().board.root_bus() else {
            if self.machine().board == Board::Unknown {
                self.leave_out(
                    at,
                    "the PCI address is not written: without a machine, the name of the bus is not known",
                );
            } else {
                let board = self.machine().board.name();
                self.problem(at, format!("{board} has no PCI bus"));
            }
            return;
        };
        if domain != 0 {
            self.problem(at, format!("QEMU does not support PCI domain {domain}"));
            return;
        }
        if bus == 0 && self.is_plugged_into_express() {
            self.problem_with_help(
                at,
                format!(
                    "{root} of {} does not support hotplugging",
                    self.machine().board.name()
                ),
                "use an address on the bus of a root port, or none",
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

    /// True for a hotplugged device on a machine whose root bus does not support it.
    fn is_plugged_into_express(&self) -> bool {
        self.medium() == Medium::Monitor && self.machine().board.is_pci_express()
    }

    /// Chooses the port for a hotplugged device without an address.
    fn pci_next_port(&mut self, device: &mut JsonObject, at: FieldPath) {
        let number = self.places().pci().count();
        if self.machine().board == Board::Unknown && number == 1 {
            self.leave_out(
                at,
                "no machine is set: a machine with PCI Express, such as q35, supports hotplugging only in its ports",
            );
        }
        if self.machine().board.is_pci_express() {
            let port = self.places().take_id(&format!("hotplug{number}"));
            let id = device.text("id").unwrap_or_default();
            self.leave_out(
                at,
                format!("the device `{id}` uses the port `{port}`, which QEMU must have been started with: -device pcie-root-port,id={port},chassis={number}"),
            );
            device.push("bus", port);
        }
    }

    fn pci_next_slot(&mut self, device: &mut JsonObject, at: FieldPath) {
        if self.medium() == Medium::Monitor {
            // Only the running QEMU knows the free slots.
            self.pci_next_port(device, at);
            return;
        }
        match self.places().pci().next() {
            NextSlot::Qemus => {}
            NextSlot::Slot(slot) => {
                if let Some(root) = self.machine().board.root_bus() {
                    device.push("bus", root);
                    device.push("addr", format!("{slot:#x}"));
                }
            }
            // Reported once: thousands of repetitions would not help.
            NextSlot::Full {
                is_first: false, ..
            } => {}
            NextSlot::Full { room, .. } => {
                let board = self.machine().board.name();
                self.problem_with_help(
                    at,
                    format!(
                        "the PCI bus of {board} has room for {room} devices, and this one exceeds it"
                    ),
                    "put disks on a virtio-scsi controller, which supports hundreds",
                );
            }
        }
    }

    /// Writes the ports and bridges for the buses that addresses use.
    pub(crate) fn write_pci_buses(&mut self) {
        let Some(root) = self.machine().board.root_bus() else {
            return;
        };
        let buses = self.places().pci().take_buses();
        for (bus, (at, has_slots)) in buses {
            if self.medium() == Medium::Monitor {
                let message = format!(
                    "its bus `pci.{bus}` must exist already: ports cannot be added while the guest runs"
                );
                self.leave_out(at, message);
                continue;
            }
            let (driver, chassis) = match (self.machine().board.is_pci_express(), has_slots) {
                (true, false) => ("pcie-root-port", Some("chassis")),
                (true, true) => ("pcie-pci-bridge", None),
                (false, _) => ("pci-bridge", Some("chassis_nr")),
            };
            let id = self.places().take_id(&format!("pci.{bus}"));
            let mut device = JsonObject::new().with("driver", driver).with("id", id);
            if let Some(chassis) = chassis {
                device.push(chassis, bus);
            }
            let before = self.places().pci().are_handed_out();
            self.pci_next_slot(&mut device, at);
            if !before {
                device.push("bus", root);
            }
            self.device(device, at);
        }
    }
}
