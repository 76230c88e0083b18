//! The order in which libvirt writes the members of its objects, for a text that compares line by line.

use vmdisk_model::{DiskField, FieldPath, ImageField};

use crate::json::JsonObject;

const PROTOCOL: &[&str] = &[
    "driver",
    "filename",
    "aio",
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
    "cache-size",
    "discard-no-unref",
    "file",
    "backing",
];

const DISK: &[&str] = &[
    "driver",
    "iothread",
    "num-queues",
    "queue-size",
    "iothread-vq-mapping",
    "bus",
    "multifunction",
    "addr",
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
    "logical_block_size",
    "physical_block_size",
    "discard_granularity",
    "wwn",
    "rotation_rate",
    "vendor",
    "product",
    "model",
    "removable",
    "write-cache",
    "serial",
    "werror",
    "rerror",
];

const CONTROLLER: &[&str] = &[
    "driver",
    "iothread",
    "bootindexA",
    "bootindexB",
    "id",
    "num_queues",
    "iothread-vq-mapping",
    "cmd_per_lun",
    "max_sectors",
    "bus",
    "multifunction",
    "addr",
];

/// Orders the members of a node. Filters are written in libvirt's order to begin with.
pub(crate) fn node(node: &mut JsonObject, origin: FieldPath) {
    match origin {
        FieldPath::Image(_, _, ImageField::Format) => node.reorder(FORMAT),
        FieldPath::Image(_, _, ImageField::Image | ImageField::Source | ImageField::Path) => {
            node.reorder(PROTOCOL);
        }
        FieldPath::Disk(..)
        | FieldPath::Domain(_)
        | FieldPath::Controller(..)
        | FieldPath::IoThread(..) => {}
    }
}

/// Orders the members of a device.
pub(crate) fn device(device: &mut JsonObject, origin: FieldPath) {
    // Controllers that nobody wrote down are there for a disk's bus, not for the disk.
    let is_disk = matches!(origin, FieldPath::Disk(_, DiskField::Disk));
    device.reorder(if is_disk { DISK } else { CONTROLLER });
}
