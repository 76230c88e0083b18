//! A change of the model becomes edits that change nothing else.

// What cannot be in a test is told by a panic.
#![allow(clippy::unwrap_used)]

mod strategies;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use vmdisk_libvirt::{CannotEdit, Kept, edits, edits_of_all, read, write_domain};
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
    let error = |change: Change| edits(PLAIN, &document, &change).unwrap_err();
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

/// Sets a field of the model; false if the field is not one that this test sets.
fn set_in_model(domain: &mut Domain, at: FieldPath, value: &str) -> bool {
    let number = || value.parse::<u32>().ok();
    let text = || Some(value.to_owned());
    match at {
        FieldPath::Disk(nth, field) => {
            let Disk { frontend, backend } = &mut domain.disks[nth];
            match field {
                DiskField::Device => frontend.device = Device::from_wire(value),
                DiskField::Model => frontend.model = VirtioModel::from_wire(value),
                DiskField::Cache => backend.cache = CacheMode::from_wire(value),
                DiskField::Aio => backend.aio = AioMode::from_wire(value),
                DiskField::Discard => backend.discard = Discard::from_wire(value),
                DiskField::DetectZeroes => backend.detect_zeroes = DetectZeroes::from_wire(value),
                DiskField::CopyOnRead => backend.copy_on_read = Switch::from_wire(value),
                DiskField::DiscardNoUnref => backend.discard_no_unref = Switch::from_wire(value),
                DiskField::ErrorPolicy => frontend.error_policy = ErrorPolicy::from_wire(value),
                DiskField::ReadErrorPolicy => {
                    frontend.read_error_policy = ReadErrorPolicy::from_wire(value);
                }
                DiskField::Queues => frontend.queues = number(),
                DiskField::QueueSize => frontend.queue_size = number(),
                DiskField::IoThread => frontend.iothread = number().map(IoThreadId),
                DiskField::TargetDev => frontend.target = text(),
                DiskField::TargetBus => frontend.bus = TargetBus::from_wire(value),
                DiskField::RotationRate => frontend.rotation_rate = number(),
                DiskField::Removable => frontend.removable = Switch::from_wire(value),
                DiskField::LogicalBlockSize => frontend.logical_block_size = number(),
                DiskField::PhysicalBlockSize => frontend.physical_block_size = number(),
                DiskField::DiscardGranularity => frontend.discard_granularity = number(),
                DiskField::ReadOnly => backend.is_read_only = value == "yes",
                DiskField::Shareable => backend.is_shareable = value == "yes",
                DiskField::Transient => backend.is_transient = value == "yes",
                DiskField::Serial => frontend.serial = text(),
                DiskField::Wwn => frontend.wwn = text(),
                DiskField::Vendor => frontend.vendor = text(),
                DiskField::Product => frontend.product = text(),
                DiskField::BootOrder => frontend.boot_order = number(),
                DiskField::Alias => frontend.alias = text(),
                DiskField::SocketPath => match &mut backend.source {
                    BackendSource::VhostUser(socket) => socket.path = value.to_owned(),
                    BackendSource::Image(_) | BackendSource::Empty | BackendSource::Other(_) => {
                        return false;
                    }
                },
                DiskField::Disk
                | DiskField::SourceType
                | DiskField::Driver
                | DiskField::DriverName
                | DiskField::IoThreadMapping
                | DiskField::MetadataCacheSize
                | DiskField::Source
                | DiskField::Reconnect
                | DiskField::Target
                | DiskField::BlockIo
                | DiskField::Iotune
                | DiskField::Address => return false,
            }
        }
        FieldPath::Controller(nth, field) => {
            let controller = &mut domain.controllers[nth];
            match field {
                ControllerField::Index => controller.index = number(),
                ControllerField::Queues => controller.queues = number(),
                ControllerField::CmdPerLun => controller.cmd_per_lun = number(),
                ControllerField::MaxSectors => controller.max_sectors = number(),
                ControllerField::IoThread => controller.iothread = number().map(IoThreadId),
                ControllerField::Controller
                | ControllerField::ControllerType
                | ControllerField::Model
                | ControllerField::Driver
                | ControllerField::IoThreadMapping
                | ControllerField::Address => return false,
            }
        }
        FieldPath::Domain(field) => match field {
            DomainField::Name => domain.name = text(),
            DomainField::Uuid => domain.uuid = text(),
            DomainField::DomainType => domain.domain_type = Some(DomainType::from_wire(value)),
            DomainField::Architecture => domain.architecture = Architecture::from_wire(value),
            DomainField::Machine => domain.machine = text().map(MachineType),
            DomainField::Vcpus => domain.vcpus = number(),
            DomainField::MemorySource => {
                domain.memory_backing.source = MemorySource::from_wire(value);
            }
            DomainField::MemoryAccess => {
                domain.memory_backing.access = MemoryAccess::from_wire(value);
            }
            DomainField::Domain
            | DomainField::Os
            | DomainField::Memory
            | DomainField::MemoryBacking
            | DomainField::HugePages
            | DomainField::IoThreads
            | DomainField::IoThreadIds
            | DomainField::Devices => return false,
        },
        FieldPath::Image(disk, depth, field) => {
            let BackendSource::Image(image) = &mut domain.disks[disk].backend.source else {
                return false;
            };
            let mut image = image;
            for _ in 0..depth {
                let Backing::Image(below) = &mut image.backing else {
                    return false;
                };
                image = below;
            }
            match field {
                ImageField::Format => image.format = Format::from_wire(value),
                ImageField::Path => match &mut image.protocol {
                    Protocol::File { path } => *path = value.to_owned(),
                    Protocol::HostDevice { path } => path.0 = value.to_owned(),
                    Protocol::Other(_) => return false,
                },
                ImageField::Image | ImageField::Source => return false,
            }
        }
        FieldPath::IoThread(..) => return false,
    }
    true
}

