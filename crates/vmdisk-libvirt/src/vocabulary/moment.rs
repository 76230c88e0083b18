//! `<domainsnapshot>`, `<domaincheckpoint>` and `<domainbackup>`: states of a guest's disks at a point in time.
//!
//! Versions come from libvirt's `docs/formatsnapshot.rst`, `docs/formatbackup.rst` and their history; where
//! they name none, the version of the parent element. The rows for 9.0 and 11.3 were compared with
//! the schemas and libraries of these releases.

use super::ValueSpec::{Port, Text, Unsigned32, Unsigned64, Words};
use super::source::{
    ENCRYPTION, METADATA_CACHE, PRIVATE_DATA, RESERVATIONS, SECLABEL, SLICES, SOURCE_TYPES,
};
use super::{AttributeSpec, ChildSpec, ElementSpec, Pick, YES_NO, attribute, child};

/// Unmodeled elements.
macro_rules! others {
    ($($name:ident = $wire:literal,)+) => {
        $(static $name: ElementSpec = ElementSpec::new($wire).unjudged();)+
    };
}

others! {
    DOMAIN = "domain",
    INACTIVE_DOMAIN = "inactiveDomain",
    PARENT = "parent",
    COOKIE = "cookie",
    METADATA = "metadata",
}

static NAME: ElementSpec = ElementSpec::new("name").content(Text);
static DESCRIPTION: ElementSpec = ElementSpec::new("description").content(Text);
static CREATION_TIME: ElementSpec = ElementSpec::new("creationTime").content(Unsigned64);
static STATE: ElementSpec = ElementSpec::new("state").content(Text);
static ACTIVE: ElementSpec = ElementSpec::new("active").content(Unsigned32);

/// libvirt `<domainsnapshot>` (0.8.0).
pub static DOMAIN_SNAPSHOT: ElementSpec = ElementSpec::new("domainsnapshot").children(&[
    child((0, 8, 0), &NAME),
    child((0, 8, 0), &DESCRIPTION),
    child((0, 8, 0), &STATE),
    child((0, 8, 0), &CREATION_TIME),
    child((0, 8, 0), &PARENT),
    child((1, 0, 1), &MEMORY),
    child((0, 9, 5), &SNAPSHOT_DISKS),
    // Added for reverting to external snapshots; neither the schema nor the library of 9.0 has it.
    child((9, 7, 0), &REVERT_DISKS),
    child((0, 9, 5), &DOMAIN),
    child((5, 7, 0), &INACTIVE_DOMAIN),
    child((0, 8, 0), &ACTIVE),
    child((5, 0, 0), &COOKIE),
    child((0, 8, 0), &METADATA),
]);

static MEMORY: ElementSpec = ElementSpec::new("memory").attributes(&[
    attribute(
        "snapshot",
        (1, 0, 1),
        Words(&["no", "internal", "external"]),
    ),
    attribute("file", (1, 0, 1), Text),
]);

static SNAPSHOT_DISKS: ElementSpec =
    ElementSpec::new("disks").children(&[child((0, 9, 5), &SNAPSHOT_DISK).many()]);

static REVERT_DISKS: ElementSpec =
    ElementSpec::new("revertDisks").children(&[child((9, 7, 0), &SNAPSHOT_DISK).many()]);

static SNAPSHOT_DISK: ElementSpec = ElementSpec::new("disk")
    .attributes(&[
        attribute("name", (0, 9, 5), Text),
        attribute(
            "snapshot",
            (0, 9, 5),
            Words(&["no", "internal", "external", "manual"]),
        ),
        attribute("type", (1, 2, 2), Words(SOURCE_TYPES)),
    ])
    .children(&[
        child((0, 9, 5), &DRIVER),
        ChildSpec {
            name: "source",
            since: (0, 9, 5),
            qemu: None,
            pick: Pick::SourceOfType,
            repeats: false,
            fields: [None; 2],
        },
        // In the library since 9.0, in the schema only later.
        child((9, 0, 0), &DELETE_IN_PROGRESS),
    ]);

static DELETE_IN_PROGRESS: ElementSpec = ElementSpec::new("snapshotDeleteInProgress");

static DRIVER: ElementSpec = ElementSpec::new("driver")
    .attributes(&[attribute(
        "type",
        (0, 9, 5),
        Words(vmdisk_model::Format::WORDS),
    )])
    .children(&[child((7, 0, 0), &METADATA_CACHE)]);

