//! Each row of the known-bad builds has a guest that meets it, and is silent for the build with the fix and for a guest
//! without the feature.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

use std::path::Path;

use vmdisk::facts::known_bad::{Program, TABLE};
use vmdisk::facts::{Facts, Target};
use vmdisk::{Host, LintOptions, lint, read};

/// A row with what meets it.
struct Case {
    bug: &'static str,
    /// The disk that meets the bug, and one that does not.
    disk: &'static str,
    other: &'static str,
    /// The kind of the file system, or of the device, in the facts.
    storage: &'static str,
    /// A build with the bug, and builds without it.
    bad: &'static str,
    good: &'static [&'static str],
}

const FILE: &str = "type='file'|<source file='/srv/img/web2.img'/>|vda' bus='virtio";
const DEVICE: &str = "type='block'|<source dev='/dev/nvme0n1'/>|vda' bus='virtio";

/// A `<disk>`: the driver's attributes, and its type, source and target.
fn disk(text: &str, storage: &str) -> String {
    let (driver, more) = text.split_once(';').unwrap_or((text, ""));
    let is_device = ["lvm", "zvol", "device", "read-only"].contains(&storage);
    let shape = if is_device { DEVICE } else { FILE };
    let mut parts = shape.split('|');
    let mut next = || parts.next().expect("three parts");
    let (kind, source, target) = (next(), next(), next());
    let format = if driver.contains("type=") {
        ""
    } else {
        "type='raw'"
    };
    let of = |key: &str, or: &str| {
        let found = more.split(';').find_map(|it| it.strip_prefix(key));
        found.unwrap_or(or).to_owned()
    };
    let (kind, source) = (of("kind=", kind), of("source=", source));
    format!(
        "<disk {kind} {}><driver name='qemu' {format} {driver}/>{source}<target dev='{}'/>{}</disk>",
        of("device=", "device='disk'"),
        of("target=", target),
        of("inner=", ""),
    )
}

fn guest(case: &Case, text: &str, build: &str) -> String {
    let iso = format!(
        "<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source \
         file='/srv/iso/virtio-win-{build}.iso'/><target dev='sdz' bus='sata'/><readonly/></disk>"
    );
    let is_windows = program(case) == Program::VirtioWin;
    format!(
        "<domain type='kvm'><name>web1</name><iothreads>1</iothreads><os firmware='efi'><type \
         machine='q35'>hvm</type></os><devices><controller type='scsi' index='0' model='virtio-scsi'/>{}{}</devices>\
         </domain>",
        disk(text, case.storage),
        if is_windows { &iso } else { "" },
    )
}

fn program(case: &Case) -> Program {
    let row = TABLE.iter().find(|row| row.name == case.bug);
    row.unwrap_or_else(|| panic!("no row {}", case.bug)).program
}

fn facts(case: &Case, build: &str) -> Facts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/facts/xfs-nvme.json");
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    let zfs = build.replace('.', ", ");
    let zfs = match program(case) {
        Program::Zfs => format!("\"zfs\": {{\"version\": [{zfs}]}}"),
        _ => "\"zfs\": null".to_owned(),
    };
    let (kind, device) = match case.storage {
        "lvm" | "zvol" => ("xfs", case.storage),
        "device" | "read-only" | "" => ("xfs", "nvme"),
        kind => (kind, "nvme"),
    };
    let text = text
        .replace("\"kind\": \"xfs\"", &format!("\"kind\": \"{kind}\""))
        .replace("\"kind\": \"nvme\"", &format!("\"kind\": \"{device}\""))
        .replace(
            "\"devices\": [\"b4\"], \"btrfs\": null, \"ext4\": null, \"zfs\": null",
            &format!("\"devices\": [\"b4\"], \"btrfs\": null, \"ext4\": null, {zfs}"),
        );
    let mut facts = Facts::from_json(&text).expect("the fixture is valid").facts;
    for device in &mut facts.blockdevs {
        device.read_only = (case.storage == "read-only").into();
    }
    facts
}

