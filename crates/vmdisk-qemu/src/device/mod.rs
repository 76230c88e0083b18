//! `-device`: frontends and their controllers.

pub(crate) mod buses;
mod drive;
pub(crate) mod driver;
pub(crate) mod floppy;
pub(crate) mod ide;
pub(crate) mod nvme;
pub(crate) mod property;
pub(crate) mod read;
pub(crate) mod read_controller;
mod read_value;
pub(crate) mod recorded;
pub(crate) mod scsi;
pub(crate) mod target_name;
pub(crate) mod usb;
pub(crate) mod vhost_user_blk;
pub(crate) mod virtio;
mod virtio_blk;

use std::collections::{HashMap, HashSet};

use vmdisk_fields::{self as fields, CONTROLLER_FIELDS};
use vmdisk_model::{
    BackendSource, Controller, ControllerType, Device, Disk, DiskField, DriveAddress, FieldPath,
    Fields, TargetBus,
};

use crate::json::JsonObject;
use crate::names::is_identifier;
use crate::options::Medium;
use crate::placement::{Plan, PlannedController, controller_type};
use crate::writer::Writer;

/// A disk that is being written as a device.
pub(crate) struct DiskDevice<'a> {
    pub(crate) nth: usize,
    pub(crate) disk: &'a Disk,
    /// Name of the disk's nodes.
    pub(crate) stem: &'a str,
    /// The topmost node; `None` for an empty drive.
    pub(crate) node: Option<String>,
    /// The address on a controller, if the disk has one.
    pub(crate) place: Option<DriveAddress>,
    pub(crate) plan: &'a Plan,
    pub(crate) controllers: &'a ControllerIds,
}

/// The ids of the written controllers, and of the machine's built-in controllers.
pub(crate) type ControllerIds = HashMap<(ControllerType, u32), String>;

impl DiskDevice<'_> {
    /// The path of one of the disk's fields.
    pub(crate) const fn at(&self, field: DiskField) -> FieldPath {
        FieldPath::Disk(self.nth, field)
    }

    /// The id of the disk's controller.
    pub(crate) fn controller(&self, kind: ControllerType) -> &str {
        self.place
            .and_then(|place| self.controllers.get(&(kind, place.controller)))
            .map_or("", String::as_str)
    }
}

impl Writer<'_> {
    /// Writes every controller that is not built in, and returns their ids.
    pub(crate) fn write_controllers(&mut self, plan: &Plan) -> ControllerIds {
        let mut ids = ControllerIds::new();
        let mut keys: Vec<(ControllerType, u32)> = plan.controllers.keys().copied().collect();
        if self.medium() == Medium::Monitor {
            // Controllers without a disk do not matter when disks are attached.
            let disks = self.domain().disks.iter().zip(&plan.places);
            let used: HashSet<(ControllerType, u32)> = disks
                .filter_map(|(disk, place)| {
                    let kind = controller_type(disk.frontend.effective_bus())?;
                    Some((kind, (*place)?.controller))
                })
                .collect();
            keys.retain(|key| used.contains(key));
        }
        for (kind, index) in keys {
            let planned = &plan.controllers[&(kind, index)];
            let written = planned.written.map(|nth| &self.domain().controllers[nth]);
            if let Some(controller) = written {
                self.refuse_foreign_options(planned, controller);
            }
            let id = match kind {
                ControllerType::Scsi => self.write_scsi_controller(index, planned, written),
                ControllerType::Sata => self.write_sata_controller(index, planned, written),
                ControllerType::Ide => self.check_ide_controller(index, planned),
                ControllerType::Fdc => self.write_floppy_controller(index, planned),
                ControllerType::Usb => {
                    let id = self.write_usb_controller(index, planned, written);
                    self.write_usb_companions(index, &id, plan);
                    id
                }
                ControllerType::Nvme => self.write_nvme_controller(index, planned, written, plan),
            };
            ids.insert((kind, index), id);
        }
        ids
    }

    /// Reports options of virtio-scsi on other controllers.
    fn refuse_foreign_options(&mut self, planned: &PlannedController, controller: &Controller) {
        if controller.controller_type == ControllerType::Scsi && planned.scsi_model.is_virtio() {
            return;
        }
        let FieldPath::Controller(nth, _) = planned.origin else {
            return;
        };
        for field in CONTROLLER_FIELDS {
            if fields::controller(*field).virtio_scsi.is_some() && controller.has(*field) {
                self.problem(
                    FieldPath::Controller(nth, *field),
                    "this option is only for virtio-scsi controllers",
                );
            }
        }
    }

    /// Writes the device of a disk.
    pub(crate) fn write_disk_device(&mut self, device: &DiskDevice<'_>) {
        if matches!(device.disk.backend.source, BackendSource::VhostUser(_)) {
            self.write_vhost_user_blk(device);
            return;
        }
        let kind = device.disk.frontend.effective_device();
        let bus = device.disk.frontend.effective_bus();
        match (bus, kind) {
            (TargetBus::Virtio, Device::Disk) => self.write_virtio_blk(device),
            (TargetBus::Virtio, Device::Lun) => self.problem_with_help(
                device.at(DiskField::Device),
                "virtio-blk does not pass SCSI commands to the device",
                "use bus='scsi' with a virtio-scsi controller",
            ),
            (TargetBus::Scsi, Device::Disk | Device::Cdrom | Device::Lun) => {
                self.write_scsi_disk(device);
            }
            (TargetBus::Sata | TargetBus::Ide, Device::Disk | Device::Cdrom) => {
                self.write_ide_disk(device);
            }
            (TargetBus::Usb, Device::Disk | Device::Cdrom) => self.write_usb_disk(device),
            (TargetBus::Fdc, Device::Floppy) => self.write_floppy(device),
            (TargetBus::Nvme, Device::Disk) => self.write_nvme_namespace(device),
            // Only `-drive if=sd` reaches the slot of a board.
            (TargetBus::Sd, _) => self.problem_with_help(
                device.at(DiskField::TargetBus),
                "vmdisk does not write SD cards",
                "use another bus",
            ),
            (TargetBus::Xen | TargetBus::Uml, _) => self.problem(
                device.at(DiskField::TargetBus),
                format!("QEMU has no bus '{bus}'"),
            ),
            _ => self.problem(
                device.at(DiskField::Device),
                format!("bus '{bus}' does not support a {kind}"),
            ),
        }
    }

    /// The start of a disk's device: its driver and its id.
    pub(crate) fn begin_device(
        &mut self,
        driver: impl Into<String>,
        device: &DiskDevice<'_>,
    ) -> JsonObject {
        let id = self.device_id(device);
        let id = self.places().take_id(&id);
        JsonObject::new()
            .with("driver", driver.into())
            .with("id", id)
    }

    /// Reserves the id of a controller: the configured one, otherwise libvirt's.
    pub(crate) fn controller_id(&mut self, written: Option<&Controller>, usual: &str) -> String {
        let alias = written.and_then(|controller| controller.alias.as_deref());
        let own = alias.filter(|alias| alias.starts_with("ua-") && is_identifier(alias));
        self.places().take_id(own.unwrap_or(usual))
    }

    /// The id of a disk's device: its alias if that is a valid id, otherwise the stem.
    pub(crate) fn device_id(&self, device: &DiskDevice<'_>) -> String {
        let alias = device.disk.frontend.alias.as_deref();
        let valid = alias.filter(|alias| is_identifier(alias));
        valid.unwrap_or(device.stem).to_owned()
    }
}
