//! What libvirts take and do not start, held to what the linter says with the facts of the same files.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use vmdisk::facts::Version;
use vmdisk::rules::Severity;
use vmdisk::{Host, LintOptions, lint, read};
use vmdisk_collect::{Request, collect};
use vmdisk_tests::{LibvirtBuild, LibvirtSession, Step, Verdict, has_program, libvirts, real};

use crate::element::Element;
use crate::quoted::quoted;

/// A guest that libvirt takes and does not start.
struct Row {
    /// What libvirt says then.
    says: &'static str,
    /// The rule that says so beforehand.
    rule: &'static str,
    /// The libvirt that first said it; older ones start the guest.
    since: Version,
    disk: fn(&Path) -> Element,
}

/// Every libvirt that is tried.
const ANY: Version = Version(0, 0, 0);

const ROWS: &[Row] = &[
    Row {
        says: "iSCSI protocol accepts only one host",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| on_server("iscsi", "iqn.2013-07.com.example:a", 0),
    },
    Row {
        says: "iSCSI protocol accepts only one host",
        rule: "network-server-refused",
        since: Version(9, 1, 0),
        disk: |_| on_server("iscsi", "iqn.2013-07.com.example:a", 2),
    },
    Row {
        says: "nbd protocol accepts only one host",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| on_server("nbd", "a", 2),
    },
    Row {
        says: "ssh protocol accepts only one host",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| on_server("ssh", "a", 2),
    },
    Row {
        says: "protocol '…' accepts only one host",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| on_server("https", "a.iso", 2),
    },
    Row {
        says: "protocol '…' accepts only one host",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| on_server("http", "a.iso", 0),
    },
    Row {
        says: "protocol '…' accepts only one host",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| on_server("ftp", "a.iso", 3),
    },
    Row {
        says: "transport protocol '…' is not yet supported",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| {
            let mut disk = on_server("nbd", "a", 1);
            disk.child("source").child("host").set("transport", "rdma");
            disk
        },
    },
    Row {
        says: "only TCP protocol can be converted to InetSocketAddress",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| {
            let mut disk = on_server("ssh", "a", 1);
            let host = disk.child("source").child("host");
            *host = Element::new("host")
                .with("transport", "unix")
                .with("socket", "/run/s");
            disk
        },
    },
    Row {
        says: "TLS transport is not supported for disk protocol '…'",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| over_tls("iscsi", "iqn.2013-07.com.example:a"),
    },
    Row {
        says: "TLS transport is not supported for disk protocol '…'",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| over_tls("https", "a.iso"),
    },
    Row {
        says: "nbd protocol accepts only one host",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| on_server("nbd", "a", 0),
    },
    Row {
        says: "ssh protocol accepts only one host",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| on_server("ssh", "a", 0),
    },
    Row {
        says: "TLS transport is not supported for disk protocol '…'",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| over_tls("rbd", "pool/a"),
    },
    Row {
        says: "TLS transport is not supported for disk protocol '…'",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| over_tls("ssh", "a"),
    },
    Row {
        says: "TLS transport is not supported for disk protocol '…'",
        rule: "network-server-refused",
        since: ANY,
        disk: |_| over_tls("gluster", "pool/a"),
    },
    Row {
        says: "storage format '…' does not support backing store",
        rule: "backing-unsupported",
        since: ANY,
        disk: |folder| {
            let mut disk = in_file("raw", &folder.join("a.raw"));
            disk.children.push(below("raw", &folder.join("b.raw")));
            disk
        },
    },
    Row {
        says: "Cannot access storage file",
        rule: "source-missing",
        since: ANY,
        disk: |folder| in_file("raw", &folder.join("gone.raw")),
    },
    Row {
        says: "Cannot access storage file",
        rule: "source-missing",
        since: ANY,
        disk: |folder| {
            let mut disk = in_file("qcow2", &folder.join("alone.qcow2"));
            disk.children.push(below("raw", &folder.join("gone.raw")));
            disk
        },
    },
    Row {
        says: "missing secret info for 'luks' driver",
        rule: "encryption-refused",
        since: ANY,
        disk: |folder| {
            let mut disk = in_file("raw", &folder.join("alone.qcow2"));
            let encryption = Element::new("encryption").with("format", "luks");
            disk.child("source").children.push(encryption);
            disk
        },
    },
    Row {
        says: "unsupported disk bus '…' with device setup",
        rule: "device-bus-refused",
        since: ANY,
        disk: |folder| on_bus("xen", "xvda", folder),
    },
    Row {
        says: "unsupported disk bus '…' with device setup",
        rule: "device-bus-refused",
        since: ANY,
        disk: |folder| on_bus("uml", "ubda", folder),
    },
    Row {
        says: "Cannot access backing file",
        rule: "backing-missing",
        since: ANY,
        disk: |folder| in_file("qcow2", &folder.join("on-nothing.qcow2")),
    },
    Row {
        says: "was not specified in the image metadata",
        rule: "backing-format-missing",
        since: ANY,
        disk: |folder| in_file("qcow2", &folder.join("on-unnamed.qcow2")),
    },
    Row {
        says: "is self-referential or too deeply nested",
        rule: "chain-too-long",
        since: ANY,
        disk: |folder| in_file("qcow2", &folder.join("loop.qcow2")),
    },
    Row {
        says: "backing chains more than 200 layers deep are not supported",
        rule: "chain-too-long",
        since: ANY,
        disk: |folder| {
            let image = folder.join("alone.qcow2");
            let mut chain = below("qcow2", &image);
            for _ in 0..205 {
                chain = below("qcow2", &image).around(chain);
            }
            in_file("qcow2", &image).around(chain)
        },
    },
];