/// The titles of the findings about known-bad builds.
fn found(case: &Case, text: &str, build: &str) -> Vec<String> {
    let target = match program(case) {
        Program::Qemu => format!("qemu={build}"),
        Program::Libvirt => format!("libvirt={build}"),
        Program::Kernel => format!("kernel={build},qemu=6.2"),
        Program::Zfs | Program::VirtioWin => "kernel=6.12".to_owned(),
    };
    let target: Target = target.parse().expect(&target);
    let text = guest(case, text, build);
    let document = read(&text).expect(&text);
    let host = Host::new(facts(case, build));
    let mut options = LintOptions::default().host(host).target(target);
    // Some rows are reported only where pedantic findings are asked for.
    options
        .selection
        .pedantic
        .insert("known-bad-build".to_owned());
    let report = lint(&document, &options);
    let of_rule = report
        .diagnostics
        .iter()
        .filter(|it| it.rule.name == "known-bad-build");
    let about = TABLE
        .iter()
        .find(|row| row.name == case.bug)
        .expect("checked")
        .about;
    let about = about.trim_end_matches('.')[1..].to_owned();
    of_rule
        .map(|it| it.title.clone())
        .filter(|title| title.ends_with(&about))
        .collect()
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { bug: "io-uring-in-iothread", disk: "io='io_uring' iothread='1'", other: "io='io_uring'", storage: "", bad: "7.1.0", good: &["7.0.0", "7.1.1"] },
    Case { bug: "bcachefs-write-alignment", disk: "cache='none'", other: "", storage: "bcachefs", bad: "10.0.0", good: &["11.1.0"] },
    Case { bug: "throttle-stall", disk: ";inner=<iotune><total_iops_sec>9</total_iops_sec></iotune>", other: "", storage: "", bad: "9.1.0", good: &["9.0.4"] },
    Case { bug: "ide-reset-overwrites", disk: ";target=sda' bus='sata", other: "", storage: "", bad: "8.1.2", good: &["7.2.7", "8.1.3", "10.0"] },
    Case { bug: "read-only-device", disk: ";inner=<readonly/>", other: "", storage: "read-only", bad: "4.2", good: &["4.1", "5.1"] },
    Case { bug: "io-uring-short-read", disk: "io='io_uring'", other: "io='threads'", storage: "btrfs", bad: "7.0.0", good: &["7.1.0"] },
    Case { bug: "vmdk-descriptor", disk: "type='vmdk'", other: "type='qcow2'", storage: "", bad: "7.2.7", good: &["7.2.8", "8.2.0"] },
    Case { bug: "iothread-drain", disk: "iothread='1'", other: "", storage: "", bad: "8.2.1", good: &["8.0.5", "8.2.2"] },
    Case { bug: "discard-no-unref-zeroes", disk: "type='qcow2' discard_no_unref='on'", other: "type='qcow2'", storage: "", bad: "8.1.2", good: &["8.1.3"] },
    Case { bug: "internal-snapshot-revert", disk: "type='qcow2';kind=type='file' snapshot='internal'", other: "type='qcow2'", storage: "", bad: "11.3", good: &["11.1", "11.4"] },
    Case { bug: "internal-snapshot-uefi", disk: "type='qcow2';kind=type='file' snapshot='internal'", other: "type='qcow2'", storage: "", bad: "10.9", good: &["10.8", "10.10"] },
    Case { bug: "world-readable-overlay", disk: "type='qcow2';kind=type='file' snapshot='external'", other: "type='qcow2'", storage: "", bad: "11.9", good: &["11.10"] },
    Case { bug: "usb-cdrom", disk: ";device=device='cdrom';target=sda' bus='usb", other: ";target=sda' bus='usb", storage: "", bad: "11.4", good: &["11.5"] },
    Case { bug: "nvme-memory-lock", disk: ";kind=type='nvme';source=<source type='pci' namespace='1' managed='yes'><address domain='0' bus='1' slot='0' function='0'/></source>", other: "", storage: "", bad: "9.2", good: &["9.3"] },
    Case { bug: "detect-zeroes-in-chain", disk: "type='qcow2' detect_zeroes='on'", other: "detect_zeroes='on'", storage: "", bad: "11.9", good: &["11.10"] },
    Case { bug: "root-squash-save", disk: "", other: ";kind=type='block';source=<source dev='/dev/nvme0n1'/>", storage: "nfs4", bad: "10.3", good: &["10.0", "10.4"] },
    Case { bug: "io-uring-on-lvm", disk: "io='io_uring'", other: "", storage: "lvm", bad: "5.4.0", good: &["5.13.0"] },
    Case { bug: "direct-io-memory-alignment", disk: "cache='none'", other: "", storage: "lvm", bad: "6.0.2", good: &["6.0.10"] },
    Case { bug: "io-uring-on-cifs", disk: "io='io_uring'", other: "", storage: "cifs", bad: "6.1.0", good: &["5.14.0"] },
    Case { bug: "direct-threads", disk: "cache='none'", other: "cache='none' io='native'", storage: "device", bad: "4.15.0", good: &["4.9.0", "4.18.0"] },
    Case { bug: "xfs-metadata", disk: "", other: ";kind=type='block';source=<source dev='/dev/nvme0n1'/>", storage: "xfs", bad: "6.3.4", good: &["6.2.9", "6.3.5"] },
    Case { bug: "zvol-flush", disk: "", other: ";kind=type='file';source=<source file='/etc/a.img'/>;inner=<readonly/>", storage: "zvol", bad: "2.3.1", good: &["2.2.6", "2.2.8", "2.3.2"] },
    Case { bug: "zfs-holes", disk: "", other: ";inner=<readonly/>", storage: "zfs", bad: "2.2.1", good: &["2.1.14", "2.2.2"] },
    Case { bug: "viostor-no-trim", disk: "discard='unmap'", other: "", storage: "", bad: "0.1.164", good: &["0.1.185"] },
    Case { bug: "viostor-pagefile", disk: "", other: ";target=sda' bus='scsi", storage: "", bad: "0.1.285", good: &["0.1.271"] },
    Case { bug: "vioscsi-reset", disk: ";target=sda' bus='scsi", other: "", storage: "", bad: "0.1.248", good: &["0.1.208"] },
];

