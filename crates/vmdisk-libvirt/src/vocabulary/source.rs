//! `<source>`, which depends on the type of the disk.

use vmdisk_model::{
    DiskField, EncryptionEngine, EncryptionFormat, ImageField, NetworkProtocol, Switch, VolumeMode,
};

use super::Field::{Disk, Image};
use super::ValueSpec::{AnyBase, Text, Unsigned32, Unsigned64, Uuid, Words};
use super::address::ADDRESS;
use super::network::{
    ELEMENTS_OF_NETWORK, IDENTITY, count_of_network, gather_of_network, network_children,
};
use super::rows::{disk_attribute, image_attribute, image_child};
use super::{AttributeSpec, ChildSpec, ElementSpec, Need, Pick, Since, YES_NO, attribute, child};

/// Types of source; libvirt `disk/@type`.
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

/// The table of a `<source>` in a disk of this type, or of the most similar type for a misspelt one.
pub fn source_of(source_type: &str) -> &'static ElementSpec {
    match source_type {
        "file" => &FILE,
        "block" => &BLOCK,
        "dir" => &DIR,
        "network" => &NETWORK,
        "volume" => &VOLUME,
        "nvme" => &NVME,
        "vhostuser" => &VHOST_USER,
        "vhostvdpa" => &VHOST_VDPA,
        "ctl" => &CTL,
        _ => match vmdisk_source::nearest(source_type, SOURCE_TYPES.iter().copied()) {
            Some(meant) => source_of(meant),
            None => &OF_UNKNOWN_TYPE,
        },
    }
}

/// The types of disk whose `<source>` has this attribute.
pub(crate) fn types_with_attribute(name: &str) -> Vec<&'static str> {
    SOURCE_TYPES
        .iter()
        .filter(|word| source_of(word).attribute(name).is_some())
        .copied()
        .collect()
}

