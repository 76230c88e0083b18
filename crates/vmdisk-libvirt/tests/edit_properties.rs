//! An edit changes the field that it is for, and no other byte than its own.

// What cannot be in a test is told by a panic.
#![allow(clippy::unwrap_used)]

use crate::strategies;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use vmdisk_libvirt::{CannotEdit, Unmodeled, check_changes, edits, read, write_domain};
use vmdisk_model::*;
use vmdisk_source::{Edit, apply_edits};

/// Sets a field of the model; false if the field is not one that this test sets.
fn set_in_model(domain: &mut Domain, at: FieldPath, value: &str) -> bool {
    let number = || value.parse::<u32>().ok();
    let text = || Some(value.to_owned());
    let yes_no = || match value {
        "yes" => Some(Switch::On),
        "no" => Some(Switch::Off),
        _ => None,
    };
    match at {
        FieldPath::Disk(nth, field) => {
            let Disk { frontend, backend } = &mut domain.disks[nth];
            match field {
                DiskField::Device => frontend.device = Device::from_word(value),
                DiskField::Model => frontend.model = VirtioModel::from_word(value),
                DiskField::Cache => backend.cache = CacheMode::from_word(value),
                DiskField::Aio => backend.aio = AioMode::from_word(value),
                DiskField::Discard => backend.discard = Discard::from_word(value),
                DiskField::DetectZeroes => backend.detect_zeroes = DetectZeroes::from_word(value),
                DiskField::CopyOnRead => backend.copy_on_read = Switch::from_word(value),
                DiskField::DiscardNoUnref => backend.discard_no_unref = Switch::from_word(value),
                DiskField::ErrorPolicy => frontend.error_policy = ErrorPolicy::from_word(value),
                DiskField::ReadErrorPolicy => {
                    frontend.read_error_policy = ReadErrorPolicy::from_word(value);
                }
                DiskField::RawIo => frontend.rawio = yes_no(),
                DiskField::Sgio => frontend.sgio = Sgio::from_word(value),
                DiskField::Snapshot => backend.snapshot = Snapshot::from_word(value),
                DiskField::IoEventFd => frontend.ioeventfd = Switch::from_word(value),
                DiskField::EventIdx => frontend.event_idx = Switch::from_word(value),
                DiskField::Iommu => frontend.virtio.iommu = Switch::from_word(value),
                DiskField::Ats => frontend.virtio.ats = Switch::from_word(value),
                DiskField::Packed => frontend.virtio.packed = Switch::from_word(value),
                DiskField::PagePerVq => frontend.virtio.page_per_vq = Switch::from_word(value),
                DiskField::Tray => frontend.tray = Tray::from_word(value),
                DiskField::DpoFua => frontend.dpofua = Switch::from_word(value),
                DiskField::GeometryTranslation => {
                    frontend.geometry.get_or_insert_default().translation =
                        GeometryTranslation::from_word(value);
                }
                DiskField::LoadParm => frontend.loadparm = text(),
                DiskField::AcpiIndex => frontend.acpi_index = number(),
                DiskField::Queues => frontend.queues = number(),
                DiskField::QueueSize => frontend.queue_size = number(),
                DiskField::IoThread => frontend.iothread = number().map(IoThreadId),
                DiskField::TargetDev => frontend.target = text(),
                DiskField::TargetBus => frontend.bus = TargetBus::from_word(value),
                DiskField::RotationRate => frontend.rotation_rate = number(),
                DiskField::Removable => frontend.removable = Switch::from_word(value),
                DiskField::LogicalBlockSize => frontend.logical_block_size = number(),
                DiskField::PhysicalBlockSize => frontend.physical_block_size = number(),
                DiskField::DiscardGranularity => frontend.discard_granularity = number(),
                DiskField::ReadOnly => backend.is_read_only = value == "yes",
                DiskField::Shareable => backend.is_shareable = value == "yes",
                DiskField::Transient => {
                    backend.is_transient = value == "yes";
                    if !backend.is_transient {
                        // It stands in the element that goes.
                        backend.share_backing = None;
                    }
                }
                DiskField::Serial => frontend.serial = text(),
                DiskField::Wwn => frontend.wwn = text(),
                DiskField::Vendor => frontend.vendor = text(),
                DiskField::Product => frontend.product = text(),
                DiskField::BootOrder => frontend.boot_order = number(),
                DiskField::Alias => frontend.alias = text(),
                DiskField::StartupPolicy => {
                    backend.startup_policy = StartupPolicy::from_word(value);
                }
                DiskField::SocketPath => match &mut backend.source {
                    BackendSource::VhostUser(socket) => socket.path = value.to_owned(),
                    BackendSource::Image(_) | BackendSource::Empty => return false,
                },
                DiskField::Disk
                | DiskField::SourceType
                | DiskField::Driver
                | DiskField::DriverName
                | DiskField::IoThreadMapping
                | DiskField::MetadataCacheSize
                | DiskField::Source
                | DiskField::Reconnect
                // libvirt has no word for it.
                | DiskField::ConfigWce
                | DiskField::Target
                | DiskField::BlockIo
                | DiskField::Iotune
                | DiskField::Statistics
                | DiskField::Geometry
                | DiskField::ThrottleFilters
                // Brings the element around it, and with it a transient disk.
                | DiskField::ShareBacking
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
                ControllerField::IoEventFd => controller.ioeventfd = Switch::from_word(value),
                ControllerField::Iommu => controller.virtio.iommu = Switch::from_word(value),
                ControllerField::Ats => controller.virtio.ats = Switch::from_word(value),
                ControllerField::Packed => controller.virtio.packed = Switch::from_word(value),
                ControllerField::PagePerVq => {
                    controller.virtio.page_per_vq = Switch::from_word(value);
                }
                ControllerField::StartPort => controller.start_port = number(),
                ControllerField::Serial => controller.serial = text(),
                ControllerField::Alias => controller.alias = text(),
                ControllerField::AcpiIndex => controller.acpi_index = number(),
                ControllerField::Controller
                | ControllerField::ControllerType
                | ControllerField::Model
                | ControllerField::Driver
                | ControllerField::IoThreadMapping
                // Not of SCSI controllers.
                | ControllerField::Ports
                | ControllerField::Address => return false,
            }
        }
        FieldPath::Domain(field) => match field {
            DomainField::Name => domain.name = text(),
            DomainField::Uuid => domain.uuid = text(),
            DomainField::DomainType => domain.domain_type = Some(DomainType::from_word(value)),
            DomainField::Firmware => domain.firmware = Firmware::from_word(value),
            DomainField::Architecture => domain.architecture = Architecture::from_word(value),
            DomainField::Machine => domain.machine = text().map(MachineType),
            DomainField::Vcpus => domain.vcpus = number(),
            DomainField::MemorySource => {
                domain.memory_backing.source = MemorySource::from_word(value);
            }
            DomainField::MemoryAccess => {
                domain.memory_backing.access = MemoryAccess::from_word(value);
            }
            DomainField::Domain
            | DomainField::Os
            | DomainField::Memory
            | DomainField::MemoryBacking
            | DomainField::HugePages
            | DomainField::IoThreads
            | DomainField::IoThreadIds
            | DomainField::BootDevices
            | DomainField::NumaCells
            | DomainField::Blkiotune
            | DomainField::ThrottleGroups
            | DomainField::DefaultIoThread
            | DomainField::Cpu
            | DomainField::CpuTune
            | DomainField::Devices
            | DomainField::Emulator => return false,
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
                ImageField::Format => image.format = Format::from_word(value),
                ImageField::Path => match &mut image.protocol {
                    Protocol::File { path } => *path = value.to_owned(),
                    Protocol::HostDevice { path } => path.0 = value.to_owned(),
                    Protocol::Directory { path } | Protocol::VhostVdpa { path } => {
                        *path = value.to_owned();
                    }
                    Protocol::Network(_)
                    | Protocol::Volume(_)
                    | Protocol::Nvme(_)
                    | Protocol::Other(_) => return false,
                },
                ImageField::FdGroup => image.fd_group = text(),
                ImageField::NetworkProtocol => {
                    let Protocol::Network(network) = &mut image.protocol else {
                        return false;
                    };
                    let Some(protocol) = NetworkProtocol::from_word(value) else {
                        return false;
                    };
                    network.protocol = protocol;
                }
                ImageField::Pool | ImageField::Volume | ImageField::VolumeMode => {
                    let Protocol::Volume(source) = &mut image.protocol else {
                        return false;
                    };
                    if field == ImageField::Pool {
                        source.pool = value.to_owned();
                    } else if field == ImageField::Volume {
                        source.volume = value.to_owned();
                    } else {
                        source.mode = VolumeMode::from_word(value);
                    }
                }
                ImageField::Namespace => {
                    let Protocol::Nvme(source) = &mut image.protocol else {
                        return false;
                    };
                    source.namespace = value.parse().unwrap();
                }
                _ => {
                    let Protocol::Network(network) = &mut image.protocol else {
                        return false;
                    };
                    let value = match NetworkSource::kind_of(field) {
                        Some(FieldKind::Text) => text().map(FieldValue::Text),
                        Some(FieldKind::Switch) => yes_no().map(FieldValue::Switch),
                        Some(FieldKind::Number) => number().map(FieldValue::Number),
                        Some(FieldKind::Count) => value.parse().ok().map(FieldValue::Count),
                        Some(FieldKind::Size) => {
                            value.parse().ok().map(Bytes).map(FieldValue::Size)
                        }
                        _ => None,
                    };
                    return value.is_some_and(|value| network.set(field, value));
                }
            }
        }
        FieldPath::Iotune(nth, field) => {
            let mut limits = domain.disks[nth].backend.iotune.take().unwrap_or_default();
            let is_set = set_limit(&mut limits, field, value);
            domain.disks[nth].backend.iotune = Some(limits);
            return is_set;
        }
        FieldPath::ThrottleGroup(nth, field) => {
            return set_limit(&mut domain.throttle_groups[nth], field, value);
        }
        FieldPath::IoThread(..) => return false,
    }
    true
}

