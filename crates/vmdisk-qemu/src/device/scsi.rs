//! SCSI controllers and the disks on them.

use vmdisk_facts::Capability;
use vmdisk_fields::{self as fields, DeviceModel};
use vmdisk_model::{
    Address, BackendSource, Controller, ControllerField, ControllerType, Device, DiskField,
    DriveAddress, FieldPath, Fields, Format, NetworkProtocol, Protocol, ScsiControllerModel,
    VirtioModel,
};

use super::DiskDevice;
use super::property::json_of;
use super::virtio::VirtioField;
use crate::json::JsonObject;
use crate::object::iothread::vq_mapping;
use crate::placement::PlannedController;
use crate::writer::Writer;

/// QEMU reserves two of its 1024 virtqueues for control and events.
const MAX_QUEUES: u32 = 1022;

/// QEMU 10.0 and later refuse longer serial numbers, earlier ones truncate.
const MAX_SERIAL: usize = 36;

/// The properties of a virtio-scsi controller, in the order in which libvirt writes them.
const PROPERTIES: &[ControllerField] = &[
    ControllerField::Iommu,
    ControllerField::Ats,
    ControllerField::Packed,
    ControllerField::PagePerVq,
    ControllerField::IoThread,
    ControllerField::Queues,
    ControllerField::IoThreadMapping,
    ControllerField::CmdPerLun,
    ControllerField::MaxSectors,
    ControllerField::IoEventFd,
];

