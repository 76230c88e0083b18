//! Emulated NVMe controllers, and the namespaces that act as disks.

use vmdisk_facts::Capability;
use vmdisk_fields::DeviceModel;
use vmdisk_model::{Controller, ControllerField, ControllerType, DiskField, FieldPath};

use super::DiskDevice;
use crate::json::JsonObject;
use crate::placement::{Plan, PlannedController};
use crate::writer::Writer;

/// Bytes of the serial number in the identify page; QEMU 11.1 and later refuse more, earlier ones truncate.
const MAX_SERIAL: usize = 20;

/// The maximum number of namespaces of a controller (`NVME_MAX_NAMESPACES`).
const MAX_NAMESPACES: u32 = 256;

impl<'a> Writer<'a> {
    /// Writes an NVMe controller and returns its id.
    pub(crate) fn write_nvme_controller(
        &mut self,
        index: u32,
        planned: &PlannedController,
        written: Option<&Controller>,
        plan: &Plan,
    ) -> String {
        let id = self.controller_id(written, &format!("nvme{index}"));
        self.require(
            Capability::NvmeNamespaceDevice,
            planned.origin,
            "an NVMe namespace as a device of its own",
        );
        let mut object = JsonObject::new()
            .with("driver", "nvme")
            .with("id", id.as_str());
        let address = written.and_then(|controller| controller.address.as_ref());
        let at = self.controller_field(planned, ControllerField::Address);
        self.pci_place(&mut object, address, at);
        let acpi_index = written.and_then(|controller| controller.acpi_index);
        object.push_some("acpi-index", acpi_index);
        if let Some(serial) = self.nvme_serial(index, planned, plan) {
            object.push("serial", serial);
            self.device(object, planned.origin);
        }
        id
    }

    /// The serial number of a controller, which all of its disks share.
    fn nvme_serial(
        &mut self,
        index: u32,
        planned: &PlannedController,
        plan: &Plan,
    ) -> Option<&'a str> {
        let written = planned
            .written
            .and_then(|nth| self.domain().controllers[nth].serial.as_deref());
        if let Some(serial) = written
            && serial.len() > MAX_SERIAL
        {
            let at = self.controller_field(planned, ControllerField::Serial);
            let message = format!("an NVMe serial number is limited to {MAX_SERIAL} bytes");
            self.problem(at, message);
        }
        let mut found: Option<&'a str> = written;
        for nth in plan.namespaces.get(&index).into_iter().flatten().copied() {
            let Some(serial) = self.domain().disks[nth].frontend.serial.as_deref() else {
                continue;
            };
            let at = FieldPath::Disk(nth, DiskField::Serial);
            if serial.len() > MAX_SERIAL {
                self.problem(
                    at,
                    format!("an NVMe serial number is limited to {MAX_SERIAL} bytes"),
                );
            }
            match found {
                Some(other) if other != serial => self.problem_with_help(
                    at,
                    format!("the disks of one NVMe controller share its serial number, which is already '{other}'"),
                    "give each disk a controller of its own, as the targets `nvme0n1` and `nvme1n1` do, or remove all serial numbers but one",
                ),
                Some(_) => {}
                None => found = Some(serial),
            }
        }
        if found.is_none() {
            self.problem_with_help(
                planned.origin,
                "an NVMe controller requires a serial number",
                "set the serial number of the controller or of one of its disks",
            );
        }
        found
    }

    /// Writes a namespace of an NVMe controller.
    pub(crate) fn write_nvme_namespace(&mut self, device: &DiskDevice<'_>) {
        let at = device.at(DiskField::Address);
        let Some(place) = device.place else {
            self.problem(at, "all NVMe controllers are full");
            return;
        };
        if place.unit >= MAX_NAMESPACES || place.bus != 0 || place.target != 0 {
            let message =
                format!("an NVMe disk needs bus 0, target 0 and a unit below {MAX_NAMESPACES}");
            self.problem(at, message);
            return;
        }
        let mut object = self.begin_device("nvme-ns", device);
        object.push("bus", device.controller(ControllerType::Nvme));
        object.push("nsid", place.unit + 1);
        object.push_some("drive", device.node.as_deref());
        self.disk_properties(&mut object, device, DeviceModel::NvmeNamespace);
        self.device(object, device.at(DiskField::Disk));
    }
}
