//! libvirt's own test data: everything reads, and nothing that works is called an error.

use std::collections::BTreeMap;

use vmdisk::{LintOptions, ReadFailure, Severity, lint, read_bytes};
use vmdisk_tests::{corpus, real};

/// The reason of SD cards in guests whose machine is a PC.
const NO_SD_SLOT: &str =
    "an SD card in a PC, which QEMU does not start: `machine type does not support if=sd`";

/// Why `duplicate-disk-source` is right about a socket that two disks name.
const ONE_SOCKET: &str = "two disks on one vhost-user socket: QEMU waits for ever at the start for the second connection";

const NO_SUCH_UNIT: &str = "an IDE disk at a bus or unit that PCs do not have, which QEMU refuses \
    (`Can't create IDE unit 2, bus supports only 2 units`)";

const READ_ERRORS: &str = "rerror_policy='ignore' shows the guest old memory for a failed read";

/// Cases that libvirt's own suite accepts and that are unsafe or cannot start all the same.
const REALLY_UNSAFE: &[(&str, &str, &str)] = &[
    (
        "disk-blockio.x86_64-latest.xml",
        "block-size-refused",
        "an IDE disk with discard_granularity='4096', which QEMU refuses (`discard_granularity must be 512 for ide`)",
    ),
    (
        "disk-blockio.x86_64-latest.xml",
        "unit-out-of-range",
        NO_SUCH_UNIT,
    ),
    (
        "disk-blockio.xml",
        "block-size-refused",
        "an IDE disk with discard_granularity='4096', which QEMU refuses (`discard_granularity must be 512 for ide`)",
    ),
    ("disk-blockio.xml", "unit-out-of-range", NO_SUCH_UNIT),
    (
        "disk-cache.x86_64-latest.xml",
        "cache-unsafe",
        "its third disk has cache='unsafe', is writable and is kept",
    ),
    (
        "disk-cache.x86_64-latest.xml",
        "duplicate-disk-source",
        "its first two disks write to one logical volume; libvirt refuses only at the start, by QEMU's lock",
    ),
    (
        "disk-cache.xml",
        "cache-unsafe",
        "its third disk has cache='unsafe', is writable and is kept",
    ),
    (
        "disk-cache.xml",
        "duplicate-disk-source",
        "its first two disks write to one logical volume; libvirt refuses only at the start, by QEMU's lock",
    ),
    (
        "disk-error-policy.x86_64-latest.xml",
        "error-policy-ignore",
        READ_ERRORS,
    ),
    ("disk-error-policy.xml", "error-policy-ignore", READ_ERRORS),
    (
        "disk-ide-split.x86_64-latest.xml",
        "unit-out-of-range",
        NO_SUCH_UNIT,
    ),
    ("disk-ide-split.xml", "unit-out-of-range", NO_SUCH_UNIT),
    (
        "disk-serial.x86_64-latest.xml",
        "device-bus-refused",
        NO_SD_SLOT,
    ),
    ("disk-serial.xml", "device-bus-refused", NO_SD_SLOT),
    (
        "disk-serial.x86_64-latest.xml",
        "unit-out-of-range",
        NO_SUCH_UNIT,
    ),
    ("disk-serial.xml", "unit-out-of-range", NO_SUCH_UNIT),
    (
        "disk-slices.x86_64-latest.xml",
        "duplicate-disk-source",
        "one disk writes a file that another stands on, in other parts of it, and QEMU locks whole files",
    ),
    (
        "disk-slices.x86_64-latest.xml",
        "slice-unaligned",
        "a slice whose size ends inside a sector, which QEMU refuses (`Specified size is not multiple of 512`)",
    ),
    (
        "disk-slices.xml",
        "duplicate-disk-source",
        "one disk writes a file that another stands on, in other parts of it, and QEMU locks whole files",
    ),
    (
        "disk-slices.xml",
        "slice-unaligned",
        "a slice whose size ends inside a sector, which QEMU refuses (`Specified size is not multiple of 512`)",
    ),
    (
        "disk-snapshot.x86_64-latest.xml",
        "unit-out-of-range",
        NO_SUCH_UNIT,
    ),
    ("disk-snapshot.xml", "unit-out-of-range", NO_SUCH_UNIT),
    (
        "disk-source-pool-mode.x86_64-latest.xml",
        "unit-out-of-range",
        NO_SUCH_UNIT,
    ),
    (
        "disk-source-pool-mode.xml",
        "unit-out-of-range",
        NO_SUCH_UNIT,
    ),
    (
        "disk-source-pool.x86_64-latest.xml",
        "unit-out-of-range",
        NO_SUCH_UNIT,
    ),
    ("disk-source-pool.xml", "unit-out-of-range", NO_SUCH_UNIT),
    (
        "disk-vhostuser-numa.x86_64-latest.xml",
        "duplicate-disk-source",
        ONE_SOCKET,
    ),
    (
        "disk-vhostuser-numa.xml",
        "duplicate-disk-source",
        ONE_SOCKET,
    ),
    (
        "disk-vhostuser.x86_64-latest.xml",
        "duplicate-disk-source",
        ONE_SOCKET,
    ),
    ("disk-vhostuser.xml", "duplicate-disk-source", ONE_SOCKET),
    (
        "virtio-lun.x86_64-9.0.0.xml",
        "lun-on-virtio-blk",
        "libvirt takes it for QEMU 9.0, which says `Please set scsi=off for virtio-blk devices` and ends",
    ),
    (
        "virtio-lun.xml",
        "lun-on-virtio-blk",
        "libvirt takes it for QEMU 9.0, which says `Please set scsi=off for virtio-blk devices` and ends",
    ),
    (
        "virtio-lun.x86_64-9.0.0.xml",
        "unstable-device-path",
        "a LUN is passed through by its /dev/sdX name",
    ),
    (
        "virtio-lun.xml",
        "unstable-device-path",
        "a LUN is passed through by its /dev/sdX name",
    ),
];

#[test]
fn every_case_reads_and_no_working_case_is_called_an_error_without_facts() {
    let Some(folder) = corpus("corpus", "qemuxmlconf") else {
        return;
    };
    let mut read_cases = 0;
    let mut errors: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "xml"))
    {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let document = match read_bytes(&std::fs::read(file).unwrap()) {
            Ok(document) => document,
            Err(failure @ ReadFailure { .. }) => panic!("{name}: {failure:?}"),
        };
        read_cases += 1;
        for diagnostic in lint(&document, &LintOptions::default()).diagnostics {
            if diagnostic.severity == Severity::Error {
                errors.insert(
                    (name.clone(), diagnostic.rule.name.to_owned()),
                    diagnostic.title,
                );
            }
        }
    }
    assert!(
        real(
            read_cases > 500,
            "corpus",
            "more than 500 cases in qemuxmlconf"
        ),
        "only {read_cases} cases"
    );
    for (case, rule, _reason) in REALLY_UNSAFE {
        let key = ((*case).to_owned(), (*rule).to_owned());
        assert!(
            errors.remove(&key).is_some(),
            "{case} no longer has {rule}: take it off the list"
        );
    }
    let left: Vec<String> = errors
        .iter()
        .map(|((case, rule), title)| format!("{case}: {rule}: {title}"))
        .collect();
    assert!(
        left.is_empty(),
        "{read_cases} cases, {} errors that are not on the list:\n{}",
        left.len(),
        left.join("\n")
    );
}
