//! `<disk>` and its children, except `<source>`.

use vmdisk_model::{DiskField, Format, ImageField, LimitField};

use super::Field::{Disk, Image, Iotune};
use super::ValueSpec::{Positive32, Text, Unsigned32, Unsigned64, Words, WordsAnd};
use super::address::ADDRESS;
use super::limits::IOTUNE;
use super::rows::{disk_attribute, disk_attributes, disk_child};
use super::source::{AUTH, ENCRYPTION, METADATA_CACHE, PRIVATE_DATA, SOURCE_TYPES};
use super::{ChildSpec, ElementSpec, Need, Pick, attribute, child};

/// libvirt `<disk>`.
pub static DISK: ElementSpec = ElementSpec::new("disk")
    .attributes(disk_attributes!(
        "",
        disk_attribute(DiskField::SourceType).value(Words(SOURCE_TYPES))
    ))
    .children(&[
        disk_child(DiskField::Driver, &DRIVER),
        child((0, 9, 7), &AUTH).is(Image(ImageField::Authentication)),
        ChildSpec {
            name: "source",
            since: (0, 0, 3),
            qemu: None,
            pick: Pick::SourceOfType,
            repeats: false,
            fields: [
                Some(Disk(DiskField::Source)),
                Some(Image(ImageField::Source)),
            ],
        },
        BACKING_STORE_CHILD,
        child((1, 2, 13), &BACKEND_DOMAIN),
        disk_child(DiskField::Geometry, &GEOMETRY),
        disk_child(DiskField::BlockIo, &BLOCKIO),
        child((0, 9, 12), &MIRROR),
        disk_child(DiskField::Target, &TARGET),
        disk_child(DiskField::Iotune, &IOTUNE).is(Iotune(LimitField::Limits)),
        disk_child(DiskField::ThrottleFilters, &THROTTLE_FILTERS),
        disk_child(DiskField::ReadOnly, &READONLY),
        disk_child(DiskField::Shareable, &SHAREABLE),
        disk_child(DiskField::Transient, &TRANSIENT),
        disk_child(DiskField::Serial, &SERIAL),
        disk_child(DiskField::Wwn, &WWN),
        disk_child(DiskField::Vendor, &VENDOR),
        disk_child(DiskField::Product, &PRODUCT),
        child((0, 7, 6), &ENCRYPTION).is(Image(ImageField::Encryption)),
        child((0, 8, 8), &BOOT),
        child((0, 7, 6), &ALIAS),
        child((5, 6, 0), &DISK_ACPI),
        disk_child(DiskField::Address, &ADDRESS),
        child((5, 0, 0), &PRIVATE_DATA),
    ]);

/// libvirt `disk/driver`.
pub(crate) static DRIVER: ElementSpec = ElementSpec::new("driver")
    .attributes(disk_attributes!(
        "driver",
        disk_attribute(DiskField::DriverName),
        attribute("type", (0, 1, 8), WordsAnd(Format::WORDS, &["aio"]))
            .is(Image(ImageField::Format))
    ))
    .children(&[
        disk_child(DiskField::IoThreadMapping, &DISK_IOTHREADS),
        disk_child(DiskField::MetadataCacheSize, &METADATA_CACHE),
        disk_child(DiskField::Statistics, &STATISTICS),
    ]);

/// libvirt `driver/iothreads`, of disks and of SCSI controllers alike.
pub(super) static DISK_IOTHREADS: ElementSpec =
    ElementSpec::new("iothreads").children(&[child((10, 0, 0), &MAPPED_IOTHREAD).many()]);

static MAPPED_IOTHREAD: ElementSpec = ElementSpec::new("iothread")
    .attributes(&[attribute("id", (10, 0, 0), Positive32)])
    .children(&[child((10, 0, 0), &QUEUE).many()]);

static QUEUE: ElementSpec =
    ElementSpec::new("queue").attributes(&[attribute("id", (10, 0, 0), Unsigned32)]);

static STATISTICS: ElementSpec = ElementSpec::new("statistics").children(&[
    child((11, 9, 0), &STATISTIC).many(),
    child((12, 1, 0), &LATENCY_HISTOGRAM).many(),
]);

