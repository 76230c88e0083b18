//! Floppy drives and their controller.

use vmdisk_fields::DeviceModel;
use vmdisk_model::{Address, ControllerType, Disk, DiskField, FieldPath, Frontend, TargetBus};

use super::DiskDevice;
use crate::argument::QemuOption;
use crate::index::Index;
use crate::json::JsonObject;
use crate::key_value::KeyValue;
use crate::notes::Notes;
use crate::placement::PlannedController;
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
    ) -> String {
        if index > 0 {
            self.problem(
                planned.origin,
                "a machine has only one floppy controller with two drives",
            );
            return String::new();
        }
        match self.machine().board {
            Board::I440fx => BUILT_IN_BUS.to_owned(),
            Board::Q35 => {
                let id = self.places().take_id("fdc0");
                let object = JsonObject::new()
                    .with("driver", "isa-fdc")
                    .with("id", id.as_str());
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
        if let Some(order) = self.boot_index(device.nth) {
            let global = KeyValue::default()
                .with("driver", "isa-fdc")
                .with("property", format!("bootindex{letter}"))
                .with("value", order.to_string());
            self.push_pairs(QemuOption::Global, global, device.at(DiskField::BootOrder));
        }
        let mut object = self.begin_device("floppy", device);
        let bus = device.controller(ControllerType::Fdc);
        if !bus.is_empty() {
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
