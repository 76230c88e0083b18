//! `<pool>` and `<volume>`, as far as disks depend on them.
//!
//! Versions come from libvirt's `docs/formatstorage.rst` and `docs/formatstorageencryption.rst`; where they
//! name none, the version of the parent element.

use vmdisk_model::{Format, PoolType, VolumeType};

use super::ValueSpec::{PoolPort, Text, Unsigned64, Words, WordsAnd};
use super::network::INITIATOR;
use super::source::{AUTH, ENCRYPTION};
use super::{AttributeSpec, ElementSpec, attribute, child};

/// libvirt `<pool>`.
pub static POOL: ElementSpec = ElementSpec::new("pool")
    .attributes(&[attribute("type", (0, 4, 1), Words(PoolType::WORDS)).later(LATER_TYPES)])
    .children(&[
        child((0, 4, 1), &NAME),
        child((0, 4, 1), &UUID),
        child((0, 4, 1), &CAPACITY),
        child((0, 4, 1), &ALLOCATION),
        child((0, 4, 1), &AVAILABLE),
        child((6, 6, 0), &FEATURES),
        child((0, 4, 1), &SOURCE),
        child((0, 4, 1), &TARGET),
        child((5, 2, 0), &REFRESH),
    ]);

/// Types of pool that were added later.
const LATER_TYPES: &[(&str, super::Since, Option<super::Since>)] = &[
    ("mpath", (0, 7, 1), None),
    ("rbd", (0, 9, 13), None),
    ("sheepdog", (0, 10, 0), None),
    ("gluster", (1, 2, 0), None),
    ("zfs", (1, 2, 8), None),
    ("vstorage", (3, 1, 0), None),
    ("iscsi-direct", (4, 7, 0), None),
];

static NAME: ElementSpec = ElementSpec::new("name").content(Text);
static UUID: ElementSpec = ElementSpec::new("uuid").content(Text);
static CAPACITY: ElementSpec = sized("capacity");
static ALLOCATION: ElementSpec = sized("allocation");
static AVAILABLE: ElementSpec = sized("available");
static PHYSICAL: ElementSpec = sized("physical");
static FEATURES: ElementSpec = ElementSpec::new("features").unjudged();
static REFRESH: ElementSpec = ElementSpec::new("refresh").unjudged();
static PERMISSIONS: ElementSpec = ElementSpec::new("permissions").unjudged();
static TIMESTAMPS: ElementSpec = ElementSpec::new("timestamps").unjudged();

const fn sized(name: &'static str) -> ElementSpec {
    ElementSpec::new(name)
        .attributes(UNIT)
        .content(Unsigned64)
        .may_end_in_space()
}

const UNIT: &[AttributeSpec] = &[attribute("unit", (0, 4, 1), Text)];

static SOURCE: ElementSpec = ElementSpec::new("source").children(&[
    child((0, 4, 1), &HOST).many(),
    child((0, 4, 1), &DEVICE).many(),
    child((0, 4, 1), &DIR),
    child((0, 6, 2), &ADAPTER),
    child((0, 4, 5), &NAME),
    child((4, 7, 0), &INITIATOR),
    child((0, 9, 7), &AUTH),
    child((0, 4, 1), &SOURCE_FORMAT),
    child((0, 8, 4), &VENDOR),
    child((0, 8, 4), &PRODUCT),
    child((5, 1, 0), &PROTOCOL),
]);

static HOST: ElementSpec = ElementSpec::new("host").attributes(&[
    attribute("name", (0, 4, 1), Text),
    attribute("port", (0, 4, 1), PoolPort),
]);

static DEVICE: ElementSpec = ElementSpec::new("device")
    .attributes(&[
        attribute("path", (0, 4, 1), Text),
        attribute("part_separator", (1, 3, 1), super::YES_NO),
    ])
    .children(&[child((0, 4, 1), &FREE_EXTENT).many()]);

static FREE_EXTENT: ElementSpec = ElementSpec::new("freeExtent").unjudged();
static DIR: ElementSpec = ElementSpec::new("dir").attributes(&[attribute("path", (0, 4, 1), Text)]);
static ADAPTER: ElementSpec = ElementSpec::new("adapter").unjudged();
static SOURCE_FORMAT: ElementSpec =
    ElementSpec::new("format").attributes(&[attribute("type", (0, 4, 1), Text)]);
static VENDOR: ElementSpec =
    ElementSpec::new("vendor").attributes(&[attribute("name", (0, 8, 4), Text)]);
static PRODUCT: ElementSpec =
    ElementSpec::new("product").attributes(&[attribute("name", (0, 8, 4), Text)]);
static PROTOCOL: ElementSpec =
    ElementSpec::new("protocol").attributes(&[attribute("ver", (5, 1, 0), Text)]);

static TARGET: ElementSpec = ElementSpec::new("target").children(&[
    child((0, 4, 1), &PATH),
    child((0, 4, 1), &PERMISSIONS),
    child((0, 10, 0), &TIMESTAMPS),
    child((0, 7, 1), &ENCRYPTION),
]);

static PATH: ElementSpec = ElementSpec::new("path").content(Text);

/// libvirt `<volume>`.
pub static STORAGE_VOLUME: ElementSpec = ElementSpec::new("volume")
    .attributes(&[attribute("type", (1, 2, 0), Words(VolumeType::WORDS))])
    .children(&[
        child((0, 4, 1), &NAME),
        child((0, 4, 1), &KEY),
        child((0, 4, 1), &VOLUME_SOURCE),
        child((0, 4, 1), &CAPACITY),
        child((0, 4, 1), &ALLOCATION),
        child((3, 0, 0), &PHYSICAL),
        child((0, 4, 1), &VOLUME_TARGET),
        child((0, 6, 0), &VOLUME_BACKING),
    ]);

static KEY: ElementSpec = ElementSpec::new("key").content(Text);
static VOLUME_SOURCE: ElementSpec = ElementSpec::new("source").unjudged();

static VOLUME_TARGET: ElementSpec = ElementSpec::new("target").children(&[
    child((0, 4, 1), &PATH),
    child((0, 4, 1), &VOLUME_FORMAT),
    child((0, 4, 1), &PERMISSIONS),
    child((0, 10, 0), &TIMESTAMPS),
    child((0, 7, 1), &ENCRYPTION),
    child((1, 1, 0), &COMPAT),
    child((1, 2, 7), &NOCOW),
    child((7, 4, 0), &CLUSTER_SIZE),
    child((1, 1, 0), &VOLUME_FEATURES),
]);

static VOLUME_BACKING: ElementSpec = ElementSpec::new("backingStore").children(&[
    child((0, 6, 0), &PATH),
    child((0, 6, 0), &VOLUME_FORMAT),
    child((0, 6, 0), &PERMISSIONS),
    child((0, 10, 0), &TIMESTAMPS),
]);

static VOLUME_FORMAT: ElementSpec = ElementSpec::new("format").attributes(&[attribute(
    "type",
    (0, 4, 1),
    WordsAnd(
        Format::WORDS,
        // For partitions, and for unknown types.
        &[
            "unknown",
            "none",
            "linux",
            "fat16",
            "fat32",
            "linux-swap",
            "linux-lvm",
            "linux-raid",
            "extended",
        ],
    ),
)]);

static COMPAT: ElementSpec = ElementSpec::new("compat").content(Text);
static NOCOW: ElementSpec = ElementSpec::new("nocow");
static CLUSTER_SIZE: ElementSpec = sized("clusterSize");
static VOLUME_FEATURES: ElementSpec = ElementSpec::new("features").unjudged();
