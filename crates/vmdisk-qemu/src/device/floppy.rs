//! Floppy drives and their controller.

use vmdisk_fields::DeviceModel;
use vmdisk_model::{Address, ControllerType, Disk, DiskField, FieldPath, Frontend, TargetBus};

use super::DiskDevice;
use crate::argument::QemuOption;
use crate::index::Index;
use crate::json::JsonObject;
use crate::key_value::KeyValue;
use crate::notes::Notes;
use crate::placement::{Plan, PlannedController};
use crate::writer::Writer;
use vmdisk_model::Board;

/// The bus of the controller that is built into `pc`.
const BUILT_IN_BUS: &str = "floppy-bus.0";

impl Writer<'_> {
    /// Writes a floppy controller if the machine has none, and returns the name of its bus.
    pub(crate) fn write_floppy_controller(
        &mut self,
        index: u32,
        planned: &PlannedController,
        plan: &Plan,
    ) -> String {
        if index > 0 {
            self.problem(
                planned.origin,
                "a machine has only one floppy controller with two drives",
            );
            return String::new();
        }
        match self.machine().board {
            Board::I440fx => {
                if self.is_libvirt_style() {
                    self.global_floppy_boot_order(plan);
                }
                BUILT_IN_BUS.to_owned()
            }
            Board::Q35 => {
                let id = self.places().take_id("fdc0");
                let mut object = JsonObject::new().with("driver", "isa-fdc");
                // libvirt does not name the bus, because there is only one controller.
                if self.is_libvirt_style() {
                    self.floppy_boot_order(&mut object, plan);
                } else {
                    object.push("id", id.as_str());
                }
                self.device(object, planned.origin);
                format!("{id}.0")
            }
            // QEMU finds the only bus of this type.
            Board::Unknown => String::new(),
            board @ (Board::PcieVirt
            | Board::Pseries
            | Board::Ccw
            | Board::Isa
            | Board::Microvm
            | Board::Mmio
            | Board::OtherPci) => {
                self.problem(
                    planned.origin,
                    format!("{} has no floppy controller", board.name()),
                );
                String::new()
            }
        }
    }

    /// Adds the boot order of the drives to their controller.
    fn floppy_boot_order(&self, object: &mut JsonObject, plan: &Plan) {
        for (property, order, _) in self.floppy_orders(plan) {
            object.push(property, order);
        }
    }

    /// Writes the boot order of the drives for the built-in controller.
    fn global_floppy_boot_order(&mut self, plan: &Plan) {
        for (property, order, nth) in self.floppy_orders(plan) {
            let global = KeyValue::first(format!("isa-fdc.{property}={order}"));
            let at = FieldPath::Disk(nth, DiskField::BootOrder);
            self.push_pairs(QemuOption::Global, global, at);
        }
    }

    /// The boot order of each drive that has one, with the controller's property for it and the index of the disk.
    fn floppy_orders(&self, plan: &Plan) -> Vec<(&'static str, u32, usize)> {
        let mut orders = Vec::new();
        for (nth, disk) in self.domain().disks.iter().enumerate() {
            let place = plan.places[nth];
            let place = place.filter(|_| disk.frontend.effective_bus() == TargetBus::Fdc);
            let property = match place.map(|place| place.unit) {
                Some(0) => "bootindexA",
                Some(1) => "bootindexB",
                Some(_) | None => continue,
            };
            orders.extend(self.boot_index(nth).map(|order| (property, order, nth)));
        }
        orders
    }

    /// Writes a floppy drive.
    pub(crate) fn write_floppy(&mut self, device: &DiskDevice<'_>) {
        let Some(place) = device.place else {
            self.problem(
                device.at(DiskField::Address),
                "all floppy controllers are full",
            );
            return;
        };
        let at = device.at(DiskField::Address);
        let letter = match place.unit {
            0 => "A",
            1 => "B",
            _ => {
                self.problem(at, "a floppy controller has only units 0 and 1");
                return;
            }
        };
        // libvirt sets it on the controller.
        if let Some(order) = self
            .boot_index(device.nth)
            .filter(|_| !self.is_libvirt_style())
        {
            let global = KeyValue::default()
                .with("driver", "isa-fdc")
                .with("property", format!("bootindex{letter}"))
                .with("value", order.to_string());
            self.push_pairs(QemuOption::Global, global, device.at(DiskField::BootOrder));
        }
        let mut object = self.begin_device("floppy", device);
        let bus = device.controller(ControllerType::Fdc);
        if !bus.is_empty() && !self.is_libvirt_style() {
            object.push("bus", bus);
        }
        object.push("unit", place.unit);
        object.push_some("drive", device.node.as_deref());
        self.disk_properties(&mut object, device, DeviceModel::Floppy);
        self.device(object, device.at(DiskField::Disk));
    }
}

/// Reads the boot order of floppy drives, which is a property of the controller.
pub(crate) fn read_floppy_boot_order(index: &Index<'_>, disks: &mut [Disk], notes: &mut Notes<'_>) {
    // Units of the controller, with the properties for their boot order.
    let drives = [(0, "bootindexA"), (1, "bootindexB")]
        .map(|(unit, property)| (floppy_in(unit, disks), property));
    for (_, driver, device) in index.devices() {
        if driver != "isa-fdc" {
            continue;
        }
        for (nth, property) in drives {
            if let Some(nth) = nth
                && let Some(order) = device.take(property)
            {
                let at = FieldPath::Disk(nth, DiskField::BootOrder);
                disks[nth].frontend.boot_order = notes.number32(at, order);
            }
        }
    }
    for (option, global) in index.of_name("global") {
        let whole = global
            .value("property")
            .filter(|_| global.value("driver") == Some("isa-fdc"));
        for (nth, property) in drives {
            let order = match whole {
                Some(name) => global.get("value").filter(|_| name == property),
                None => global.get(&format!("isa-fdc.{property}")),
            };
            if let (Some(order), Some(nth)) = (order, nth) {
                let at = FieldPath::Disk(nth, DiskField::BootOrder);
                disks[nth].frontend.boot_order = notes.number32(at, order);
                global.accept(&["driver", "property", "value"]);
                global.take(&format!("isa-fdc.{property}"));
                notes.own(option, FieldPath::Disk(nth, DiskField::Disk));
            }
        }
    }
}

/// The disk in a unit of the floppy controller.
fn floppy_in(unit: u32, disks: &[Disk]) -> Option<usize> {
    disks.iter().position(|disk| {
        let Frontend { bus, address, .. } = &disk.frontend;
        *bus == Some(TargetBus::Fdc)
            && matches!(address, Some(Address::Drive(place)) if place.unit == unit)
    })
}
