//! What a program, its version or this host cannot take, each with its reason.

use vmdisk::facts::Version;

/// Something that is not taken, and how the refusal reads.
pub(super) struct Exception {
    /// The spec.
    spec: &'static str,
    /// Why it cannot be taken.
    pub(super) reason: &'static str,
    /// What the program says then.
    pub(super) says: &'static str,
}

/// Forms that a spec has not.
const FORMS: &[(&str, Exception)] = &[
    (
        "qemu",
        Exception {
            spec: "transient-disk-forgets",
            reason: "QEMU has no option for an overlay that is made at each start",
            says: "no option of QEMU",
        },
    ),
    (
        "blockdev-json",
        Exception {
            spec: "transient-disk-forgets",
            reason: "QEMU has no option for an overlay that is made at each start",
            says: "no option of QEMU",
        },
    ),
    (
        "qemu",
        Exception {
            spec: "logins-name-their-secrets",
            reason: "only libvirt finds a secret by its usage",
            says: "QEMU cannot read the secret",
        },
    ),
    (
        "blockdev-json",
        Exception {
            spec: "logins-name-their-secrets",
            reason: "only libvirt finds a secret by its usage",
            says: "QEMU cannot read the secret",
        },
    ),
];

/// What libvirt 9.0 does not know yet, with the version that does.
const LIBVIRT: &[((u32, u32), Exception)] = &[
    (
        (11, 5),
        Exception {
            spec: "raw-file-on-nvme-has-its-serial",
            reason: "libvirt has bus nvme since 11.5",
            says: "nvme",
        },
    ),
    (
        (11, 5),
        Exception {
            spec: "qcow2-on-nvme",
            reason: "libvirt has bus nvme since 11.5",
            says: "nvme",
        },
    ),
];

/// What the first fixed libvirt does otherwise, and what the linter says before it.
const BUGS: &[((u32, u32), Exception)] = &[(
    (11, 5),
    Exception {
        spec: "cdrom-on-virtio-scsi-and-on-usb",
        reason: "libvirt makes a hard disk of a USB CD-ROM drive until 11.5, and the spec asks for one",
        says: "a USB CD-ROM drive is a hard disk for the guest",
    },
)];

/// What libvirt converts only on a host that has it.
const HOST: &[Exception] = &[
    Exception {
        spec: "huge-pages-below-a-guest",
        reason: "this host has no hugetlbfs, and libvirt asks for its path",
        says: "hugetlbfs filesystem is not mounted",
    },
    Exception {
        spec: "logins-name-their-secrets",
        reason: "libvirt looks the secrets up, and this host has none",
        says: "secret",
    },
];

/// What the real QEMU cannot start on a host without the device.
const QEMU: &[Exception] = &[
    Exception {
        spec: "lun-passes-scsi-commands",
        reason: "a loop device takes no SCSI commands, and there is no SCSI device here",
        says: "SG_IO",
    },
    Exception {
        spec: "disks-behind-servers-of-other-protocols",
        reason: "no iSCSI target is here, and this QEMU may have no client for one",
        says: "iscsi",
    },
    Exception {
        spec: "logins-name-their-secrets",
        reason: "libvirt keeps the secrets, and this host has none",
        says: "secret",
    },
];

/// What a version of QEMU starts no more, with the first that does not.
const QEMU_NO_MORE: &[(Version, Exception)] = &[(
    Version(11, 1, 0),
    Exception {
        spec: "old-machine-types-still-fit",
        reason: "QEMU 11.1 has no machine types older than 5.2",
        says: "unsupported machine type",
    },
)];

/// The exception of a form.
pub(super) fn of_form(spec: &str, form: &str) -> Option<&'static Exception> {
    FORMS
        .iter()
        .find(|(of, exception)| *of == form && exception.spec == spec)
        .map(|(_, exception)| exception)
}

/// The exception of a version of libvirt.
pub(super) fn of_libvirt(spec: &str, version: (u32, u32)) -> Option<&'static Exception> {
    LIBVIRT
        .iter()
        .find(|(since, exception)| exception.spec == spec && version < *since)
        .map(|(_, exception)| exception)
}

/// The exception of a bug in a version of libvirt.
pub(super) fn of_bug(spec: &str, version: (u32, u32)) -> Option<&'static Exception> {
    BUGS.iter()
        .find(|(fixed, exception)| exception.spec == spec && version < *fixed)
        .map(|(_, exception)| exception)
}

/// The exception of converting on this host.
pub(super) fn of_host(spec: &str) -> Option<&'static Exception> {
    HOST.iter().find(|exception| exception.spec == spec)
}

/// The exception of starting QEMU.
pub(super) fn of_start(spec: &str, qemu: Version) -> Option<&'static Exception> {
    let no_more = QEMU_NO_MORE
        .iter()
        .filter(|(until, _)| qemu >= *until)
        .map(|(_, exception)| exception);
    QEMU.iter()
        .chain(no_more)
        .find(|exception| exception.spec == spec)
}
