//! `<disk>` and what stands in it, apart from `<source>`.

use vmdisk_model::{
    AioMode, CacheMode, DetectZeroes, Device, Discard, DiskField, ErrorPolicy, Format,
    GeometryTranslation, ImageField, LimitField, ReadErrorPolicy, Sgio, Snapshot, TargetBus, Tray,
    VirtioModel,
};

use super::Field::{Disk, Image, Iotune};
use super::Value::{AnyBase, Positive32, Text, Unsigned32, Unsigned64, Words, WordsAnd};
use super::limits::IOTUNE;
use super::source::{AUTH, ENCRYPTION};
use super::{ChildSpec, ElementSpec, Need, ON_OFF, Pick, YES_NO, attribute, child};

/// Kinds of source; libvirt `disk/@type`.
pub const SOURCE_TYPES: &[&str] = &[
    "file",
    "block",
    "dir",
    "network",
    "volume",
    "nvme",
    "vhostuser",
    "vhostvdpa",
    "ctl",
];

/// Kinds of source that came later, each with the libvirt and the QEMU that first knew it.
const LATER_SOURCE_TYPES: &[(&str, super::Since, Option<super::Since>)] = &[
    ("dir", (0, 7, 5), None),
    ("network", (0, 8, 7), None),
    ("volume", (1, 0, 5), None),
    ("nvme", (6, 0, 0), Some((2, 12, 0))),
    ("vhostuser", (7, 1, 0), Some((2, 12, 0))),
    ("vhostvdpa", (9, 8, 0), Some((8, 1, 0))),
    ("ctl", (12, 0, 0), None),
];

/// libvirt `<disk>`.
pub static DISK: ElementSpec = ElementSpec::new("disk")
    .attributes(&[
        attribute("type", (0, 0, 3), Words(SOURCE_TYPES))
            .is(Disk(DiskField::SourceType))
            .later(LATER_SOURCE_TYPES),
        attribute("device", (0, 1, 4), Words(Device::WORDS))
            .is(Disk(DiskField::Device))
            .later(&[("lun", (0, 9, 10), None)]),
        attribute("model", (5, 2, 0), Words(VirtioModel::WORDS)).is(Disk(DiskField::Model)),
        attribute("rawio", (0, 9, 10), YES_NO).is(Disk(DiskField::RawIo)),
        attribute("sgio", (1, 0, 2), Words(Sgio::WORDS)).is(Disk(DiskField::Sgio)),
        attribute("snapshot", (0, 9, 5), Words(Snapshot::WORDS)).is(Disk(DiskField::Snapshot)),
    ])
    .children(&[
        child((0, 1, 8), &DRIVER).is(Disk(DiskField::Driver)),
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
        child((0, 10, 0), &GEOMETRY).is(Disk(DiskField::Geometry)),
        child((0, 10, 2), &BLOCKIO).is(Disk(DiskField::BlockIo)),
        child((0, 9, 12), &MIRROR),
        child((0, 0, 3), &TARGET).is(Disk(DiskField::Target)),
        child((0, 9, 8), &IOTUNE)
            .is(Disk(DiskField::Iotune))
            .is(Iotune(LimitField::Limits)),
        child((11, 2, 0), &THROTTLE_FILTERS).is(Disk(DiskField::ThrottleFilters)),
        child((0, 0, 3), &READONLY).is(Disk(DiskField::ReadOnly)),
        child((0, 3, 3), &SHAREABLE).is(Disk(DiskField::Shareable)),
        child((0, 9, 5), &TRANSIENT).is(Disk(DiskField::Transient)),
        child((0, 7, 1), &SERIAL).is(Disk(DiskField::Serial)),
        child((0, 10, 1), &WWN).is(Disk(DiskField::Wwn)),
        child((1, 0, 1), &VENDOR).is(Disk(DiskField::Vendor)),
        child((1, 0, 1), &PRODUCT).is(Disk(DiskField::Product)),
        child((0, 7, 6), &ENCRYPTION).is(Image(ImageField::Encryption)),
        child((0, 8, 8), &BOOT),
        child((0, 7, 6), &ALIAS),
        child((5, 6, 0), &DISK_ACPI),
        child((0, 7, 6), &ADDRESS).is(Disk(DiskField::Address)),
        child((5, 0, 0), &PRIVATE_DATA),
    ]);

