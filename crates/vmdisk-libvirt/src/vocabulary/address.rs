//! `<address>` of a disk, a controller or the source of a disk.

use super::ValueSpec::{AnyBase, Text, Unsigned32, Words};
use super::{ElementSpec, ON_OFF, attribute, child};

/// libvirt `<address>`, all types combined.
pub(super) static ADDRESS: ElementSpec = ElementSpec::new("address")
    .attributes(&[
        attribute("type", (0, 7, 6), Words(ADDRESS_TYPES)),
        attribute("domain", (0, 7, 6), AnyBase),
        attribute("bus", (0, 7, 6), AnyBase),
        attribute("slot", (0, 7, 6), AnyBase),
        attribute("function", (0, 7, 6), AnyBase),
        attribute("multifunction", (0, 9, 7), ON_OFF),
        attribute("controller", (0, 7, 6), Unsigned32),
        attribute("target", (0, 9, 11), Unsigned32),
        attribute("unit", (0, 7, 6), Unsigned32),
        attribute("port", (0, 7, 6), Text),
        attribute("reg", (0, 9, 9), AnyBase),
        attribute("cssid", (1, 0, 3), AnyBase),
        attribute("ssid", (1, 0, 3), AnyBase),
        attribute("devno", (1, 0, 3), AnyBase),
        attribute("iobase", (1, 2, 1), AnyBase),
        attribute("irq", (1, 2, 1), AnyBase),
        attribute("base", (3, 9, 0), AnyBase),
    ])
    .children(&[child((5, 0, 0), &ZPCI)]);

static ZPCI: ElementSpec = ElementSpec::new("zpci").attributes(&[
    attribute("uid", (5, 0, 0), AnyBase),
    attribute("fid", (5, 0, 0), AnyBase),
]);

const ADDRESS_TYPES: &[&str] = &[
    "pci",
    "drive",
    "virtio-serial",
    "ccid",
    "usb",
    "spapr-vio",
    "virtio-s390",
    "ccw",
    "virtio-mmio",
    "isa",
    "dimm",
    "unassigned",
];