/// Sets a limit; false for the element around them all.
fn set_limit(limits: &mut Iotune, field: LimitField, value: &str) -> bool {
    let Iotune {
        bytes,
        iops,
        size_iops,
        group,
    } = limits;
    let slot = match field {
        LimitField::Limits => return false,
        LimitField::Group => {
            *group = Some(value.to_owned());
            return true;
        }
        LimitField::SizeIops => size_iops,
        LimitField::TotalBytes => &mut bytes.total,
        LimitField::ReadBytes => &mut bytes.read,
        LimitField::WriteBytes => &mut bytes.write,
        LimitField::TotalBytesMax => &mut bytes.total_max,
        LimitField::ReadBytesMax => &mut bytes.read_max,
        LimitField::WriteBytesMax => &mut bytes.write_max,
        LimitField::TotalBytesMaxLength => &mut bytes.total_max_length,
        LimitField::ReadBytesMaxLength => &mut bytes.read_max_length,
        LimitField::WriteBytesMaxLength => &mut bytes.write_max_length,
        LimitField::TotalIops => &mut iops.total,
        LimitField::ReadIops => &mut iops.read,
        LimitField::WriteIops => &mut iops.write,
        LimitField::TotalIopsMax => &mut iops.total_max,
        LimitField::ReadIopsMax => &mut iops.read_max,
        LimitField::WriteIopsMax => &mut iops.write_max,
        LimitField::TotalIopsMaxLength => &mut iops.total_max_length,
        LimitField::ReadIopsMaxLength => &mut iops.read_max_length,
        LimitField::WriteIopsMaxLength => &mut iops.write_max_length,
    };
    *slot = value.parse().ok();
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
        1 => select(LimitField::ALL).prop_map(|field| FieldPath::Iotune(0, field)),
        1 => select(LimitField::ALL).prop_map(|field| FieldPath::ThrottleGroup(0, field)),
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
        FieldPath::Iotune(_, field) if disks > 0 => {
            Some(FieldPath::Iotune(index.index(disks), field))
        }
        FieldPath::ThrottleGroup(_, field) if !domain.throttle_groups.is_empty() => Some(
            FieldPath::ThrottleGroup(index.index(domain.throttle_groups.len()), field),
        ),
        FieldPath::Disk(..)
        | FieldPath::Image(..)
        | FieldPath::Controller(..)
        | FieldPath::Domain(_)
        | FieldPath::IoThread(..)
        | FieldPath::Iotune(..)
        | FieldPath::ThrottleGroup(..) => None,
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
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn setting_a_field_changes_that_field_of_the_model_and_no_other(
        domain in strategies::domain(),
        paths in proptest::collection::vec((any_path(), select(WORDS)), 1..12),
    ) {
        let text = write_domain(&domain, &Unmodeled::default()).unwrap();
        let document = read(&text).unwrap();
        for (path, value) in paths {
            let Some(at) = numbered(&domain, path) else { continue };
            let change = Change::set(at, value);
            let edits = edits(&text, &document, &change);
            let checked = check_changes(&text, &document, &[change]);
            prop_assert_eq!(checked.as_ref().err(), edits.as_ref().err());
            let Ok(edits) = edits else { continue };
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
                // A boot disk with such sectors is one that SeaBIOS does not boot.
                let mut problems = again.problems;
                problems.retain(|problem| problem.rule.name != "seabios-4096-sectors");
                let lacks_order = expected.disks.iter().any(|disk| {
                    disk.frontend.loadparm.is_some() && disk.frontend.boot_order.is_none()
                });
                let is_right = !is_empty && !lacks_order;
                prop_assert_eq!(problems.is_empty(), is_right, "{:?}\n{}", problems, after);
            }
        }
    }

    #[test]
    fn removing_a_field_and_setting_it_again_restores_the_model(
        domain in strategies::domain(),
        path in any_path(),
    ) {
        let text = write_domain(&domain, &Unmodeled::default()).unwrap();
        let document = read(&text).unwrap();
        let Some(at) = numbered(&domain, path) else { return Ok(()) };
        // A disk, controller or group that is gone gives its number to the next.
        let is_numbered = matches!(
            at,
            FieldPath::Disk(_, DiskField::Disk)
                | FieldPath::Image(_, 0, ImageField::Image)
                | FieldPath::Controller(
                    _,
                    ControllerField::Controller | ControllerField::ControllerType,
                )
                | FieldPath::ThrottleGroup(_, LimitField::Limits)
        );
        if is_numbered {
            return Ok(());
        }
        let Some(place) = document.source_map.place(at) else { return Ok(()) };
        let value = place.span.slice(&text).unwrap().to_owned();
        let removed = edits(&text, &document, &Change::remove(at));
        let checked = check_changes(&text, &document, &[Change::remove(at)]);
        prop_assert_eq!(checked.as_ref().err(), removed.as_ref().err());
        let removed = match removed {
            Err(CannotEdit::WholeDocument(_)) => return Ok(()),
            // One element for each.
            Err(CannotEdit::NotOneValue(
                FieldPath::Domain(DomainField::BootDevices)
                | FieldPath::Image(_, _, ImageField::Hosts),
            )) => return Ok(()),
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
