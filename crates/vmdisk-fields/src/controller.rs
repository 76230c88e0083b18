//! The fields of a controller.

use vmdisk_model::ControllerField;

use crate::row::{FieldRow, libvirt, rows};

rows! {
    /// Every field, in the order in which libvirt writes attributes.
    CONTROLLER_FIELDS;
    /// The row of a field of a controller.
    controller(ControllerField);

    Controller: "a controller", libvirt("controller", (0, 7, 6));
    ControllerType: "a type", libvirt("@type", (0, 7, 6)).later(&[("nvme", (11, 5, 0), None)]);
    Index: "a number", libvirt("@index", (0, 7, 6));
    Model: "a model", libvirt("@model", (0, 7, 6));
    Ports: "a number of ports", libvirt("@ports", (0, 7, 7));
    Driver: "a driver", libvirt("driver", (0, 9, 10));
    Queues: "queues", libvirt("driver/@queues", (1, 0, 5)).virtio_scsi("num_queues");
    CmdPerLun: "cmd_per_lun", libvirt("driver/@cmd_per_lun", (1, 2, 7)).virtio_scsi("cmd_per_lun");
    MaxSectors: "max_sectors", libvirt("driver/@max_sectors", (1, 2, 7)).virtio_scsi("max_sectors");
    IoEventFd: "ioeventfd", libvirt("driver/@ioeventfd", (1, 2, 18)).virtio_scsi("ioeventfd");
    IoThread: "an iothread", libvirt("driver/@iothread", (1, 3, 5)).virtio_scsi("iothread");
    Iommu: "iommu", libvirt("driver/@iommu", (3, 5, 0)).virtio_scsi("iommu_platform");
    Ats: "ats", libvirt("driver/@ats", (3, 5, 0)).virtio_scsi("ats");
    Packed: "packed queues", libvirt("driver/@packed", (6, 3, 0)).virtio_scsi("packed");
    PagePerVq: "page_per_vq", libvirt("driver/@page_per_vq", (7, 9, 0)).virtio_scsi("page-per-vq");
    IoThreadMapping: "iothreads", libvirt("driver/iothreads", (11, 2, 0)).virtio_scsi("iothread-vq-mapping");
    StartPort: "a first port", libvirt("master/@startport", (0, 9, 3));
    Serial: "a serial number", libvirt("serial", (11, 5, 0));
    Alias: "a name of the device", libvirt("alias/@name", (0, 7, 6));
    AcpiIndex: "an ACPI index", libvirt("acpi/@index", (5, 6, 0));
    Address: "an address", libvirt("address", (0, 7, 6));
}
