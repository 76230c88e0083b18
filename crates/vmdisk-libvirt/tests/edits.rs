//! A change of the model becomes edits that change nothing else.

// What cannot be in a test is told by a panic.
#![allow(clippy::unwrap_used)]

use vmdisk_libvirt::{CannotEdit, check_changes, edits, edits_of_all, read};
use vmdisk_model::*;
use vmdisk_source::{Edit, apply_edits};

/// The text after the changes.
#[track_caller]
fn changed(text: &str, changes: &[Change]) -> String {
    let document = read(text).unwrap();
    let edits = edits_of_all(text, &document, changes).unwrap();
    apply_edits(text, &edits).unwrap()
}

fn disk(field: DiskField) -> FieldPath {
    FieldPath::Disk(0, field)
}

fn guest(field: DomainField) -> FieldPath {
    FieldPath::Domain(field)
}

const PLAIN: &str = "<domain type='kvm'>
  <name>web1</name>
  <memory unit='GiB'>4</memory>
  <vcpu>4</vcpu>
  <os/>
  <devices>
    <disk type='file'>
      <driver name='qemu' type=\"qcow2\"/>
      <source file='/srv/a.qcow2'/>
      <target dev='vda'/>
      <!-- vmdisk: allow(x) of the serial -->
      <serial>1</serial>
    </disk>
  </devices>
</domain>
";

#[test]
fn a_value_that_is_there_is_replaced_and_a_missing_one_is_added() {
    use DiskField::*;
    use DomainField::*;
    for (change, old, new) in [
        (
            Change::set(disk(Cache), "none"),
            "type=\"qcow2\"/>",
            "type=\"qcow2\" cache=\"none\"/>",
        ),
        (
            Change::set(FieldPath::Image(0, 0, ImageField::Format), "raw"),
            "qcow2\"",
            "raw\"",
        ),
        (
            Change::set(FieldPath::Image(0, 0, ImageField::Path), "/a&'b\"<\n"),
            "/srv/a.qcow2'",
            "/a&amp;&apos;b&quot;&lt;&#10;'",
        ),
        (
            Change::set(disk(TargetBus), "scsi"),
            "dev='vda'/>",
            "dev='vda' bus='scsi'/>",
        ),
        (
            Change::set(disk(Device), "lun"),
            "'file'>",
            "'file' device='lun'>",
        ),
        (
            Change::set(disk(Serial), "a<b"),
            ">1</serial>",
            ">a&lt;b</serial>",
        ),
        (
            Change::set(disk(ReadOnly), "yes"),
            "<target dev='vda'/>",
            "<target dev='vda'/>\n      <readonly/>",
        ),
        (
            Change::set(disk(LogicalBlockSize), "4096"),
            "qcow2'/>",
            "qcow2'/>\n      <blockio logical_block_size='4096'/>",
        ),
        (
            Change::set(disk(BootOrder), "1"),
            "</serial>",
            "</serial>\n      <boot order='1'/>",
        ),
        (
            Change::set(disk(MetadataCacheSize), vmdisk_model::Bytes(1 << 20)),
            "type=\"qcow2\"/>",
            "type=\"qcow2\">\n        <metadata_cache>\n          <max_size unit='bytes'>1048576</max_size>\n        \
             </metadata_cache>\n      </driver>",
        ),
        (
            Change::set(guest(MemoryAccess), "shared"),
            "4</memory>",
            "4</memory>\n  <memoryBacking>\n    <access mode='shared'/>\n  </memoryBacking>",
        ),
        (
            Change::set(guest(IoThreads), "2"),
            "4</vcpu>",
            "4</vcpu>\n  <iothreads>2</iothreads>",
        ),
        (Change::set(guest(Vcpus), "8"), "4</vcpu>", "8</vcpu>"),
        (
            Change::set(guest(Machine), "q35"),
            "<os/>",
            "<os>\n    <type machine='q35'/>\n  </os>",
        ),
        (
            Change::set(disk(SourceType), "block"),
            "'file'>",
            "'block'>",
        ),
        (Change::remove(disk(TargetDev)), " dev='vda'", ""),
        (
            Change::remove(disk(Serial)),
            "\n      <serial>1</serial>",
            "",
        ),
        (
            Change::remove(disk(Driver)),
            "\n      <driver name='qemu' type=\"qcow2\"/>",
            "",
        ),
    ] {
        let mut expected = PLAIN.replacen(old, new, 1);
        if change == Change::set(disk(SourceType), "block") {
            expected = expected.replace("source file=", "source dev=");
        }
        assert_eq!(
            changed(PLAIN, std::slice::from_ref(&change)),
            expected,
            "{change:?}"
        );
        assert_ne!(expected, PLAIN, "{change:?}");
    }
}

