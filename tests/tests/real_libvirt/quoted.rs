//! What rules quote of libvirt, and which libvirt can be made to say it.

use std::collections::BTreeSet;

use vmdisk::facts::Version;
use vmdisk::rules::{Evidence, RULES, Rule};
use vmdisk_tests::LibvirtBuild;

/// A text, with the rule that quotes it.
#[derive(Clone, Copy)]
pub(crate) struct Quoted {
    pub(crate) rule: &'static Rule,
    pub(crate) evidence: &'static Evidence,
    pub(crate) text: &'static str,
}

/// Everything that rules quote of libvirt.
pub(crate) fn quoted() -> impl Iterator<Item = Quoted> {
    RULES.iter().flat_map(|rule| {
        rule.evidence.iter().filter_map(|evidence| match evidence {
            Evidence::Refused { by, text, .. } if by.starts_with("libvirt") => Some(Quoted {
                rule,
                evidence,
                text,
            }),
            Evidence::Refused { .. }
            | Evidence::Measured { .. }
            | Evidence::Source(_)
            | Evidence::Cve(_)
            | Evidence::NotMeasuredHere(_) => None,
        })
    })
}

/// The texts with which a libvirt refuses definitions, as far as rules quote them.
pub(crate) fn said_at_definition(libvirt: &LibvirtBuild) -> BTreeSet<&'static str> {
    quoted()
        .filter(|quoted| !quoted.evidence.is_at_start() && !quoted.evidence.is_from_documents())
        .map(|quoted| quoted.text)
        .filter(|text| !is_unknown_to(text, libvirt))
        .collect()
}

/// Whether this libvirt is one of those that do not say it.
fn is_unknown_to(text: &str, libvirt: &LibvirtBuild) -> bool {
    NOT_IN_EVERY_VERSION
        .iter()
        .filter(|(row, ..)| *row == text)
        .any(|(_, spoken, _)| !spoken.is_by(libvirt.version))
}

/// Which libvirts say something.
pub(crate) enum Spoken {
    Since(Version),
    Before(Version),
}

impl Spoken {
    fn is_by(&self, libvirt: Version) -> bool {
        match self {
            Spoken::Since(version) => libvirt >= *version,
            Spoken::Before(version) => libvirt < *version,
        }
    }
}