/// A disk on one server, to be spoken to over TLS.
fn over_tls(protocol: &str, name: &str) -> Element {
    let mut disk = on_server(protocol, name, 1);
    disk.child("source").set("tls", "yes");
    disk
}

/// A disk on this many servers.
fn on_server(protocol: &str, name: &str, servers: usize) -> Element {
    let mut source = Element::new("source")
        .with("protocol", protocol)
        .with("name", name);
    for nth in 0..servers {
        let host = Element::new("host").with("name", format!("store{nth}.example"));
        source.children.push(host.with("port", 1234));
    }
    Element::new("disk")
        .with("type", "network")
        .with("device", "disk")
        .around(
            Element::new("driver")
                .with("name", "qemu")
                .with("type", "raw"),
        )
        .around(source)
        .around(
            Element::new("target")
                .with("dev", "vda")
                .with("bus", "virtio"),
        )
}

/// A disk on another bus than virtio.
fn on_bus(bus: &str, target: &str, folder: &Path) -> Element {
    let mut disk = in_file("qcow2", &folder.join("alone.qcow2"));
    disk.child("target").set("dev", target);
    disk.child("target").set("bus", bus);
    disk
}

/// A disk in a file.
fn in_file(format: &str, path: &Path) -> Element {
    Element::new("disk")
        .with("type", "file")
        .with("device", "disk")
        .around(
            Element::new("driver")
                .with("name", "qemu")
                .with("type", format),
        )
        .around(Element::new("source").with("file", path.display()))
        .around(
            Element::new("target")
                .with("dev", "vda")
                .with("bus", "virtio"),
        )
}

/// An image that is written below another.
fn below(format: &str, path: &Path) -> Element {
    Element::new("backingStore")
        .with("type", "file")
        .around(Element::new("format").with("type", format))
        .around(Element::new("source").with("file", path.display()))
}

/// Makes the files that the rows name.
fn make_images(folder: &Path) {
    for name in ["a.raw", "b.raw"] {
        let file = std::fs::File::create(folder.join(name)).expect("a file can be made");
        file.set_len(1 << 20).expect("it can grow");
    }
    for arguments in [
        "create -q -f qcow2 alone.qcow2 1M",
        "create -q -f qcow2 -F raw -b gone.raw -u on-nothing.qcow2 1M",
        "create -q -f qcow2 -F qcow2 -b alone.qcow2 -u middle.qcow2 1M",
        "create -q -f qcow2 -F qcow2 -b middle.qcow2 -u on-unnamed.qcow2 1M",
        "create -q -f qcow2 -F qcow2 -b alone.qcow2 loop.qcow2 1M",
        "rebase -u -f qcow2 -F qcow2 -b loop.qcow2 loop.qcow2",
    ] {
        let status = Command::new("qemu-img")
            .args(arguments.split(' '))
            .current_dir(folder)
            .status();
        let status = status.expect("qemu-img can be started");
        assert!(status.success(), "qemu-img {arguments}");
    }
    forget_backing_format(&folder.join("on-unnamed.qcow2"));
}