const WORDS: &[&str] = &[
    "none",
    "writeback",
    "unsafe",
    "native",
    "io_uring",
    "threads",
    "unmap",
    "ignore",
    "on",
    "off",
    "stop",
    "report",
    "virtio",
    "scsi",
    "sata",
    "disk",
    "lun",
    "raw",
    "qcow2",
    "vmdk",
    "yes",
    "no",
    "shared",
    "private",
    "memfd",
    "file",
    "x86_64",
    "aarch64",
    "virtio-transitional",
    "7",
    "4096",
    "kvm",
    "it's <\"&\">",
    "é\n",
];

fn any_path() -> impl Strategy<Value = (Index, FieldPath)> {
    let field = prop_oneof![
        6 => select(DiskField::ALL).prop_map(|field| FieldPath::Disk(0, field)),
        1 => (0..3_usize, select(ImageField::ALL)).prop_map(|(depth, field)| FieldPath::Image(0, depth, field)),
        1 => select(DomainField::ALL).prop_map(FieldPath::Domain),
        1 => select(ControllerField::ALL).prop_map(|field| FieldPath::Controller(0, field)),
    ];
    (any::<Index>(), field)
}

/// Puts the number of a disk or controller that is there into a path.
fn numbered(domain: &Domain, (index, at): (Index, FieldPath)) -> Option<FieldPath> {
    let (disks, controllers) = (domain.disks.len(), domain.controllers.len());
    match at {
        FieldPath::Disk(_, field) if disks > 0 => Some(FieldPath::Disk(index.index(disks), field)),
        FieldPath::Image(_, depth, field) if disks > 0 => {
            Some(FieldPath::Image(index.index(disks), depth, field))
        }
        FieldPath::Controller(_, field) if controllers > 0 => {
            Some(FieldPath::Controller(index.index(controllers), field))
        }
        FieldPath::Domain(_) if domain.scope == Scope::WholeGuest => Some(at),
        FieldPath::Disk(..)
        | FieldPath::Image(..)
        | FieldPath::Controller(..)
        | FieldPath::Domain(_)
        | FieldPath::IoThread(..) => None,
    }
}

/// What the text is apart from the edits is what it was.
fn assert_rest_untouched(text: &str, after: &str, edits: &[Edit]) {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| edit.span);
    let (mut done, mut rest) = (0, after);
    for edit in sorted {
        let before = &text[done..edit.span.start];
        rest = rest
            .strip_prefix(before)
            .expect("what is before an edit stays");
        rest = rest
            .strip_prefix(edit.text.as_str())
            .expect("the edit is there");
        done = edit.span.end;
    }
    assert_eq!(rest, &text[done..]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn setting_a_field_changes_that_field_of_the_model_and_no_other(
        domain in strategies::domain(),
        paths in proptest::collection::vec((any_path(), select(WORDS)), 1..12),
    ) {
        let text = write_domain(&domain, &Kept::default()).unwrap();
        let document = read(&text).unwrap();
        for (path, value) in paths {
            let Some(at) = numbered(&domain, path) else { continue };
            let Ok(edits) = edits(&text, &document, &Change::set(at, value)) else { continue };
            let after = apply_edits(&text, &edits).unwrap();
            assert_rest_untouched(&text, &after, &edits);
            let mut expected = domain.clone();
            let is_known = set_in_model(&mut expected, at, value);
            let again = read(&after).unwrap();
            if is_known {
                prop_assert_eq!(&again.domain, &expected, "{:?} = {:?}\n{}", at, value, after);
                // An empty drive that becomes a disk lacks a source, and is told so.
                let is_empty = expected.disks.iter().any(|disk| {
                    disk.backend.source == BackendSource::Empty
                        && disk.frontend.effective_device() != Device::Cdrom
                        && disk.frontend.effective_device() != Device::Floppy
                });
                prop_assert_eq!(again.problems.is_empty(), !is_empty);
            }
        }
    }

    #[test]
    fn removing_a_field_and_setting_it_again_restores_the_model(
        domain in strategies::domain(),
        path in any_path(),
    ) {
        let text = write_domain(&domain, &Kept::default()).unwrap();
        let document = read(&text).unwrap();
        let Some(at) = numbered(&domain, path) else { return Ok(()) };
        // A disk or controller that is gone gives its number to the next.
        let is_numbered = matches!(
            at,
            FieldPath::Disk(_, DiskField::Disk)
                | FieldPath::Image(_, 0, ImageField::Image)
                | FieldPath::Controller(
                    _,
                    ControllerField::Controller | ControllerField::ControllerType,
                )
        );
        if is_numbered {
            return Ok(());
        }
        let Some(place) = document.source_map.place(at) else { return Ok(()) };
        let value = place.span.slice(&text).unwrap().to_owned();
        let removed = match edits(&text, &document, &Change::remove(at)) {
            Err(CannotEdit::WholeDocument(_)) => return Ok(()),
            removed => removed.unwrap(),
        };
        let without = apply_edits(&text, &removed).unwrap();
        assert_rest_untouched(&text, &without, &removed);
        let document = read(&without).unwrap();
        prop_assert_eq!(document.source_map.place(at).is_some(), false, "{:?}\n{}", at, without);
        // Only values without an escape can be taken from the text as they are.
        if value.contains(['&', '<']) {
            return Ok(());
        }
        if let Ok(set) = edits(&without, &document, &Change::set(at, value)) {
            let restored = apply_edits(&without, &set).unwrap();
            prop_assert_eq!(&read(&restored).unwrap().domain, &domain, "{:?}\n{}", at, restored);
        }
    }
}
