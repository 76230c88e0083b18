//! Values that no program should pass: an error, and no panic.

use vmdisk::model::{Bytes, Disk, Domain, Format, Frontend, Image, TargetBus};
use vmdisk::model::{DiskField, FieldPath};
use vmdisk::source::{Edit, Span, apply_edits};
use vmdisk::{LintOptions, Selection, Target, decide, lint, read, write};

fn both(domain: &Domain) -> [bool; 2] {
    let line = write::qemu_command_line(domain, &write::QemuOptions::default());
    [write::libvirt_xml(domain).is_ok(), line.is_ok()]
}

fn disk(target: &str, path: &str) -> Disk {
    Disk::new(
        Frontend::new(target, TargetBus::Virtio),
        Image::file(path, Format::Raw),
    )
}

#[test]
fn names_and_numbers_that_cannot_be_are_errors_of_the_writers() {
    assert!(both(&Domain::default())[0]);
    for (target, path) in [
        ("", ""),
        ("vda\0", "/a"),
        ("vda", "/a\0b"),
        ("vd\u{ffff}", "/\u{ffff}"),
    ] {
        let disks = vec![disk(target, path); 40];
        let [xml, _] = both(&Domain {
            disks,
            ..Domain::default()
        });
        assert_eq!(xml, target.is_empty(), "{target:?} {path:?}");
    }
    let mut many = disk("vda", "/a");
    many.frontend.queues = Some(u32::MAX);
    many.frontend.logical_block_size = Some(u32::MAX);
    both(&Domain {
        disks: vec![many],
        ..Domain::default()
    });
    assert_eq!(Bytes::gib(u64::MAX), Bytes(u64::MAX));
    assert!("9999999999999999999E".parse::<Bytes>().is_err());
    assert!("qemu=111111111111111111111.0".parse::<Target>().is_err());
}

#[test]
fn places_that_are_not_there_are_the_nearest_ones() {
    let document = read("<disk><target dev='vda'/></disk>").unwrap();
    for index in [1, usize::MAX] {
        let place = document.place(FieldPath::Disk(index, DiskField::Cache));
        assert!(!place.is_exact && place.span.end <= document.text.len());
    }
    let none = decide(&document, |_| false, &read, &LintOptions::default());
    assert!(none.disks.is_empty() && none.document.text == document.text);
    let rules = std::collections::BTreeSet::from(["no-such-rule".to_owned()]);
    let options = LintOptions::default().selection(Selection::default().rules(rules));
    assert!(lint(&document, &options).diagnostics.is_empty());
    let edit = |start, end| Edit {
        span: Span { start, end },
        text: String::new(),
    };
    for (start, end) in [(3, 1), (0, 1000), (usize::MAX, usize::MAX)] {
        assert!(
            apply_edits("text", &[edit(start, end)]).is_err(),
            "{start} {end}"
        );
    }
    assert!(apply_edits("\u{e9}", &[edit(1, 2)]).is_err());
}

#[test]
fn a_million_disks_are_an_error() {
    let text = format!(
        "<domain><devices>{}</devices></domain>",
        "<disk/>".repeat(1_000_000)
    );
    let failure = read(&text).unwrap_err();
    assert!(
        failure.message.starts_with("more than 20000 disks"),
        "{failure}"
    );
}
