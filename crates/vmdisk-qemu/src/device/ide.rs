//! IDE and SATA disks, and AHCI controllers.

use vmdisk_fields::DeviceModel;
use vmdisk_model::{Controller, ControllerField, ControllerType, Device, DiskField, TargetBus};

use super::DiskDevice;
use crate::json::JsonObject;
use crate::placement::PlannedController;
use crate::writer::Writer;
use vmdisk_model::Board;

impl Writer<'_> {
    /// Writes an AHCI controller and returns the name of its buses without their number.
    pub(crate) fn write_sata_controller(
        &mut self,
        index: u32,
        planned: &PlannedController,
        written: Option<&Controller>,
    ) -> String {
        if index == 0 && self.machine().board == Board::Q35 {
            // Part of the chipset.
            return "ide".to_owned();
        }
        let id = self.controller_id(written, &format!("sata{index}"));
        let mut object = JsonObject::new()
            .with("driver", "ich9-ahci")
            .with("id", id.as_str());
        let address = written.and_then(|controller| controller.address.as_ref());
        let at = self.controller_field(planned, ControllerField::Address);
        self.pci_place(&mut object, address, at);
        let acpi_index = written.and_then(|controller| controller.acpi_index);
        object.push_some("acpi-index", acpi_index);
        self.device(object, planned.origin);
        id
    }

    /// Checks that the machine has this IDE controller: it has at most one, and none can be added.
    pub(crate) fn check_ide_controller(
        &mut self,
        index: u32,
        planned: &PlannedController,
    ) -> String {
        match self.machine().board {
            Board::I440fx | Board::Isa | Board::Unknown if index == 0 => {}
            Board::I440fx | Board::Isa | Board::Unknown => self.problem_with_help(
                planned.origin,
                "the machine has one IDE controller with four drives, and no other can be added",
                "use bus='sata' or 'virtio'",
            ),
            board @ (Board::Q35
            | Board::PcieVirt
            | Board::Pseries
            | Board::Ccw
            | Board::Microvm
            | Board::Mmio
            | Board::OtherPci) => self.problem_with_help(
                planned.origin,
                format!("{} has no IDE controller", board.name()),
                if board == Board::Q35 {
                    "use bus='sata'"
                } else {
                    "use bus='virtio' or 'scsi'"
                },
            ),
        }
        "ide".to_owned()
    }

    /// Writes a disk on IDE or AHCI; QEMU uses the same device for both.
    pub(crate) fn write_ide_disk(&mut self, device: &DiskDevice<'_>) {
        let model = match device.disk.frontend.effective_device() {
            Device::Cdrom => DeviceModel::IdeCd,
            Device::Disk | Device::Floppy | Device::Lun => DeviceModel::IdeHd,
        };
        if model == DeviceModel::IdeHd && !device.disk.is_writable() {
            self.problem_with_help(
                device.at(DiskField::ReadOnly),
                "an IDE or SATA disk cannot be read-only, only a CD drive can",
                "use a CD drive, or another bus",
            );
        }
        let Some(place) = device.place else {
            self.problem(device.at(DiskField::Address), "all controllers are full");
            return;
        };
        let at = device.at(DiskField::Address);
        let mut object = self.begin_device(model.name(), device);
        if device.disk.frontend.effective_bus() == TargetBus::Sata {
            // Each port is a bus of one unit.
            let is_there = place.unit <= 5 && place.bus == 0 && place.target == 0;
            if !is_there {
                self.problem(
                    at,
                    "a SATA disk needs bus 0, target 0 and a unit from 0 to 5",
                );
            }
            let controller = device.controller(ControllerType::Sata);
            object.push("bus", format!("{controller}.{}", place.unit));
        } else {
            let is_there = place.unit <= 1 && place.bus <= 1 && place.target == 0;
            if !is_there {
                self.problem(
                    at,
                    "an IDE disk needs a bus and a unit from 0 to 1, and target 0",
                );
            }
            object.push("bus", format!("ide.{}", place.bus));
            object.push("unit", place.unit);
        }
        object.push_some("drive", device.node.as_deref());
        self.disk_properties(&mut object, device, model);
        self.device(object, device.at(DiskField::Disk));
    }
}