#[test]
fn several_changes_share_the_element_they_make() {
    let changes = [
        Change::set(disk(DiskField::LogicalBlockSize), "512"),
        Change::set(disk(DiskField::PhysicalBlockSize), "4096"),
        Change::set(guest(DomainField::MemorySource), "memfd"),
        Change::set(guest(DomainField::MemoryAccess), "shared"),
        Change::set(disk(DiskField::Transient), "yes"),
        Change::set(disk(DiskField::Shareable), "yes"),
    ];
    let text = changed(PLAIN, &changes);
    for part in [
        "\n      <blockio logical_block_size='512' physical_block_size='4096'/>\n      <target",
        "\n  <memoryBacking>\n    <source type='memfd'/>\n    <access mode='shared'/>\n  </memoryBacking>\n  <vcpu>",
        "<target dev='vda'/>\n      <shareable/>\n      <transient/>\n      <!--",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part}\n{text}");
    }
    let empty = "<domain>\n\t<devices>\n\t\t<disk/>\n\t</devices>\n</domain>";
    let changes = [
        Change::set(disk(DiskField::Device), "cdrom"),
        Change::set(disk(DiskField::TargetDev), "sda"),
        Change::set(disk(DiskField::Cache), "none"),
    ];
    assert_eq!(
        changed(empty, &changes),
        "<domain>\n\t<devices>\n\t\t<disk device='cdrom'>\n\t\t  <driver name='qemu' cache='none'/>\n\t\t  <target dev='sda'/>\n\t\t</disk>\n\t</devices>\n</domain>"
    );
}

#[test]
fn the_layout_around_is_followed() {
    let set = |text: &str| changed(text, &[Change::set(disk(DiskField::ReadOnly), "yes")]);
    for (text, expected) in [
        (
            "<disk><source file='/a'/><target dev='vda'/></disk>",
            "<disk><source file='/a'/><target dev='vda'/><readonly/></disk>",
        ),
        (
            "<disk>\r\n\t<target dev='vda'/>\r\n</disk>",
            "<disk>\r\n\t<target dev='vda'/>\r\n\t<readonly/>\r\n</disk>",
        ),
        (
            "<disk>\n <target dev='vda'/> <!-- a --> <!-- b\n --> <!-- c -->\n</disk>",
            "<disk>\n <target dev='vda'/> <!-- a --> <!-- b\n --> <!-- c -->\n <readonly/>\n</disk>",
        ),
        (
            "<disk> <!-- about it -->\n    <!-- next -->\n    <boot order='1'/>\n</disk>",
            "<disk> <!-- about it -->\n    <readonly/>\n    <!-- next -->\n    <boot order='1'/>\n</disk>",
        ),
        ("<disk/>", "<disk>\n  <readonly/>\n</disk>"),
        ("<disk></disk>", "<disk>\n  <readonly/>\n</disk>"),
        ("<disk>\n</disk>", "<disk>\n  <readonly/>\n</disk>"),
        (
            "<devices> <disk/> </devices>",
            "<devices> <disk><readonly/></disk> </devices>",
        ),
    ] {
        assert_eq!(set(text), expected);
    }
}

#[test]
fn a_removed_element_takes_its_line_and_nothing_else_with_it() {
    let remove = |text: &str, field| changed(text, &[Change::remove(disk(field))]);
    for (text, field, expected) in [
        (
            "<disk>\n  <readonly/>\n</disk>",
            DiskField::ReadOnly,
            "<disk>\n</disk>",
        ),
        (
            "<disk>\r\n  <readonly/>\r\n</disk>",
            DiskField::ReadOnly,
            "<disk>\r\n</disk>",
        ),
        (
            "<disk><readonly/></disk>",
            DiskField::ReadOnly,
            "<disk></disk>",
        ),
        (
            "<disk>\n  <readonly/> <!-- c -->\n</disk>",
            DiskField::ReadOnly,
            "<disk>\n   <!-- c -->\n</disk>",
        ),
        (
            "<disk>\n  <boot order='1'/>\n</disk>",
            DiskField::BootOrder,
            "<disk>\n</disk>",
        ),
        (
            "<disk>\n  <boot order='1' loadparm='x'/>\n</disk>",
            DiskField::BootOrder,
            "<disk>\n  <boot loadparm='x'/>\n</disk>",
        ),
        (
            "<disk>\n  <driver\n    io='native'\n    cache='none'/>\n</disk>",
            DiskField::Aio,
            "<disk>\n  <driver\n    cache='none'/>\n</disk>",
        ),
    ] {
        assert_eq!(remove(text, field), expected);
    }
}

