//! What libvirt's own suite sees refused is refused here, at the place that libvirt means.

use vmdisk::{LintOptions, Severity, lint, read};
use vmdisk_tests::corpus;

/// The libvirt and the QEMU of `x86_64-latest` in the corpus.
const LATEST: &str = "libvirt=11.3,qemu=10.0";

/// What is said of a case.
enum Expected {
    /// An error of this rule, about this thing, at a place that begins with this text.
    Error(&'static str, &'static str, &'static str),
    /// Nothing that is an error, because the case is not about a disk.
    NotAboutADisk(&'static str),
}
use Expected::{Error, NotAboutADisk};

/// Each case: its name, the target it is refused for, libvirt's words, and what is found at which place.
const CASES: &[(&str, &str, &str, Expected)] = &[
    (
        "controller-virtio-serial-iothread",
        LATEST,
        "'iothread' attribute only supported for virtio scsi controllers",
        NotAboutADisk("a controller of consoles, which the model does not cover"),
    ),
    (
        "disk-address-conflict",
        LATEST,
        "Found duplicate drive address for disk with target name 'sda'",
        Error(
            "disk-address-refused",
            "disk sdb › address",
            "<address type='drive' controller='0' bus='0'",
        ),
    ),
    (
        "disk-device-lun-type-invalid",
        LATEST,
        "disk device='lun' is only valid for block type disk source",
        Error(
            "lun-refused",
            "disk vda › source",
            "<source file='/dev/HostVG/QEMUGuest1'/>",
        ),
    ),
    (
        "disk-fdc-incompatible-address",
        LATEST,
        "Invalid address type 'pci' for the disk 'fda' with the bus type 'fdc'",
        Error(
            "disk-address-refused",
            "disk fda › address",
            "<address type='pci'",
        ),
    ),
    (
        "disk-fmt-dir",
        LATEST,
        "'directory' storage format is not directly supported by QEMU",
        Error("format-refused", "disk hda › format", "dir"),
    ),
    (
        "disk-fmt-iso",
        LATEST,
        "storage format 'iso' is not directly supported by QEMU",
        Error("format-refused", "disk hda › format", "iso"),
    ),
    (
        "disk-hostdev-scsi-address-conflict",
        LATEST,
        "using disk target name 'sda' conflicts with SCSI host device address",
        Error("disk-address-refused", "disk sda › target/@dev", "sda"),
    ),
    (
        "disk-ide-incompatible-address",
        LATEST,
        "Invalid address type 'pci' for the disk 'hda' with the bus type 'ide'",
        Error(
            "disk-address-refused",
            "disk hda › address",
            "<address type='pci'",
        ),
    ),
    (
        "disk-missing-target-invalid",
        LATEST,
        "missing target information for device /dev/HostVG/QEMUGuest1",
        Error(
            "missing-value",
            "disk ",
            "<disk type='block' device='disk'>",
        ),
    ),
    (
        "disk-network-iscsi-auth-secrettype-invalid",
        LATEST,
        "unknown secret type '<null>'",
        Error(
            "login-refused",
            "disk vda › source/auth",
            "<auth username='myname'>",
        ),
    ),
    (
        "disk-network-iscsi-auth-wrong-secrettype",
        LATEST,
        "invalid secret type 'ceph'",
        Error(
            "login-refused",
            "disk vda › source/auth",
            "<auth username='myname'>",
        ),
    ),
    (
        "disk-network-iscsi-zero-hosts-invalid",
        LATEST,
        "iSCSI protocol accepts only one host",
        Error(
            "network-server-refused",
            "disk vda › source",
            "<source protocol='iscsi'",
        ),
    ),
    (
        "disk-network-sheepdog",
        LATEST,
        "'sheepdog' protocol is no longer supported by any hypervisor driver",
        Error(
            "network-source-refused",
            "disk vda › source/@protocol",
            "sheepdog",
        ),
    ),
    (
        "disk-network-source-auth-both",
        LATEST,
        "an <auth> definition already found for disk source",
        Error(
            "duplicate-value",
            "disk vda › source/auth",
            "<auth username='myname'>",
        ),
    ),
    (
        "disk-scsi-disk-vpd-build-error",
        LATEST,
        "Only scsi disk supports 'vendor'",
        Error("bus-option-refused", "disk sda › vendor", "SEAGATE"),
    ),
    (
        "disk-scsi-incompatible-address",
        LATEST,
        "Invalid address type 'pci' for the disk 'sda' with the bus type 'scsi'",
        Error(
            "disk-address-refused",
            "disk sda › address",
            "<address type='pci'",
        ),
    ),
    (
        "disk-scsi-product-length",
        LATEST,
        "disk product is more than 16 characters",
        Error(
            "identity-refused",
            "disk sda › product",
            "WD10EZEX-00BN5A00",
        ),
    ),
    (
        "disk-shared-qcow",
        LATEST,
        "shared access for disk 'hda' requires use of supported storage format",
        Error("format-refused", "disk hda › shareable", "<shareable/>"),
    ),
    (
        "disk-usb-pci",
        LATEST,
        "unexpected address type for usb disk",
        Error(
            "disk-address-refused",
            "disk sda › address",
            "<address type='pci'",
        ),
    ),
    (
        "hostdevs-drive-address-conflict",
        LATEST,
        "SCSI host address controller='0' bus='0' target='0' unit='0' in use by another SCSI host device",
        NotAboutADisk("two devices of the host, and no disk"),
    ),
    (
        "luks-disks-source-both",
        LATEST,
        "an <encryption> definition already found for disk source",
        Error(
            "duplicate-value",
            "disk vda › source/encryption",
            "<encryption format='luks'>",
        ),
    ),
    (
        "throttlefilter-invalid",
        LATEST,
        "block 'throttlefilters' can't be used together with 'iotune' for disk 'vda'",
        Error(
            "throttle-group-refused",
            "disk vda › throttlefilters",
            "<throttlefilters>",
        ),
    ),
];

/// Cases that libvirt takes with a newer QEMU and refuses with this one; the files are those that it takes.
const REFUSED_WITH_AN_OLDER_QEMU: &[(&str, &str, &str, Expected)] = &[
    (
        "disk-network-rbd-encryption-luks-any",
        "libvirt=11.3,qemu=7.2",
        "luks-any encryption is not supported by this QEMU binary",
        Error(
            "unsupported-by-target",
            "disk vda › source/encryption",
            "<encryption format='luks-any'",
        ),
    ),
    (
        "disk-network-tlsx509-nbd-hostname",
        "libvirt=11.3,qemu=6.2",
        "'tlsHostname' field is not supported by this QEMU",
        Error(
            "unsupported-by-target",
            "disk vdd › source/@tlsHostname",
            "test-hostname",
        ),
    ),
];

/// The errors that are found in a text, as `rule at place: text`.
fn errors(text: &str, target: &str) -> Vec<(&'static str, String, String)> {
    let document = read(text).unwrap();
    let options = LintOptions::default().target(target.parse::<vmdisk::Target>().unwrap());
    lint(&document, &options)
        .diagnostics
        .into_iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| {
            let at = diagnostic.place.span.slice(text).unwrap().to_owned();
            (diagnostic.rule.name, diagnostic.place.breadcrumb, at)
        })
        .collect()
}

/// What is wrong with what is said of a case; nothing if it is as expected.
fn wrong(name: &str, text: &str, target: &str, expected: &Expected) -> Option<String> {
    let found = errors(text, target);
    let is_right = match expected {
        Error(rule, about, at) => found.iter().any(|(found, breadcrumb, text)| {
            found == rule && breadcrumb.starts_with(about) && text.starts_with(at)
        }),
        // As soon as something is found, the row has to name it.
        NotAboutADisk(_) => found.is_empty(),
    };
    (!is_right).then(|| format!("{name} for {target}: {found:#?}"))
}

#[test]
fn every_case_that_libvirt_refuses_is_refused_at_the_place_it_means() {
    let Some(folder) = corpus("refused corpus", "qemuxmlconf-refused") else {
        return;
    };
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".xml").map(str::to_owned)
        })
        .collect();
    names.sort();
    let listed: Vec<&str> = CASES.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, listed, "each case has its row");
    let mut mistakes = Vec::new();
    let mut apart = Vec::new();
    for (name, target, says, expected) in CASES {
        let file =
            |end: &str| std::fs::read_to_string(folder.join(format!("{name}{end}"))).unwrap();
        let error = file(".x86_64-latest.err");
        assert!(error.contains(says), "{name}: libvirt says: {error}");
        mistakes.extend(wrong(name, &file(".xml"), target, expected));
        if let NotAboutADisk(reason) = expected {
            apart.push(format!("{name} ({reason})"));
        }
    }
    let accepted = folder.with_file_name("qemuxmlconf");
    for (name, target, _, expected) in REFUSED_WITH_AN_OLDER_QEMU {
        let text = std::fs::read_to_string(accepted.join(format!("{name}.xml"))).unwrap();
        mistakes.extend(wrong(name, &text, target, expected));
        let newer = errors(&text, LATEST);
        assert_eq!(newer, [], "{name} is taken with {LATEST}");
    }
    println!(
        "{} refused cases, {} refused with an older QEMU, {} not about a disk: {}",
        CASES.len(),
        REFUSED_WITH_AN_OLDER_QEMU.len(),
        apart.len(),
        apart.join("; ")
    );
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