static DRIVER: ElementSpec = ElementSpec::new("driver")
    .attributes(&[
        attribute("name", (0, 1, 8), Text).is(Disk(DiskField::DriverName)),
        attribute("type", (0, 1, 8), WordsAnd(Format::WORDS, &["aio"]))
            .is(Image(ImageField::Format)),
        attribute("cache", (0, 6, 0), WordsAnd(CacheMode::WORDS, &["default"]))
            .is(Disk(DiskField::Cache))
            .later(&[("directsync", (0, 9, 5), None), ("unsafe", (0, 9, 7), None)]),
        attribute("error_policy", (0, 8, 0), Words(ErrorPolicy::WORDS))
            .is(Disk(DiskField::ErrorPolicy))
            .later(&[("report", (0, 9, 7), None)]),
        attribute("rerror_policy", (0, 9, 7), Words(ReadErrorPolicy::WORDS))
            .is(Disk(DiskField::ReadErrorPolicy)),
        attribute("io", (0, 8, 8), Words(AioMode::WORDS))
            .is(Disk(DiskField::Aio))
            .later(&[("io_uring", (6, 3, 0), Some((5, 0, 0)))]),
        attribute("ioeventfd", (0, 9, 3), ON_OFF).is(Disk(DiskField::IoEventFd)),
        attribute("event_idx", (0, 9, 5), ON_OFF).is(Disk(DiskField::EventIdx)),
        attribute("copy_on_read", (0, 9, 10), ON_OFF).is(Disk(DiskField::CopyOnRead)),
        attribute("discard", (1, 0, 6), Words(Discard::WORDS)).is(Disk(DiskField::Discard)),
        attribute("iothread", (1, 2, 8), Positive32)
            .is(Disk(DiskField::IoThread))
            .qemu((2, 1, 0)),
        attribute("detect_zeroes", (2, 0, 0), Words(DetectZeroes::WORDS))
            .is(Disk(DiskField::DetectZeroes)),
        attribute("discard_no_unref", (9, 5, 0), ON_OFF)
            .is(Disk(DiskField::DiscardNoUnref))
            .qemu((8, 1, 0)),
        attribute("queues", (3, 9, 0), Unsigned32)
            .is(Disk(DiskField::Queues))
            .qemu((2, 7, 0)),
        attribute("queue_size", (7, 8, 0), Unsigned32)
            .is(Disk(DiskField::QueueSize))
            .qemu((2, 12, 0)),
        attribute("iommu", (3, 5, 0), ON_OFF).is(Disk(DiskField::Iommu)),
        attribute("ats", (3, 5, 0), ON_OFF).is(Disk(DiskField::Ats)),
        attribute("packed", (6, 3, 0), ON_OFF).is(Disk(DiskField::Packed)),
        attribute("page_per_vq", (7, 9, 0), ON_OFF)
            .is(Disk(DiskField::PagePerVq))
            .qemu((2, 8, 0)),
    ])
    .children(&[
        child((10, 0, 0), &DISK_IOTHREADS)
            .is(Disk(DiskField::IoThreadMapping))
            .qemu((9, 0, 0)),
        child((7, 0, 0), &METADATA_CACHE).is(Disk(DiskField::MetadataCacheSize)),
        child((11, 9, 0), &STATISTICS)
            .is(Disk(DiskField::Statistics))
            .qemu((10, 2, 0)),
    ]);

/// libvirt `driver/iothreads`, of disks and of SCSI controllers alike.
pub(super) static DISK_IOTHREADS: ElementSpec =
    ElementSpec::new("iothreads").children(&[child((10, 0, 0), &MAPPED_IOTHREAD).many()]);

static MAPPED_IOTHREAD: ElementSpec = ElementSpec::new("iothread")
    .attributes(&[attribute("id", (10, 0, 0), Positive32)])
    .children(&[child((10, 0, 0), &QUEUE).many()]);

static QUEUE: ElementSpec =
    ElementSpec::new("queue").attributes(&[attribute("id", (10, 0, 0), Unsigned32)]);

pub(super) static METADATA_CACHE: ElementSpec =
    ElementSpec::new("metadata_cache").children(&[child((7, 0, 0), &MAX_SIZE)]);