#[test]
fn a_change_that_cannot_be_made_says_why() {
    let document = read(PLAIN).unwrap();
    let error = |change: Change| {
        let error = edits(PLAIN, &document, &change).unwrap_err();
        let checked = check_changes(PLAIN, &document, &[change]);
        assert_eq!(checked.as_ref(), Err(&error));
        error
    };
    let invalid = |at, value: &str| CannotEdit::InvalidValue {
        at,
        value: value.to_owned(),
    };
    for (change, expected) in [
        (
            Change::remove(disk(DiskField::Cache)),
            CannotEdit::NotWritten(disk(DiskField::Cache)),
        ),
        (
            Change::set(FieldPath::Disk(7, DiskField::Cache), "none"),
            CannotEdit::NoPlace(FieldPath::Disk(7, DiskField::Cache)),
        ),
        (
            Change::set(disk(DiskField::SocketPath), "/s"),
            CannotEdit::NoPlace(disk(DiskField::SocketPath)),
        ),
        (
            Change::set(disk(DiskField::Address), "0:1"),
            CannotEdit::NotOneValue(disk(DiskField::Address)),
        ),
        (
            Change::set(guest(DomainField::Memory), "8"),
            CannotEdit::NotOneValue(guest(DomainField::Memory)),
        ),
        (
            Change::set(disk(DiskField::Cache), "fast"),
            invalid(disk(DiskField::Cache), "fast"),
        ),
        (
            Change::set(disk(DiskField::ReadOnly), "true"),
            invalid(disk(DiskField::ReadOnly), "true"),
        ),
        (
            Change::set(disk(DiskField::Serial), "\u{1}"),
            invalid(disk(DiskField::Serial), "\u{1}"),
        ),
        (
            Change::set(disk(DiskField::SourceType), "network"),
            invalid(disk(DiskField::SourceType), "network"),
        ),
    ] {
        assert_eq!(error(change), expected);
    }
    let lone = read("<disk/>").unwrap();
    for at in [
        disk(DiskField::Disk),
        FieldPath::Image(0, 0, ImageField::Image),
    ] {
        let removed = edits("<disk/>", &lone, &Change::remove(at));
        assert_eq!(removed, Err(CannotEdit::WholeDocument(at)));
    }
    let change = Change::set(guest(DomainField::MemoryAccess), "shared");
    let at = guest(DomainField::MemoryAccess);
    assert_eq!(
        edits("<disk/>", &lone, &change),
        Err(CannotEdit::NoPlace(at))
    );
}

#[test]
fn a_change_to_what_is_there_already_edits_nothing() {
    let document = read(PLAIN).unwrap();
    for (at, value) in [
        (FieldPath::Image(0, 0, ImageField::Format), "qcow2"),
        (disk(DiskField::Serial), "1"),
        (disk(DiskField::ReadOnly), "no"),
        (disk(DiskField::SourceType), "file"),
    ] {
        let edits = edits(PLAIN, &document, &Change::set(at, value)).unwrap();
        assert_eq!(edits, Vec::<Edit>::new(), "{at:?}");
    }
}

#[test]
fn the_size_of_a_metadata_cache_is_set_in_every_form_that_is_written() {
    let at = FieldPath::Disk(0, DiskField::MetadataCacheSize);
    for (written, expected) in [
        (
            "<metadata_cache><max_size unit='KiB'>64</max_size></metadata_cache>",
            "<metadata_cache><max_size unit='bytes'>1024</max_size></metadata_cache>",
        ),
        (
            "<metadata_cache><max_size> 64 </max_size></metadata_cache>",
            "<metadata_cache><max_size>1024</max_size></metadata_cache>",
        ),
        (
            "<metadata_cache><max_size unit='MiB'/></metadata_cache>",
            "<metadata_cache><max_size unit='bytes'>1024</max_size></metadata_cache>",
        ),
        (
            "<metadata_cache/>",
            "<metadata_cache><max_size unit='bytes'>1024</max_size></metadata_cache>",
        ),
    ] {
        let text = format!(
            "<disk><driver name='qemu' type='qcow2'>{written}</driver><source file='/a'/><target dev='vda'/></disk>"
        );
        let document = read(&text).unwrap();
        let found = edits(
            &text,
            &document,
            &Change::set(at, vmdisk_model::Bytes(1024)),
        )
        .unwrap();
        let changed = apply_edits(&text, &found).unwrap();
        assert_eq!(changed, text.replace(written, expected));
        let size = read(&changed).unwrap().domain.disks[0]
            .backend
            .metadata_cache_size;
        assert_eq!(size, Some(vmdisk_model::Bytes(1024)));
        let wrong = edits(&text, &document, &Change::set(at, "much"));
        assert!(
            matches!(wrong, Err(CannotEdit::InvalidValue { .. })),
            "{wrong:?}"
        );
    }
}
