//! `generate --into` adds disks to a domain of any shape: the result is XML that has the disks, and libvirt takes it.

use std::path::Path;

use vmdisk::read;
use vmdisk_tests::{Run, Step, libvirts, run};

/// The disks of a spec: what they need outside `<disk>`, and their keys.
const SPECS: [(&str, &str); 6] = [
    ("nothing", "[{raw: {path: /srv/new.img, size: 1G}}]"),
    (
        "an iothread",
        "[{raw: {path: /srv/new.img, size: 1G}, iothread: auto}]",
    ),
    (
        "a controller with an iothread",
        "[{raw: {path: /srv/new.img, size: 1G}, bus: virtio-scsi, iothread: auto}]",
    ),
    (
        "shared memory",
        "[{vhost-user-blk: {socket: /run/new.sock}}]",
    ),
    (
        "limits",
        "[{qcow2: {path: /srv/new.qcow2, size: 1G}, iotune: {total-bytes-sec: 1M, group-name: g}}]",
    ),
    (
        "everything",
        "[{raw: {path: /srv/new.img, size: 1G}, iothread: auto},
          {raw: {path: /srv/new2.img, size: 1G}, bus: virtio-scsi, iothread: auto},
          {raw: {path: /srv/new3.img, size: 1G}, bus: sata},
          {vhost-user-blk: {socket: /run/new.sock}}]",
    ),
];

/// Guests without what libvirt needs of one.
const BARE: [&str; 3] = [
    "<domain type='qemu'/>",
    "<domain type='qemu'>\n</domain>",
    "<domain type='qemu'>\n  <!-- none -->\n</domain>",
];

/// Elements that disks are added to or beside, in a guest.
const SURROUNDINGS: [&str; 3] = [
    "",
    "  <memoryBacking/>\n  <iothreads>1</iothreads>\n",
    "  <memoryBacking>\n    <!-- none -->\n  </memoryBacking>\n  <iothreadids>\n  </iothreadids>\n",
];

const DEVICES: [&str; 6] = [
    "",
    "  <devices/>\n",
    "  <devices>\n  </devices>\n",
    "  <devices> <!-- none -->\n  </devices>\n",
    "  <devices>\n    <!-- none -->\n  </devices>\n",
    "  <devices>\n    <emulator>/usr/bin/qemu-system-x86_64</emulator> <!-- ours -->\n    <disk type='file'>
      <source file='/srv/old.img'/>\n      <target dev='vda'/>\n    </disk>\n  </devices>\n",
];

/// Every layout of a guest, with the line end that it uses.
fn layouts(guest: &str) -> [(String, &'static str); 4] {
    let lines = guest.lines().map(str::trim);
    [
        (format!("{guest}\n"), "\n"),
        (format!("<?xml version='1.0'?>\n{guest}"), "\n"),
        (format!("{guest}\n").replace('\n', "\r\n"), "\r\n"),
        (lines.collect(), ""),
    ]
}

fn guests() -> Vec<(String, &'static str)> {
    let head = "<domain type='qemu'>\n  <name>a</name>\n  <memory>524288</memory>\n";
    let os = "  <os>\n    <type arch='x86_64' machine='q35'>hvm</type>\n  </os>\n";
    let whole = SURROUNDINGS.iter().flat_map(|surroundings| {
        let devices = DEVICES.iter();
        devices.map(move |devices| format!("{head}{surroundings}{os}{devices}</domain>"))
    });
    let all = BARE.map(str::to_owned).into_iter().chain(whole);
    all.flat_map(|guest| layouts(&guest)).collect()
}

fn generate(folder: &Path, guest: &str, spec: &str) -> Run {
    let file = folder.join("a.xml");
    std::fs::write(&file, guest).unwrap();
    let file = file.to_str().unwrap();
    run(crate::VMDISK, &["generate", "-", "--into", file], spec)
}

/// True if `after` is `before` with text added: `<a/>` counts as `<a></a>`.
fn only_adds(before: &str, after: &str) -> bool {
    let mut rest = after.chars();
    let mut kept = before.chars().filter(|c| !c.is_whitespace() && *c != '/');
    kept.all(|c| rest.any(|other| other == c))
}

#[test]
fn disks_are_added_to_a_domain_of_any_shape() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Vec::new();
    for (needs, disks) in SPECS {
        let spec = format!("version: 1\ndisks: {disks}\n");
        for (before, line_end) in guests() {
            let result = generate(folder.path(), &before, &spec);
            assert_eq!(result.code, 0, "{needs}, into {before}: {result:?}");
            let after = result.stdout;
            let what = format!("{needs}, into {before}: {after}");
            let guest = read(&after).unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let number = |text: &str, what: &str| text.matches(what).count();
            let old = number(&before, "/srv/old");
            let kinds = ["{raw", "{qcow2", "{vhost"];
            let new: usize = kinds.iter().map(|kind| number(disks, kind)).sum();
            assert_eq!(guest.domain().disks.len(), old + new, "{what}");
            let has_threads = !guest.domain().iothreads.is_empty();
            assert!(has_threads || !disks.contains("iothread: auto"), "{what}");
            assert!(only_adds(&before, &after), "{what}");
            assert!(!after.lines().any(|line| line.trim().is_empty()), "{what}");
            let ends = (after.matches('\n').count(), after.matches("\r\n").count());
            match line_end {
                "\n" => assert_eq!(ends.1, 0, "{what}"),
                "\r\n" => assert_eq!(ends.0, ends.1, "{what}"),
                _ => {}
            }
            let again = generate(folder.path(), &after, &spec);
            assert_eq!(again.code, 2, "{what}: {again:?}");
            assert!(again.stdout.is_empty(), "{what}: {again:?}");
            if before.contains("<name>") {
                // A guest that is defined stays.
                let name = format!("<name>guest{}<", written.len());
                written.push(after.replacen("<name>a<", &name, 1));
            }
        }
    }
    for libvirt in libvirts("disks_are_added_to_a_domain_of_any_shape") {
        let verdicts = libvirt
            .session()
            .verdicts(Step::Define, written.iter().map(String::as_str));
        for (guest, verdict) in written.iter().zip(verdicts) {
            assert_eq!(
                verdict.refusal(),
                None,
                "libvirt {}: {guest}",
                libvirt.version
            );
        }
    }
}