impl Writer<'_> {
    /// Writes a SCSI controller and returns its id.
    pub(crate) fn write_scsi_controller(
        &mut self,
        index: u32,
        planned: &PlannedController,
        written: Option<&Controller>,
    ) -> String {
        let id = self.controller_id(written, &format!("scsi{index}"));
        let at = self.controller_field(planned, ControllerField::Model);
        let address = written.and_then(|controller| controller.address.as_ref());
        let place_at = self.controller_field(planned, ControllerField::Address);
        let simple = match planned.scsi_model {
            ScsiControllerModel::VirtioScsi => Err(None),
            ScsiControllerModel::VirtioTransitional => Err(Some(VirtioModel::Transitional)),
            ScsiControllerModel::VirtioNonTransitional => Err(Some(VirtioModel::NonTransitional)),
            ScsiControllerModel::Lsilogic => Ok("lsi53c895a"),
            ScsiControllerModel::Lsisas1068 => Ok("mptsas1068"),
            ScsiControllerModel::Lsisas1078 => Ok("megasas"),
            ScsiControllerModel::Vmpvscsi => Ok("pvscsi"),
            ScsiControllerModel::Ibmvscsi => Ok("spapr-vscsi"),
            ScsiControllerModel::Dc390 => Ok("dc390"),
            ScsiControllerModel::Am53c974 => Ok("am53c974"),
            model @ (ScsiControllerModel::Auto
            | ScsiControllerModel::Buslogic
            | ScsiControllerModel::Ncr53c90) => {
                self.problem(
                    at,
                    format!("QEMU has no '{model}' controller that can be added"),
                );
                return id;
            }
        };
        let transport = self.transport(address);
        let driver = match simple {
            Ok(driver) => driver.to_owned(),
            Err(standard) => self.virtio_driver("virtio-scsi", transport, standard, at),
        };
        let mut object = JsonObject::new()
            .with("driver", driver)
            .with("id", id.as_str());
        match (simple, planned.scsi_model) {
            // On the bus of the hypervisor.
            (Ok(_), ScsiControllerModel::Ibmvscsi) => {
                if let Some(Address::SpaprVio(register)) = address {
                    object.push("reg", *register);
                }
            }
            (Ok(_), _) => self.pci_place(&mut object, address, place_at),
            (Err(_), _) => self.virtio_place(&mut object, transport, address, place_at),
        }
        if let (Err(standard), Some(controller)) = (simple, written) {
            let Controller {
                virtio,
                ioeventfd,
                acpi_index,
                ..
            } = controller;
            self.virtio_without_legacy(&mut object, virtio, standard, address);
            self.check_transport(transport, virtio, *ioeventfd, *acpi_index, |field| {
                FieldPath::Controller(
                    planned.written.unwrap_or_default(),
                    match field {
                        VirtioField::Ats => ControllerField::Ats,
                        VirtioField::PagePerVq => ControllerField::PagePerVq,
                        VirtioField::AcpiIndex => ControllerField::AcpiIndex,
                        VirtioField::IoEventFd => ControllerField::IoEventFd,
                    },
                )
            });
            self.virtio_scsi_properties(&mut object, planned, controller);
        }
        let acpi_index = written.and_then(|controller| controller.acpi_index);
        object.push_some("acpi-index", acpi_index);
        self.device(object, planned.origin);
        id
    }

    fn virtio_scsi_properties(
        &mut self,
        object: &mut JsonObject,
        planned: &PlannedController,
        controller: &Controller,
    ) {
        let at = |writer: &Self, field| writer.controller_field(planned, field);
        if let Some(queues) = controller.queues
            && queues > MAX_QUEUES
        {
            let at = at(self, ControllerField::Queues);
            let message = format!("{queues} queues: QEMU supports 1 to {MAX_QUEUES}");
            self.problem(at, message);
        }
        let mapping = &controller.iothread_mapping;
        if !mapping.is_empty() {
            let at = at(self, ControllerField::IoThreadMapping);
            self.require(
                Capability::IothreadVqMappingScsi,
                at,
                "a mapping of a controller's queues to iothreads",
            );
            if controller.iothread.is_some() {
                self.problem(
                    at,
                    "a controller can have one iothread or a mapping, not both",
                );
            }
        }
        for field in PROPERTIES {
            let row = fields::controller(*field);
            let value = match (field, controller.get(*field)) {
                (ControllerField::IoThreadMapping, _) => {
                    (!mapping.is_empty()).then(|| vq_mapping(mapping))
                }
                // 0 queues are unset for libvirt and refused by QEMU.
                (ControllerField::Queues, _) if controller.queues == Some(0) => None,
                (_, value) => value.map(|value| json_of(row, value)),
            };
            if let (Some(property), Some(value)) = (row.virtio_scsi, value) {
                object.push(property, value);
            }
        }
    }

    /// The path of a controller's field, or of the disk that needs the controller.
    pub(crate) fn controller_field(
        &self,
        planned: &PlannedController,
        field: ControllerField,
    ) -> FieldPath {
        match planned.written {
            Some(nth) => FieldPath::Controller(nth, field),
            None => planned.origin,
        }
    }

    /// Writes a disk on a SCSI controller.
    pub(crate) fn write_scsi_disk(&mut self, device: &DiskDevice<'_>) {
        let model = match device.disk.frontend.effective_device() {
            Device::Disk | Device::Floppy => DeviceModel::ScsiHd,
            Device::Cdrom => DeviceModel::ScsiCd,
            Device::Lun => {
                self.check_passthrough(device);
                DeviceModel::ScsiBlock
            }
        };
        let Some(place) = device.place else {
            self.problem(
                device.at(DiskField::Address),
                "all SCSI controllers are full",
            );
            return;
        };
        let controller = &device.plan.controllers[&(ControllerType::Scsi, place.controller)];
        let mut object = self.begin_device(model.name(), device);
        let id = device.controller(ControllerType::Scsi);
        object.push("bus", format!("{id}.0"));
        self.scsi_place(&mut object, device, controller.scsi_model, place);
        object.push_some("drive", device.node.as_deref());
        if let Some(serial) = &device.disk.frontend.serial
            && model != DeviceModel::ScsiBlock
        {
            if serial.len() > MAX_SERIAL {
                let message = format!("a SCSI serial number is limited to {MAX_SERIAL} bytes");
                self.problem(device.at(DiskField::Serial), message);
            }
            // The source of the guest's by-id names; QEMU uses at most 20 bytes of `serial` for it.
            object.push("device_id", serial.as_str());
        }
        self.disk_properties(&mut object, device, model);
        self.device(object, device.at(DiskField::Disk));
    }

    fn scsi_place(
        &mut self,
        object: &mut JsonObject,
        device: &DiskDevice<'_>,
        model: ScsiControllerModel,
        place: DriveAddress,
    ) {
        let DriveAddress {
            controller: _,
            bus,
            target,
            unit,
        } = place;
        if model == ScsiControllerModel::Lsilogic {
            // The single bus of this model has only targets, which addresses call units.
            if bus != 0 || target != 0 {
                let message = "a disk on an lsilogic controller needs bus 0 and target 0; its unit identifies it";
                self.problem(device.at(DiskField::Address), message);
            }
            object.push("scsi-id", unit);
            return;
        }
        object.push("channel", bus);
        object.push("scsi-id", target);
        object.push("lun", unit);
    }

    /// Reports settings that prevent the pass-through of the host's logical unit.
    fn check_passthrough(&mut self, device: &DiskDevice<'_>) {
        let backend = &device.disk.backend;
        if let BackendSource::Image(image) = &backend.source {
            let format = image.format;
            let is_device = match &image.protocol {
                Protocol::HostDevice { .. } => true,
                // The unit of an iSCSI target accepts commands too.
                Protocol::Network(source) => source.protocol == NetworkProtocol::Iscsi,
                Protocol::File { .. }
                | Protocol::Directory { .. }
                | Protocol::VhostVdpa { .. }
                | Protocol::Nvme(_) => false,
                // Reported as an unsupported source.
                Protocol::Volume(_) | Protocol::Other(_) => true,
            };
            if !is_device || format.is_some_and(|format| format != Format::Raw) {
                self.problem(
                    device.at(DiskField::Device),
                    "only a raw block device can be passed through with its SCSI commands",
                );
            }
        }
        for (field, is_set, what) in [
            (DiskField::Iotune, backend.iotune.is_some(), "limits"),
            (
                DiskField::ThrottleFilters,
                !backend.throttle_filters.is_empty(),
                "limits",
            ),
            (
                DiskField::CopyOnRead,
                backend.copy_on_read == Some(vmdisk_model::Switch::On),
                "copy-on-read",
            ),
        ] {
            if is_set {
                self.problem(
                    device.at(field),
                    format!("a passed-through SCSI device does not support {what}: scsi-block refuses the filter"),
                );
            }
        }
        if crate::blockdev::written_cache(backend).is_some_and(|switches| !switches.write_cache) {
            self.leave_out(
                device.at(DiskField::Cache),
                "a passed-through unit has its own write cache",
            );
        }
    }
}
