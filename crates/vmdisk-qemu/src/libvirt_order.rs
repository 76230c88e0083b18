//! The order in which libvirt writes the members of its objects, so that texts can be compared line by line.

use vmdisk_model::{DiskField, FieldPath, ImageField};

use crate::json::JsonObject;

/// Common members of nodes that open something; they follow the members of the driver.
const COMMON: &[&str] = &[
    "node-name",
    "auto-read-only",
    "read-only",
    "discard",
    "detect-zeroes",
    "cache",
];

const FORMAT: &[&str] = &[
    "node-name",
    "read-only",
    "discard",
    "detect-zeroes",
    "cache",
    "driver",
    "encrypt",
    "key-secret",
    "cache-size",
    "discard-no-unref",
    "data-file",
    "file",
    "backing",
];

const DISK: &[&str] = &[
    "driver",
    "iommu_platform",
    "ats",
    "packed",
    "page-per-vq",
    "iothread",
    "ioeventfd",
    "event_idx",
    "num-queues",
    "queue-size",
    "iothread-vq-mapping",
    "bus",
    "port",
    "multifunction",
    "addr",
    "acpi-index",
    "devno",
    "unit",
    "channel",
    "scsi-id",
    "lun",
    "device_id",
    "share-rw",
    "drive",
    "chardev",
    "id",
    "bootindex",
    "loadparm",
    "logical_block_size",
    "physical_block_size",
    "discard_granularity",
    "wwn",
    "rotation_rate",
    "dpofua",
    "vendor",
    "product",
    "model",
    "removable",
    "write-cache",
    "cyls",
    "heads",
    "secs",
    "bios-chs-trans",
    "serial",
    "werror",
    "rerror",
    "stats-intervals",
];

const CONTROLLER: &[&str] = &[
    "driver",
    "iommu_platform",
    "ats",
    "packed",
    "page-per-vq",
    "iothread",
    "bootindexA",
    "bootindexB",
    "p2",
    "p3",
    "masterbus",
    "firstport",
    "id",
    "num_queues",
    "iothread-vq-mapping",
    "cmd_per_lun",
    "max_sectors",
    "ioeventfd",
    "bus",
    "multifunction",
    "addr",
    "acpi-index",
    "reg",
    "devno",
];

/// Orders the members of a node. Filters are written in libvirt's order to begin with.
pub(crate) fn node(node: &mut JsonObject, origin: FieldPath) {
    match origin {
        FieldPath::Image(_, _, ImageField::Format) => node.reorder(FORMAT),
        FieldPath::Image(..) => node.reorder_last(COMMON),
        _ => {}
    }
}

/// Orders the members of a device.
pub(crate) fn device(device: &mut JsonObject, origin: FieldPath) {
    // Implied controllers exist for a disk's bus, not for the disk.
    let is_disk = matches!(origin, FieldPath::Disk(_, DiskField::Disk));
    device.reorder(if is_disk { DISK } else { CONTROLLER });
}
