//! Where the linter and libvirt differ, and why.

use std::collections::BTreeSet;

/// A guest on which they differ.
pub(crate) struct Case<'a> {
    pub(crate) xml: &'a str,
    /// Rules that report an error.
    pub(crate) rules: &'a BTreeSet<&'static str>,
    /// What libvirt says against it.
    pub(crate) message: Option<&'a str>,
}

impl Case<'_> {
    fn only(&self, rules: &[&str]) -> bool {
        self.message.is_none() && self.rules.iter().all(|rule| rules.contains(rule))
    }

    fn says(&self, text: &str) -> bool {
        self.rules.is_empty() && self.message.is_some_and(|message| message.contains(text))
    }

    fn has(&self, text: &str) -> bool {
        self.xml.contains(text)
    }
}

/// The name of a difference, with its cause; `None` for one that nobody has explained.
pub(crate) fn name(case: &Case<'_>) -> Option<&'static str> {
    let rows: &[(bool, &str)] = &[
        (
            case.only(&[
                "backing-format-missing",
                "format-refused",
                "invalid-value",
                "missing-value",
            ]) && case.has("<backingStore>\n"),
            "a <backingStore> without a type ends the chain, and what is in it is dropped unread (virDomainDiskBackingStoreParse): libvirt takes it, and the images below are lost",
        ),
        (
            case.says("unknown volume encryption format type luks-any"),
            "luks-any is known from 9.3 on",
        ),
        (
            case.says("backingStore is not supported with vhostuser disk"),
            "the backing store of a daemon's disk is kept as text and not looked at",
        ),
        (
            case.only(&["missing-value"]) && case.has("<disk type='volume'"),
            "a volume without pool and name is taken, and the guest does not start (virDomainDiskSourcePoolDefParse returns before it looks)",
        ),
        (
            case.only(&["invalid-value"]) && case.has("<slice type='cake'"),
            "only slices of type storage are looked for, by XPath; others are dropped (virDomainStorageSourceParseSlices)",
        ),
        (
            case.has("<auth") && case.rules.is_empty() && case.message.is_some(),
            "libvirt reads <auth> in any source; in a file's or a daemon's it is an unknown element here, which is a warning",
        ),
        (
            case.says("storage format") && case.has("type='vhostuser'"),
            "libvirt checks the format of a daemon's disk, which has none: it is kept as text",
        ),
        (
            case.only(&["missing-value"]) && case.has("device='lun'"),
            "a SCSI unit without a source is taken, and the guest does not start",
        ),
        (
            case.only(&["device-bus-refused"])
                && ["bus='xen'", "bus='uml'", "bus='sd'"]
                    .iter()
                    .any(|bus| case.has(bus)),
            "a disk on a bus of another hypervisor, or an SD card in a PC, is taken, and the guest does not start",
        ),
        (
            case.only(&["lun-on-virtio-blk"]),
            "a SCSI unit of the host on virtio-blk is taken while QEMU has the option, and QEMU refuses it at the start",
        ),
        (
            case.only(&["usb-drive-empty"]),
            "an empty drive on USB is refused by QEMU at the start; 9.0 takes it",
        ),
        (
            case.message == Some("(libvirt crashed)"),
            "libvirt crashes on it",
        ),
        (
            case.rules.is_empty() && case.message.is_some() && case.has("type='vhostuser'"),
            "what no daemon's disk has is kept as text where it stands in its source, and not looked at",
        ),
        (
            case.says("Missing required attribute 'protocol'")
                || (case.says("storage type 'dir' requires use of storage format 'fat'")
                    && case.has("device='cdrom'")),
            "a drive with removable media and a source that names nothing is an empty drive here",
        ),
        (
            case.only(&["throttle-limits-refused"]),
            "bursts without limits are refused by QEMU at the start; libvirt compares only totals with parts",
        ),
        (
            case.says("startupPolicy"),
            "libvirt reads startupPolicy on any source; on those without a path it is an unknown attribute here, which is a warning",
        ),
        (
            case.says("Cannot specify relabel if label is missing"),
            "relabel='yes' without a label is refused by newer ones alone (virSecurityDeviceLabelDefParseXML)",
        ),
    ];
    rows.iter().find(|(is_it, _)| *is_it).map(|(_, name)| *name)
}