/// Texts that some of the tried versions do not say when they define a guest, and why.
pub(crate) const NOT_IN_EVERY_VERSION: &[(&str, Spoken, &str)] = &[
    (
        "'discard_no_unref' is not compatible with read-only disk",
        Spoken::Since(Version(9, 5, 0)),
        "older ones drop the attribute",
    ),
    (
        "'discard_no_unref' only works with qcow2 disk format",
        Spoken::Since(Version(9, 5, 0)),
        "older ones drop the attribute",
    ),
    (
        "<dataStore> feature available only with qcow2 images",
        Spoken::Since(Version(10, 10, 0)),
        "older ones drop the element",
    ),
    (
        "The <source> of <dataStore> can't have another nested <dataStore> or <backingStore> element",
        Spoken::Since(Version(10, 10, 0)),
        "older ones drop the element",
    ),
    (
        "missing data file store format",
        Spoken::Since(Version(10, 10, 0)),
        "older ones drop the element",
    ),
    (
        "missing disk data file store source",
        Spoken::Since(Version(10, 10, 0)),
        "older ones drop the element",
    ),
    (
        "only 'raw' images supported as <dataStore>",
        Spoken::Since(Version(10, 10, 0)),
        "older ones drop the element",
    ),
    (
        "slices are not supported for <dataStore>",
        Spoken::Since(Version(10, 10, 0)),
        "older ones drop the element",
    ),
    (
        "'queue' count must be configured for explicit iothread to queue mapping",
        Spoken::Since(Version(10, 0, 0)),
        "older ones drop the mapping",
    ),
    (
        "disk driver 'iothread' attribute can't be used together with 'iothreads' subelement",
        Spoken::Since(Version(10, 0, 0)),
        "older ones drop the mapping",
    ),
    (
        "duplicate mapping for iothread '…'",
        Spoken::Since(Version(10, 0, 0)),
        "older ones drop the mapping",
    ),
    (
        "iothread '…' not defined in iothreadid",
        Spoken::Since(Version(10, 0, 0)),
        "older ones drop the mapping",
    ),
    (
        "iothread queue '…' is already assigned",
        Spoken::Since(Version(10, 0, 0)),
        "older ones drop the mapping",
    ),
    (
        "iothread queue '…' mapping out of range",
        Spoken::Since(Version(10, 0, 0)),
        "older ones drop the mapping",
    ),
    (
        "iothread to queue mapping must be provided for all iothreads or for none",
        Spoken::Since(Version(10, 0, 0)),
        "older ones drop the mapping",
    ),
    (
        "missing iothread mapping for queue '…'",
        Spoken::Since(Version(10, 0, 0)),
        "older ones drop the mapping",
    ),
    (
        "iothreads are supported only by 'virtio-scsi' controllers",
        Spoken::Since(Version(11, 2, 0)),
        "older ones drop the mapping on controllers",
    ),
    (
        "block 'throttlefilters' can't be used together with 'iotune' for disk '…'",
        Spoken::Since(Version(11, 2, 0)),
        "older ones drop throttle groups",
    ),
    (
        "cdrom device with throttle filters isn't supported",
        Spoken::Since(Version(11, 2, 0)),
        "older ones drop throttle groups",
    ),
    (
        "duplicate filter name '…' found",
        Spoken::Since(Version(11, 2, 0)),
        "older ones drop throttle groups",
    ),
    (
        "duplicate group name '…' found",
        Spoken::Since(Version(11, 2, 0)),
        "older ones drop throttle groups",
    ),
    (
        "missing group name",
        Spoken::Since(Version(11, 2, 0)),
        "older ones drop throttle groups",
    ),
    (
        "throttle group '…' not found",
        Spoken::Since(Version(11, 2, 0)),
        "older ones drop throttle groups",
    ),
    (
        "throttle group field '…' must be an integer",
        Spoken::Since(Version(11, 2, 0)),
        "older ones drop throttle groups",
    ),
    (
        "disk type '…' requires cache mode '…' or '…'",
        Spoken::Since(Version(9, 8, 0)),
        "older ones do not know the type vhostvdpa",
    ),
    (
        "element '…' requires either 'keyfile' or 'agentsock' attribute",
        Spoken::Since(Version(9, 8, 0)),
        "older ones drop the identity of ssh",
    ),
    (
        "'luks-any' is currently not supported by the qemu encryption engine",
        Spoken::Since(Version(9, 3, 0)),
        "older ones do not know the word",
    ),
    (
        "'luks2' is currently not supported by the qemu encryption engine",
        Spoken::Since(Version(9, 3, 0)),
        "older ones say it without quotes",
    ),
    (
        "luks2 is currently not supported by the qemu encryption engine",
        Spoken::Before(Version(9, 3, 0)),
        "newer ones say it with quotes",
    ),
    (
        "qemu encryption engine expects only a single secret",
        Spoken::Since(Version(9, 3, 0)),
        "older ones take the first",
    ),
    (
        "'sheepdog' protocol is no longer supported by any hypervisor driver",
        Spoken::Since(Version(9, 1, 0)),
        "9.0 takes it",
    ),
    (
        "This QEMU doesn't support SCSI emulation with 'virtio-blk' device",
        Spoken::Since(Version(9, 1, 0)),
        "the QEMU beside 9.0 still has it",
    ),
    (
        "controller driver 'iothread' attribute can't be used together with 'iothreads' subelement",
        Spoken::Since(Version(11, 2, 0)),
        "older ones drop the mapping on controllers",
    ),
    (
        "'usb' disk must not be empty",
        Spoken::Since(Version(9, 1, 0)),
        "9.0 leaves it to QEMU",
    ),
    (
        "<iotune> is not supported with bus='sd'",
        Spoken::Since(Version(9, 1, 0)),
        "9.0 takes it",
    ),
    (
        "queue_size attribute in disk driver is only supported",
        Spoken::Since(Version(9, 1, 0)),
        "9.0 takes it",
    ),
    (
        "CCW addresses are not supported by machine type '…'",
        Spoken::Since(Version(9, 1, 0)),
        "9.0 says `cannot use CCW address type for device`",
    ),
    (
        "cannot use CCW address type for device",
        Spoken::Before(Version(9, 1, 0)),
        "newer ones look at the machine first",
    ),
    (
        "Only ide, sata and scsi disk supports 'product'",
        Spoken::Since(Version(11, 0, 0)),
        "older ones take products on scsi alone",
    ),
    (
        "unknown protocol transport type '…'",
        Spoken::Before(Version(9, 1, 0)),
        "newer ones say it of any attribute alike",
    ),
    (
        "unknown source mode '…' for volume type disk",
        Spoken::Before(Version(9, 1, 0)),
        "newer ones say it of any attribute alike",
    ),
];

/// Texts that no tried version can be made to say, and why: the rules say of them "from documents only".
pub(crate) const FROM_DOCUMENTS_ONLY: &[(&str, &str)] = &[(
    "SCSI host address controller='…' bus='…' target='…' unit='…' in use by another SCSI disk",
    "the host device's address is looked at before the guest as a whole, and refused as `in use by a SCSI disk`",
)];

#[test]
fn what_is_from_documents_only_has_a_row_that_says_why() {
    let said: BTreeSet<&str> = quoted()
        .filter(|quoted| quoted.evidence.is_from_documents())
        .map(|quoted| quoted.text)
        .collect();
    let rows: BTreeSet<&str> = FROM_DOCUMENTS_ONLY.iter().map(|(text, _)| *text).collect();
    assert_eq!(said, rows);
    let all: BTreeSet<&str> = quoted().map(|quoted| quoted.text).collect();
    for (text, ..) in NOT_IN_EVERY_VERSION {
        assert!(all.contains(text), "no rule quotes `{text}`");
    }
}