/// The type of disk that this table of a `<source>` is for; `None` for other tables.
pub(crate) fn type_of_source(element: &'static ElementSpec) -> Option<&'static str> {
    SOURCE_TYPES
        .iter()
        .find(|word| std::ptr::eq(source_of(word), element))
        .copied()
}

/// The table of one type, which has a startup policy and an index in all of them; libvirt refuses some of those.
const fn of_type(
    attributes: &'static [AttributeSpec],
    children: &'static [ChildSpec],
) -> ElementSpec {
    ElementSpec::new("source")
        .needs(&[Need::Distinct("seclabel", "model")])
        .attributes(attributes)
        .children(children)
}

const POLICY: AttributeSpec = disk_attribute(DiskField::StartupPolicy);
const INDEX: AttributeSpec = attribute("index", (1, 2, 4), Unsigned32);

/// The attribute with the path of the storage.
const fn path(name: &'static str, since: Since) -> AttributeSpec {
    attribute(name, since, Text).is(Image(ImageField::Path))
}

static FILE: ElementSpec = of_type(
    &[
        path("file", (0, 0, 3)),
        image_attribute(ImageField::FdGroup),
        POLICY,
        INDEX,
    ],
    LOCAL_CHILDREN,
);

static BLOCK: ElementSpec = of_type(&[path("dev", (0, 0, 3)), POLICY, INDEX], LOCAL_CHILDREN);

static DIR: ElementSpec = of_type(&[path("dir", (0, 7, 5)), POLICY, INDEX], COMMON_CHILDREN);

static NETWORK: ElementSpec = {
    const OWN: &[AttributeSpec] = &[
        image_attribute(ImageField::NetworkProtocol).value(Words(NetworkProtocol::WORDS)),
        POLICY,
        INDEX,
    ];
    const ATTRIBUTES: [AttributeSpec; OWN.len() + count_of_network("source")] =
        gather_of_network(OWN, "source");
    static CHILDREN: [ChildSpec; ELEMENTS_OF_NETWORK + NETWORK_CHILDREN.len()] =
        network_children(NETWORK_CHILDREN);
    of_type(&ATTRIBUTES, &CHILDREN)
};

static VOLUME: ElementSpec = of_type(
    &[
        image_attribute(ImageField::Pool),
        image_attribute(ImageField::Volume),
        image_attribute(ImageField::VolumeMode).value(Words(VolumeMode::WORDS)),
        POLICY,
        INDEX,
    ],
    VOLUME_CHILDREN,
);

static NVME: ElementSpec = of_type(
    &[
        attribute("type", (6, 0, 0), Words(&["pci"])),
        image_attribute(ImageField::Managed).value(YES_NO),
        image_attribute(ImageField::Namespace).value(AnyBase),
        POLICY,
        INDEX,
    ],
    &[
        image_child(ImageField::SourceAddress, &ADDRESS),
        image_child(ImageField::Encryption, &ENCRYPTION),
        image_child(ImageField::Slice, &SLICES),
        LABELS,
        PRIVATE,
    ],
)
.needs(&[Need::Distinct("seclabel", "model"), Need::Attribute("type")]);

static VHOST_USER: ElementSpec = of_type(
    &[
        attribute("type", (7, 1, 0), Words(&["unix"])),
        disk_attribute(DiskField::SocketPath),
        POLICY,
        INDEX,
    ],
    &[child((7, 1, 0), &SOCKET_RECONNECT), LABELS, PRIVATE],
)
.needs(&[Need::Distinct("seclabel", "model"), Need::Attribute("type")]);

static VHOST_VDPA: ElementSpec = of_type(&[path("dev", (9, 8, 0)), POLICY, INDEX], COMMON_CHILDREN);

/// A type of bhyve, which QEMU does not support; only its path is known here.
static CTL: ElementSpec = ElementSpec::new("source").unjudged();

/// The `<source>` of a disk of unknown type.
static OF_UNKNOWN_TYPE: ElementSpec = ElementSpec::new("source").unjudged();

const LABELS: ChildSpec = child((0, 9, 9), &SECLABEL).many();
const PRIVATE: ChildSpec = child((5, 0, 0), &PRIVATE_DATA);

const COMMON_CHILDREN: &[ChildSpec] = &[
    LABELS,
    image_child(ImageField::Encryption, &ENCRYPTION),
    image_child(ImageField::Slice, &SLICES),
    PRIVATE,
];

const LOCAL_CHILDREN: &[ChildSpec] = &[
    LABELS,
    image_child(ImageField::Encryption, &ENCRYPTION),
    image_child(ImageField::Slice, &SLICES),
    image_child(ImageField::Reservations, &RESERVATIONS),
    DATA_STORE_CHILD,
    PRIVATE,
];

const VOLUME_CHILDREN: &[ChildSpec] = NETWORK_CHILDREN.split_at(1).1;

const NETWORK_CHILDREN: &[ChildSpec] = &[
    image_child(ImageField::Identity, &IDENTITY),
    image_child(ImageField::Authentication, &AUTH),
    LABELS,
    image_child(ImageField::Encryption, &ENCRYPTION),
    image_child(ImageField::Slice, &SLICES),
    image_child(ImageField::Reservations, &RESERVATIONS),
    DATA_STORE_CHILD,
    PRIVATE,
];

const DATA_STORE_CHILD: ChildSpec = image_child(ImageField::DataFile, &DATA_STORE);

/// libvirt `<dataStore>`: the data file of a qcow2 image, with its own source.
static DATA_STORE: ElementSpec = ElementSpec::new("dataStore")
    .needs(&[Need::Child("format")])
    .attributes(&[attribute("type", (10, 10, 0), Words(SOURCE_TYPES))])
    .children(&[
        child((10, 10, 0), &DATA_STORE_FORMAT),
        ChildSpec {
            name: "source",
            since: (10, 10, 0),
            qemu: None,
            pick: Pick::SourceOfType,
            repeats: false,
            fields: [None; 2],
        },
        child((10, 10, 0), &PRIVATE_DATA),
    ]);

/// Like in a `<backingStore>`, but not the format of an image in the chain.
static DATA_STORE_FORMAT: ElementSpec = ElementSpec::new("format")
    .attributes(&[attribute(
        "type",
        (10, 10, 0),
        super::ValueSpec::WordsAnd(vmdisk_model::Format::WORDS, &["aio"]),
    )])
    .children(&[child((10, 10, 0), &METADATA_CACHE)]);

pub(super) static METADATA_CACHE: ElementSpec =
    ElementSpec::new("metadata_cache").children(&[child((7, 0, 0), &MAX_SIZE)]);

static MAX_SIZE: ElementSpec = ElementSpec::new("max_size")
    .attributes(&[attribute("unit", (7, 0, 0), Text)])
    .content(Unsigned64);

/// libvirt's private data in the state of a running guest.
pub(super) static PRIVATE_DATA: ElementSpec = ElementSpec::new("privateData").unjudged();

pub(super) static AUTH: ElementSpec = ElementSpec::new("auth")
    .needs(&[Need::Attribute("username"), Need::Child("secret")])
    .attributes(&[
        attribute("username", (0, 9, 7), Text),
        attribute("type", (0, 9, 7), Words(&["none", "chap", "ceph"])),
    ])
    .children(&[child((0, 9, 7), &SECRET)]);

static SECRET: ElementSpec = ElementSpec::new("secret")
    .needs(&[Need::EitherAttribute("uuid", "usage")])
    .attributes(&[
        attribute("type", (0, 9, 7), Text),
        attribute("uuid", (0, 9, 7), Uuid),
        attribute("usage", (0, 9, 7), Text),
    ]);

pub(super) static ENCRYPTION: ElementSpec = ElementSpec::new("encryption")
    .needs(&[Need::Attribute("format")])
    .attributes(&[
        attribute("format", (0, 7, 1), Words(EncryptionFormat::WORDS)).later(&[
            ("luks", (2, 1, 0), None),
            // Missing in 9.0, present in 10.0; the exact release is not known.
            ("luks-any", (9, 1, 0), Some((8, 0, 0))),
        ]),
        attribute("engine", (8, 0, 0), Words(EncryptionEngine::WORDS)),
    ])
    .children(&[
        child((0, 7, 1), &SECRET).many(),
        child((2, 1, 0), &CIPHER),
        child((2, 1, 0), &IVGEN),
    ]);

static CIPHER: ElementSpec = ElementSpec::new("cipher").attributes(&[
    attribute("name", (2, 1, 0), Text),
    attribute("size", (2, 1, 0), Unsigned32),
    attribute("mode", (2, 1, 0), Text),
    attribute("hash", (2, 1, 0), Text),
]);

static IVGEN: ElementSpec = ElementSpec::new("ivgen").attributes(&[
    attribute("name", (2, 1, 0), Text),
    attribute("hash", (2, 1, 0), Text),
]);

pub(super) static SECLABEL: ElementSpec = ElementSpec::new("seclabel")
    .needs(&[Need::NoChildWith {
        child: "label",
        attribute: "relabel",
        value: "no",
    }])
    .attributes(&[
        attribute("model", (0, 9, 9), Text),
        attribute("relabel", (0, 9, 9), YES_NO),
        attribute("labelskip", (0, 9, 9), YES_NO),
    ])
    .children(&[child((0, 9, 9), &LABEL)]);

static LABEL: ElementSpec = ElementSpec::new("label").content(Text);

pub(super) static SLICES: ElementSpec =
    ElementSpec::new("slices").children(&[child((6, 1, 0), &SLICE).many()]);

static SLICE: ElementSpec = ElementSpec::new("slice")
    .needs(&[Need::Attribute("offset"), Need::Attribute("size")])
    .attributes(&[
        attribute("type", (6, 1, 0), Words(&["storage"])),
        attribute("offset", (6, 1, 0), Unsigned64),
        attribute("size", (6, 1, 0), Unsigned64),
    ]);

pub(super) static RESERVATIONS: ElementSpec = ElementSpec::new("reservations")
    .attributes(&[
        attribute("managed", (4, 4, 0), YES_NO),
        attribute("enabled", (4, 4, 0), YES_NO),
        attribute("migration", (12, 1, 0), YES_NO),
    ])
    .children(&[child((4, 4, 0), &RESERVATIONS_SOURCE)]);

static RESERVATIONS_SOURCE: ElementSpec = ElementSpec::new("source")
    .needs(&[
        Need::Attribute("type"),
        Need::Attribute("path"),
        Need::Attribute("mode"),
    ])
    .attributes(&[
        attribute("type", (4, 4, 0), Words(&["unix"])),
        attribute("path", (4, 4, 0), Text),
        attribute("mode", (4, 4, 0), Words(&["client"])),
    ])
    .children(&[child((4, 4, 0), &RECONNECT)]);

/// libvirt `<reconnect>` of a `VhostUserBackend`.
static SOCKET_RECONNECT: ElementSpec = ElementSpec::new("reconnect").attributes(&[
    attribute("enabled", (7, 1, 0), YES_NO).is(Disk(DiskField::Reconnect)),
    attribute("timeout", (7, 1, 0), Unsigned32),
]);

/// libvirt `<reconnect>` of a persistent reservation manager.
static RECONNECT: ElementSpec = ElementSpec::new("reconnect").attributes(&[
    attribute("enabled", (7, 1, 0), YES_NO),
    attribute("timeout", (7, 1, 0), Unsigned32),
]);

/// `Switch` is written `on`/`off` in a driver and `yes`/`no` in a source.
pub(crate) fn switch_from_yes_no(word: &str) -> Option<Switch> {
    match word {
        "yes" => Some(Switch::On),
        "no" => Some(Switch::Off),
        _ => None,
    }
}

/// The reverse of [`switch_from_yes_no`].
pub(crate) const fn switch_to_yes_no(switch: Switch) -> &'static str {
    match switch {
        Switch::On => "yes",
        Switch::Off => "no",
    }
}