static STATISTIC: ElementSpec =
    ElementSpec::new("statistic").attributes(&[attribute("interval", (11, 9, 0), Unsigned32)]);

static LATENCY_HISTOGRAM: ElementSpec = ElementSpec::new("latency-histogram")
    .attributes(&[attribute("type", (12, 1, 0), Text)])
    .children(&[child((12, 1, 0), &HISTOGRAM_BIN).many()]);

static HISTOGRAM_BIN: ElementSpec =
    ElementSpec::new("bin").attributes(&[attribute("start", (12, 1, 0), Unsigned64)]);

const BACKING_STORE_CHILD: ChildSpec = ChildSpec {
    name: "backingStore",
    since: (1, 2, 4),
    qemu: None,
    pick: Pick::BackingStore,
    repeats: false,
    fields: [Some(Image(ImageField::Image)), None],
};

/// libvirt `<backingStore>`, which nests.
pub static BACKING_STORE: ElementSpec = ElementSpec::new("backingStore")
    .attributes(&[
        attribute("type", (1, 2, 4), Words(SOURCE_TYPES)),
        attribute("index", (1, 2, 4), Unsigned32),
    ])
    .children(&[
        child((1, 2, 4), &FORMAT),
        ChildSpec {
            name: "source",
            since: (1, 2, 4),
            qemu: None,
            pick: Pick::SourceOfType,
            repeats: false,
            fields: [Some(Image(ImageField::Source)), None],
        },
        BACKING_STORE_CHILD,
        child((1, 2, 4), &PRIVATE_DATA),
    ]);

/// libvirt `backingStore/format`.
static FORMAT: ElementSpec = ElementSpec::new("format")
    .attributes(&[
        attribute("type", (1, 2, 4), WordsAnd(Format::WORDS, &["aio"]))
            .is(Image(ImageField::Format)),
    ])
    .children(&[child((7, 0, 0), &METADATA_CACHE).is(Image(ImageField::MetadataCacheSize))]);

static BACKEND_DOMAIN: ElementSpec =
    ElementSpec::new("backenddomain").attributes(&[attribute("name", (1, 2, 13), Text)]);

static GEOMETRY: ElementSpec = ElementSpec::new("geometry").attributes(disk_attributes!(
    "geometry",
    attribute("cyls", (0, 10, 0), Unsigned32),
    attribute("heads", (0, 10, 0), Unsigned32),
    attribute("secs", (0, 10, 0), Unsigned32)
));

static BLOCKIO: ElementSpec = ElementSpec::new("blockio").attributes(disk_attributes!("blockio"));

/// libvirt `<mirror>`: state of a running block job; ignored on input, so its contents are not checked.
static MIRROR: ElementSpec = ElementSpec::new("mirror").unjudged();

static TARGET: ElementSpec = ElementSpec::new("target").attributes(disk_attributes!("target"));

static THROTTLE_FILTERS: ElementSpec = ElementSpec::new("throttlefilters")
    .needs(&[Need::Distinct("throttlefilter", "group")])
    .children(&[child((11, 2, 0), &THROTTLE_FILTER).many()]);

static THROTTLE_FILTER: ElementSpec = ElementSpec::new("throttlefilter")
    .needs(&[Need::Attribute("group")])
    .attributes(&[attribute("group", (11, 2, 0), Text)]);

static READONLY: ElementSpec = ElementSpec::new("readonly");
static SHAREABLE: ElementSpec = ElementSpec::new("shareable");
static TRANSIENT: ElementSpec =
    ElementSpec::new("transient").attributes(disk_attributes!("transient"));

static SERIAL: ElementSpec = ElementSpec::new("serial").content(Text);
static WWN: ElementSpec = ElementSpec::new("wwn").content(Text);
static VENDOR: ElementSpec = ElementSpec::new("vendor").content(Text);
static PRODUCT: ElementSpec = ElementSpec::new("product").content(Text);

static BOOT: ElementSpec = ElementSpec::new("boot")
    .needs(&[Need::Attribute("order")])
    .attributes(disk_attributes!("boot"));

static ALIAS: ElementSpec = ElementSpec::new("alias").attributes(disk_attributes!("alias"));

static DISK_ACPI: ElementSpec = ElementSpec::new("acpi").attributes(disk_attributes!("acpi"));
