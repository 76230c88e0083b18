//! What is read, and where it was written.

// What cannot be in a test is told by a panic.
#![allow(clippy::unwrap_used)]

use vmdisk_libvirt::{Document, RootKind, read};
use vmdisk_model::*;

/// The place of a field: what is shown, what would be removed, where an attribute would go.
#[track_caller]
fn assert_place(document: &Document, text: &str, at: FieldPath, span: &str, whole: &str) {
    let place = document.source_map.place(at).unwrap();
    assert_eq!(
        (place.span.slice(text), place.whole.slice(text)),
        (Some(span), Some(whole)),
        "{at:?}"
    );
    assert_eq!(
        place.attributes_end.is_some(),
        whole.contains('<'),
        "{at:?}"
    );
}

#[test]
fn every_written_field_has_its_place() {
    let spaces = " ".repeat(300);
    let text = format!(
        "<domain type='kvm'>
  <vcpu placement='static'> 2</vcpu>
  <iothreadids>
    <iothread id='7'/>
  </iothreadids>
  <devices>
    <disk type='file'><driver type=\"qcow2\"
        cache{spaces}={spaces}'none'/>
      <source file='/a&amp;b'/>
      <backingStore type='block'>
        <format type='raw'/>
        <source dev='/dev/é'/>
      </backingStore>
      <target dev='vda'/> <serial>s&lt;1</serial>
      <readonly/>
    </disk>
    <controller type='scsi' index='0' model='virtio-scsi'/>
  </devices>
</domain>"
    );
    let document = read(&text).unwrap();
    assert_eq!(document.problems, []);
    let disk = |field| FieldPath::Disk(0, field);
    let cache = format!("\n        cache{spaces}={spaces}'none'");
    let driver = format!("<driver type=\"qcow2\"{cache}/>");
    for (at, span, whole) in [
        (
            FieldPath::Domain(DomainField::DomainType),
            "kvm",
            " type='kvm'",
        ),
        (
            FieldPath::Domain(DomainField::Vcpus),
            "2",
            "\n  <vcpu placement='static'> 2</vcpu>",
        ),
        (FieldPath::IoThread(0, IoThreadField::Id), "7", " id='7'"),
        (
            FieldPath::IoThread(0, IoThreadField::IoThread),
            "<iothread id='7'/>",
            "\n    <iothread id='7'/>",
        ),
        (disk(DiskField::SourceType), "file", " type='file'"),
        (disk(DiskField::Driver), &driver, &driver),
        (disk(DiskField::Cache), "none", &cache),
        (
            FieldPath::Image(0, 0, ImageField::Format),
            "qcow2",
            " type=\"qcow2\"",
        ),
        (
            FieldPath::Image(0, 0, ImageField::Path),
            "/a&amp;b",
            " file='/a&amp;b'",
        ),
        (
            FieldPath::Image(0, 0, ImageField::Source),
            "<source file='/a&amp;b'/>",
            "\n      <source file='/a&amp;b'/>",
        ),
        (
            FieldPath::Image(0, 1, ImageField::Path),
            "/dev/é",
            " dev='/dev/é'",
        ),
        (
            FieldPath::Image(0, 1, ImageField::Format),
            "raw",
            " type='raw'",
        ),
        // Something else stands on the line.
        (disk(DiskField::Serial), "s&lt;1", "<serial>s&lt;1</serial>"),
        (
            disk(DiskField::ReadOnly),
            "<readonly/>",
            "\n      <readonly/>",
        ),
        (
            FieldPath::Controller(0, ControllerField::Model),
            "virtio-scsi",
            " model='virtio-scsi'",
        ),
    ] {
        assert_place(&document, &text, at, span, whole);
    }
    let disk_tag = document.source_map.place(disk(DiskField::Disk)).unwrap();
    assert!(text[disk_tag.attributes_end.unwrap()..].starts_with("><driver"));
    // A field that was not written resolves to what is around it.
    let resolved = document
        .source_map
        .resolve(disk(DiskField::Discard))
        .unwrap();
    assert_eq!(resolved.0, disk(DiskField::Driver));
}

#[test]
fn every_kind_of_document_with_disks_is_read() {
    let disk = "<disk><source file='/a'/><target dev='vda'/></disk>";
    for (text, root, scope) in [
        (disk.to_owned(), RootKind::Disk, Scope::DisksOnly),
        (
            format!("<devices>{disk}</devices>"),
            RootKind::Devices,
            Scope::DisksOnly,
        ),
        (
            format!("<domain><devices>{disk}</devices></domain>"),
            RootKind::Domain,
            Scope::WholeGuest,
        ),
        (
            format!(
                "<domstatus state='running'><monitor path='/m'/><domain><devices>{disk}</devices></domain></domstatus>"
            ),
            RootKind::DomainStatus,
            Scope::WholeGuest,
        ),
        (
            format!("\u{feff}<?xml version='1.0' encoding='UTF-8'?>\n<!-- x -->{disk}\n"),
            RootKind::Disk,
            Scope::DisksOnly,
        ),
    ] {
        let document = read(&text).unwrap();
        assert_eq!(
            (document.root, document.domain.scope),
            (root, scope),
            "{text}"
        );
        assert_eq!(document.problems, [], "{text}");
        assert_eq!(document.domain.disks.len(), 1);
        let written = read(&document.write().unwrap()).unwrap();
        let expected = if root == RootKind::DomainStatus {
            RootKind::Domain
        } else {
            root
        };
        assert_eq!(
            (written.root, written.domain),
            (expected, document.domain.clone())
        );
        let place = document
            .source_map
            .place(FieldPath::Disk(0, DiskField::Disk))
            .unwrap();
        assert_eq!(place.span.slice(&text), Some("<disk>"));
    }
}

#[test]
fn iothreads_are_counted_as_libvirt_counts_them() {
    let ids = |text: &str| {
        let document = read(&format!("<domain>{text}</domain>")).unwrap();
        assert_eq!(document.problems, []);
        let threads = document.domain.iothreads.iter();
        threads
            .map(|thread| (thread.id.0, thread.is_listed))
            .collect::<Vec<_>>()
    };
    let listed = "<iothreadids><iothread id='2'/><iothread id='5'/></iothreadids>";
    assert_eq!(ids("<iothreads>2</iothreads>"), [(1, false), (2, false)]);
    assert_eq!(ids(listed), [(2, true), (5, true)]);
    assert_eq!(
        ids(&format!("<iothreads>4</iothreads>{listed}")),
        [(2, true), (5, true), (1, false), (3, false)]
    );
}