/// Takes the format of the backing file out of an image, as old ones of QEMU did not write it.
fn forget_backing_format(image: &Path) {
    let mut bytes = std::fs::read(image).expect("it was just made");
    let extension = 0xe279_2aca_u32.to_be_bytes();
    let at = bytes.windows(4).position(|word| word == extension);
    let at = at.expect("qemu-img writes the format of the backing file");
    // An extension that nobody knows is passed over.
    bytes[at..at + 4].copy_from_slice(&0x7f00_0000_u32.to_be_bytes());
    std::fs::write(image, bytes).expect("it is writable");
}

/// A guest around a disk.
fn guest(number: usize, disk: Element) -> String {
    let emulator = Element::new("emulator").saying("/usr/bin/qemu-system-x86_64");
    Element::new("domain")
        .with("type", "qemu")
        .around(Element::new("name").saying(format!("start{number}")))
        .around(Element::new("memory").with("unit", "MiB").saying(64))
        .around(
            Element::new("os").around(
                Element::new("type")
                    .with("arch", "x86_64")
                    .with("machine", "q35")
                    .saying("hvm"),
            ),
        )
        .around(Element::new("devices").around(emulator).around(disk))
        .write()
}

/// The rules that report an error for a libvirt, with the facts about the folder.
fn reported(xml: &str, libvirt: &LibvirtBuild, folder: &Path) -> BTreeSet<&'static str> {
    let mut request = Request::new("2026-01-01T00:00:00Z");
    let entries = std::fs::read_dir(folder).expect("it is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    request.paths = paths.filter(|path| path.is_file()).collect();
    request.paths.push(folder.join("gone.raw"));
    request.chains.clone_from(&request.paths);
    let facts = collect(&request);
    let host = Host::new(facts.clone());
    let options = LintOptions::default()
        .host(host.clone())
        .target(libvirt.target());
    let document = read(xml).expect("guests are XML");
    let report = lint(&document, &options);
    report
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| diagnostic.rule.name)
        .collect()
}

fn try_rows(libvirt: &LibvirtBuild, session: &LibvirtSession) -> Vec<String> {
    let folder = session.folder();
    make_images(folder);
    let guests: Vec<String> = ROWS
        .iter()
        .enumerate()
        .map(|(nth, row)| guest(nth, (row.disk)(folder)))
        .collect();
    let all = || guests.iter().map(String::as_str);
    let defined = libvirt.session().verdicts(Step::Define, all());
    let started = session.verdicts(Step::Start, all());
    let mut wrong = Vec::new();
    for (((row, xml), defined), started) in ROWS.iter().zip(&guests).zip(&defined).zip(&started) {
        let is_said = quoted()
            .filter(|quoted| quoted.text == row.says)
            .any(|quoted| {
                let message = started.refusal().unwrap_or_default();
                quoted.evidence.is_said_by("libvirt", message)
            });
        // A crash is no start either, nor is a refusal whose cause libvirt forgets to say.
        let is_wordless = match started {
            Verdict::Crashed => true,
            Verdict::Refused(message) => message == "An error occurred, but the cause is unknown",
            Verdict::Accepted => false,
        };
        let rules = reported(xml, libvirt, folder);
        let is_reported = rules.contains(row.rule);
        let is_right = if libvirt.version < row.since {
            !is_reported
        } else {
            *defined == Verdict::Accepted && (is_said || is_wordless) && is_reported
        };
        if is_wordless {
            println!(
                "libvirt {} has no words where another says `{}`: {started:?}",
                libvirt.version, row.says
            );
        }
        if !is_right {
            wrong.push(format!(
                "libvirt {} for `{}`: defining {defined:?}, starting {started:?}, rules {rules:?}\n{}",
                libvirt.version,
                row.says,
                &xml[..xml.len().min(2000)]
            ));
        }
    }
    wrong
}

#[test]
fn what_is_refused_at_the_start_is_refused_then_and_not_before() {
    let test = "what libvirt refuses to start";
    if !real(has_program("qemu-img"), test, "qemu-img") {
        return;
    }
    let mut wrong = Vec::new();
    for libvirt in libvirts(test) {
        let session = libvirt.session();
        wrong.extend(try_rows(&libvirt, &session));
        println!(
            "libvirt {}: {} guests are taken and not started",
            libvirt.version,
            ROWS.len()
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn whatever_rules_quote_of_a_start_is_tried() {
    let quoted: BTreeSet<&str> = quoted()
        .filter(|quoted| quoted.evidence.is_at_start())
        .map(|quoted| quoted.text)
        .collect();
    let tried: BTreeSet<&str> = ROWS.iter().map(|row| row.says).collect();
    assert_eq!(quoted, tried);
}
