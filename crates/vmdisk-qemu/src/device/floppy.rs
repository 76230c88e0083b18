//! Floppy drives and their controller.

use vmdisk_model::{ControllerType, DiskField};

use super::DiskDevice;
use super::property::DeviceModel;
use crate::argument::QemuOption;
use crate::board::Board;
use crate::json::JsonObject;
use crate::key_value::KeyValue;
use crate::options::Style;
use crate::placement::PlannedController;
use crate::writer::Writer;

/// The bus of the controller that `pc` brings along.
const BUILT_IN_BUS: &str = "floppy-bus.0";

impl Writer<'_> {
    /// Writes a floppy controller where the machine has none, and hands back the name of its bus.
    pub(crate) fn write_floppy_controller(
        &mut self,
        index: u32,
        planned: &PlannedController,
    ) -> String {
        if index > 0 {
            self.problem(
                planned.origin,
                "a machine has one floppy controller with two drives",
            );
            return String::new();
        }
        match self.machine.board {
            Board::I440fx => BUILT_IN_BUS.to_owned(),
            Board::Q35 => {
                let id = self.ids.take("fdc0");
                let mut object = JsonObject::new().with("driver", "isa-fdc");
                // libvirt leaves the drives to find the only controller there is.
                if !self.is_libvirt_style() {
                    object.push("id", id.as_str());
                }
                self.device(object, planned.origin);
                format!("{id}.0")
            }
            // Left to QEMU, which finds the only bus of its kind.
            Board::Unknown => String::new(),
            board @ (Board::PcieVirt
            | Board::Pseries
            | Board::Ccw
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
                "no floppy controller has room for this drive",
            );
            return;
        };
        let at = device.at(DiskField::Address);
        let letter = match place.unit {
            0 => "A",
            1 => "B",
            _ => {
                self.problem(at, "a floppy controller has units 0 and 1");
                return;
            }
        };
        if let Some(order) = device.disk.frontend.boot_order {
            let property = format!("bootindex{letter}");
            let global = match self.style {
                Style::Readable => KeyValue::default()
                    .with("driver", "isa-fdc")
                    .with("property", property)
                    .with("value", order.to_string()),
                Style::Libvirt => KeyValue::first(format!("isa-fdc.{property}={order}")),
            };
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

impl crate::reader::Reader<'_> {
    /// Reads the boot order of floppy drives, which is the controller's.
    pub(crate) fn read_floppy_boot_order(&mut self) {
        for (option, global) in self.of_name("global") {
            let word = |key: &str| global.peek(key).map(|property| property.value.as_str());
            let whole = word("property").filter(|_| word("driver") == Some("isa-fdc"));
            for (unit, property) in [(0, "bootindexA"), (1, "bootindexB")] {
                let order = match whole {
                    Some(name) => global.peek("value").filter(|_| name == property),
                    None => global.peek(&format!("isa-fdc.{property}")),
                };
                let Some(order) = order else { continue };
                let found = self.domain.disks.iter().position(|disk| {
                    let frontend = &disk.frontend;
                    let place = match &frontend.address {
                        Some(vmdisk_model::Address::Drive(place)) => Some(place.unit),
                        Some(vmdisk_model::Address::Pci(_) | vmdisk_model::Address::Other(_))
                        | None => None,
                    };
                    frontend.bus == Some(vmdisk_model::TargetBus::Fdc) && place == Some(unit)
                });
                if let Some(nth) = found {
                    let at = vmdisk_model::FieldPath::Disk(nth, DiskField::BootOrder);
                    let order = self.number32(at, order);
                    self.domain.disks[nth].frontend.boot_order = order;
                    for key in ["driver", "property", "value"] {
                        global.get(key);
                    }
                    global.get(&format!("isa-fdc.{property}"));
                    self.owners
                        .insert(option, vmdisk_model::FieldPath::Disk(nth, DiskField::Disk));
                }
            }
        }
    }
}