/// libvirt `<domaincheckpoint>` (5.6.0).
pub static DOMAIN_CHECKPOINT: ElementSpec = ElementSpec::new("domaincheckpoint").children(&[
    child((5, 6, 0), &NAME),
    child((5, 6, 0), &DESCRIPTION),
    child((5, 6, 0), &CREATION_TIME),
    child((5, 6, 0), &PARENT),
    child((5, 6, 0), &CHECKPOINT_DISKS),
    child((5, 6, 0), &DOMAIN),
]);

static CHECKPOINT_DISKS: ElementSpec =
    ElementSpec::new("disks").children(&[child((5, 6, 0), &CHECKPOINT_DISK).many()]);

static CHECKPOINT_DISK: ElementSpec = ElementSpec::new("disk").attributes(&[
    attribute("name", (5, 6, 0), Text),
    attribute("checkpoint", (5, 6, 0), Words(&["no", "bitmap"])),
    attribute("bitmap", (5, 6, 0), Text),
    attribute("size", (5, 6, 0), Unsigned64),
]);

/// libvirt `<domainbackup>` (6.0.0).
pub static DOMAIN_BACKUP: ElementSpec = ElementSpec::new("domainbackup")
    .attributes(&[
        attribute("mode", (6, 0, 0), Words(&["push", "pull"])),
        attribute("id", (6, 0, 0), Unsigned32),
    ])
    .children(&[
        child((6, 0, 0), &INCREMENTAL),
        child((6, 0, 0), &SERVER),
        child((6, 0, 0), &BACKUP_DISKS),
        child((6, 0, 0), &PRIVATE_DATA),
    ]);

static INCREMENTAL: ElementSpec = ElementSpec::new("incremental").content(Text);

static SERVER: ElementSpec = ElementSpec::new("server").attributes(&[
    attribute(
        "transport",
        (6, 0, 0),
        Words(&["tcp", "unix", "rdma", "fd"]),
    )
    .later(&[("fd", (11, 3, 0), None)]),
    attribute("name", (6, 0, 0), Text),
    attribute("port", (6, 0, 0), Port),
    attribute("socket", (6, 0, 0), Text),
    attribute("tls", (6, 6, 0), YES_NO),
    attribute("fdgroup", (11, 3, 0), Text),
]);

static BACKUP_DISKS: ElementSpec =
    ElementSpec::new("disks").children(&[child((6, 0, 0), &BACKUP_DISK).many()]);

static BACKUP_DISK: ElementSpec = ElementSpec::new("disk")
    .attributes(&[
        attribute("name", (6, 0, 0), Text),
        attribute("backup", (6, 0, 0), YES_NO),
        attribute("type", (6, 0, 0), Words(&["file", "block"])),
        attribute("index", (6, 0, 0), Unsigned32),
        attribute("state", (6, 0, 0), Text),
        attribute("backupmode", (6, 6, 0), Words(&["full", "incremental"])),
        attribute("incremental", (6, 6, 0), Text),
        attribute("exportname", (6, 0, 0), Text),
        attribute("exportbitmap", (6, 0, 0), Text),
    ])
    .children(&[
        child((6, 0, 0), &DRIVER),
        child((6, 0, 0), &BACKUP_TARGET),
        child((6, 0, 0), &BACKUP_SCRATCH),
    ]);

static BACKUP_TARGET: ElementSpec = backup_image("target");
static BACKUP_SCRATCH: ElementSpec = backup_image("scratch");

const fn backup_image(name: &'static str) -> ElementSpec {
    ElementSpec::new(name)
        .attributes(BACKUP_ATTRIBUTES)
        .children(BACKUP_CHILDREN)
}

const BACKUP_ATTRIBUTES: &[AttributeSpec] = &[
    attribute("file", (6, 0, 0), Text),
    attribute("dev", (6, 0, 0), Text),
    attribute("index", (6, 0, 0), Unsigned32),
];

const BACKUP_CHILDREN: &[ChildSpec] = &[
    child((6, 0, 0), &SECLABEL).many(),
    child((6, 6, 0), &ENCRYPTION),
    child((6, 0, 0), &SLICES),
    child((6, 0, 0), &RESERVATIONS),
    child((6, 0, 0), &PRIVATE_DATA),
];