static MAX_SIZE: ElementSpec = ElementSpec::new("max_size")
    .attributes(&[attribute("unit", (7, 0, 0), Text)])
    .content(Unsigned64);

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

static GEOMETRY: ElementSpec = ElementSpec::new("geometry").attributes(&[
    attribute("cyls", (0, 10, 0), Unsigned32),
    attribute("heads", (0, 10, 0), Unsigned32),
    attribute("secs", (0, 10, 0), Unsigned32),
    attribute("trans", (0, 10, 0), Words(GeometryTranslation::WORDS))
        .is(Disk(DiskField::GeometryTranslation)),
]);

static BLOCKIO: ElementSpec = ElementSpec::new("blockio").attributes(&[
    attribute("logical_block_size", (0, 10, 2), Unsigned32).is(Disk(DiskField::LogicalBlockSize)),
    attribute("physical_block_size", (0, 10, 2), Unsigned32).is(Disk(DiskField::PhysicalBlockSize)),
    attribute("discard_granularity", (9, 8, 0), Unsigned32).is(Disk(DiskField::DiscardGranularity)),
]);

/// libvirt `<mirror>`: what a running block job writes; ignored on input, so nothing in it is judged.
static MIRROR: ElementSpec = ElementSpec::new("mirror").unjudged();

static TARGET: ElementSpec = ElementSpec::new("target").attributes(&[
    attribute("dev", (0, 0, 3), Text).is(Disk(DiskField::TargetDev)),
    attribute("bus", (0, 4, 3), Words(TargetBus::WORDS))
        .is(Disk(DiskField::TargetBus))
        .later(&[("nvme", (11, 5, 0), None)]),
    attribute("tray", (0, 9, 11), Words(Tray::WORDS)).is(Disk(DiskField::Tray)),
    attribute("removable", (1, 1, 3), ON_OFF).is(Disk(DiskField::Removable)),
    attribute("rotation_rate", (7, 3, 0), Unsigned32)
        .is(Disk(DiskField::RotationRate))
        .qemu((2, 11, 0)),
    attribute("dpofua", (11, 10, 0), ON_OFF).is(Disk(DiskField::DpoFua)),
]);

static THROTTLE_FILTERS: ElementSpec = ElementSpec::new("throttlefilters")
    .needs(&[Need::Distinct("throttlefilter", "group")])
    .children(&[child((11, 2, 0), &THROTTLE_FILTER).many()]);

static THROTTLE_FILTER: ElementSpec = ElementSpec::new("throttlefilter")
    .needs(&[Need::Attribute("group")])
    .attributes(&[attribute("group", (11, 2, 0), Text)]);

static READONLY: ElementSpec = ElementSpec::new("readonly");
static SHAREABLE: ElementSpec = ElementSpec::new("shareable");
static TRANSIENT: ElementSpec =
    ElementSpec::new("transient").attributes(&[
        attribute("shareBacking", (7, 4, 0), YES_NO).is(Disk(DiskField::ShareBacking))
    ]);

static SERIAL: ElementSpec = ElementSpec::new("serial").content(Text);
static WWN: ElementSpec = ElementSpec::new("wwn").content(Text);
static VENDOR: ElementSpec = ElementSpec::new("vendor").content(Text);
static PRODUCT: ElementSpec = ElementSpec::new("product").content(Text);

static BOOT: ElementSpec = ElementSpec::new("boot").attributes(&[
    attribute("order", (0, 8, 8), Positive32).is(Disk(DiskField::BootOrder)),
    attribute("loadparm", (3, 5, 0), Text).is(Disk(DiskField::LoadParm)),
]);

static ALIAS: ElementSpec =
    ElementSpec::new("alias")
        .attributes(&[attribute("name", (0, 7, 6), Text).is(Disk(DiskField::Alias))]);

static DISK_ACPI: ElementSpec =
    ElementSpec::new("acpi")
        .attributes(&[attribute("index", (5, 6, 0), Unsigned32).is(Disk(DiskField::AcpiIndex))]);

/// libvirt `<address>`, all types together.
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

/// libvirt's own notes in the state of a running guest.
pub(super) static PRIVATE_DATA: ElementSpec = ElementSpec::new("privateData").unjudged();