/// Rows that other rules report, or that a chain of images meets.
const ELSEWHERE: &[&str] = &[
    "qcow2-discard-during-cow",
    "raw-end-unaligned",
    "deep-chain",
    "snapshot-deletes-image",
];

#[test]
fn each_row_is_found_in_its_builds_and_only_with_its_feature() {
    let mut wrong = Vec::new();
    for case in CASES {
        let bug = case.bug;
        if found(case, case.disk, case.bad).len() != 1 {
            wrong.push(format!("{bug} is not reported for {}", case.bad));
        }
        for good in case.good {
            if !found(case, case.disk, good).is_empty() {
                wrong.push(format!("{bug} is reported for {good}"));
            }
        }
        if !found(case, case.other, case.bad).is_empty() {
            wrong.push(format!("{bug} is reported without the feature"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Deleting an external snapshot deletes the image below, which has the internal ones.
#[test]
fn an_overlay_is_reported_above_internal_snapshots_only() {
    let text = "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/srv/a.qcow2'/><target \
                dev='vda' bus='virtio'/></disk>";
    let found = |snapshots: u32| {
        let image = |path: &str, backing: &str, snapshots: u32| {
            format!(
                "- {{path: {path}, present: true, kind: regular, mount: m1, image: {{format: qcow2, backing: {backing}, \
                 snapshots: {snapshots}}}}}\n"
            )
        };
        let facts = format!(
            "schema_version: '1.0'\nmounts: [{{id: m1, point: /, fs: f1}}]\nfilesystems: [{{id: f1, kind: xfs}}]\nfiles:\n{}{}",
            image("/srv/a.qcow2", "{path: /srv/base.qcow2, format: qcow2}", 0),
            image("/srv/base.qcow2", "null", snapshots),
        );
        let facts = Facts::parse(&facts).expect(&facts).facts;
        let target: Target = "libvirt=10.2,qemu=9.2".parse().expect("a target");
        let options = LintOptions::default().host(Host::new(facts)).target(target);
        let report = lint(&read(text).expect(text), &options);
        let mut rules = report.diagnostics.iter().map(|it| it.rule.name);
        rules.any(|name| name == "known-bad-build")
    };
    assert_eq!([1, 0].map(found), [true, false]);
}

#[test]
fn each_row_has_a_case() {
    let has_case = |name: &&str| CASES.iter().any(|case| case.bug == *name);
    let names = TABLE.iter().map(|row| row.name);
    let without: Vec<&str> = names
        .filter(|name| !has_case(name) && !ELSEWHERE.contains(name))
        .collect();
    assert!(without.is_empty(), "{without:?}");
    assert!(TABLE.len() >= 29, "{} rows", TABLE.len());
}

#[test]
fn each_disk_is_unchecked_once_however_many_bugs_need_the_missing_facts() {
    let disk = |name: char| {
        format!(
            "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none'/><source \
             file='/srv/{name}.qcow2'/><target dev='vd{name}' bus='virtio'/></disk>"
        )
    };
    let text = format!(
        "<domain type='kvm'><name>web1</name><devices>{}{}</devices></domain>",
        disk('a'),
        disk('b')
    );
    // Three of these builds' bugs depend on the file system, and one on the chain of images.
    let target: Target = "kernel=6.3.1,libvirt=10.2".parse().expect("a target");
    let document = read(&text).expect(&text);
    let report = lint(&document, &LintOptions::default().target(target));
    let missed = report.not_checked.iter();
    let missed = missed.filter(|it| it.rule.name == "known-bad-build");
    let disks: Vec<_> = missed
        .flat_map(|it| it.places().map(|at| at.disk()))
        .collect();
    assert_eq!(disks, [Some(0), Some(1)]);
}
