//! What is not written, and what is said about it.

use vmdisk_model::*;

use super::{Change, disks, line, problems, virtio};

#[test]
fn what_a_target_lacks_is_refused_with_the_version_that_has_it() {
    let cases: &[(&str, &str, Change, &str)] = &[
        (
            "qemu=8.2",
            "qemu=9.0",
            |disk| {
                disk.frontend.iothread_mapping = vec![IoThreadQueues {
                    iothread: IoThreadId(1),
                    queues: vec![],
                }];
            },
            "a mapping of queues to iothreads needs QEMU 9.0 or newer",
        ),
        (
            "qemu=8.0",
            "qemu=8.1",
            |disk| {
                disk.backend.source = Image::file("/a", Format::Qcow2).into();
                disk.backend.discard_no_unref = Some(Switch::On);
            },
            "discard-no-unref needs QEMU 8.1 or newer",
        ),
        (
            "qemu=4.2",
            "qemu=5.0",
            |disk| disk.backend.aio = Some(AioMode::IoUring),
            "aio=io_uring needs QEMU 5.0 or newer",
        ),
    ];
    for (without, with, change, message) in cases {
        let mut disk = virtio("vda");
        change(&mut disk);
        let domain = disks([disk]);
        assert_eq!(problems(&domain, without)[0].message, *message);
        line(&domain, with);
    }
}

#[test]
fn what_cannot_be_written_is_refused_at_its_field() {
    use DiskField as F;
    let cases: &[(DiskField, &str, Change)] = &[
        (F::Queues, "expected 1 to 1024, found 1025", |disk| {
            disk.frontend.queues = Some(1025)
        }),
        (F::QueueSize, "found 2048", |disk| {
            disk.frontend.queue_size = Some(2048)
        }),
        (F::QueueSize, "found 100", |disk| {
            disk.frontend.queue_size = Some(100)
        }),
        (F::LogicalBlockSize, "found 1000", |disk| {
            disk.frontend.logical_block_size = Some(1000);
        }),
        (
            F::PhysicalBlockSize,
            "512 bytes are less than the logical sector of 4096",
            |disk| {
                disk.frontend.logical_block_size = Some(4096);
                disk.frontend.physical_block_size = Some(512);
            },
        ),
        (F::Wwn, "`wwn` is not supported by virtio-blk", |disk| {
            disk.frontend.wwn = Some("5000c500155f0cc5".to_owned());
        }),
        (F::Wwn, "'+5' is not a WWN", |disk| {
            disk.frontend.bus = Some(TargetBus::Sata);
            disk.frontend.wwn = Some("+5".to_owned());
        }),
        (F::IoThreadMapping, "one iothread or a mapping", |disk| {
            disk.frontend.iothread = Some(IoThreadId(1));
            disk.frontend.iothread_mapping = vec![IoThreadQueues {
                iothread: IoThreadId(2),
                queues: vec![],
            }];
        }),
        (
            F::IoThread,
            "`iothread` is not supported by scsi-hd",
            |disk| {
                disk.frontend.bus = Some(TargetBus::Scsi);
                disk.frontend.iothread = Some(IoThreadId(1));
            },
        ),
        (F::Device, "bus 'virtio' does not support a cdrom", |disk| {
            disk.frontend.device = Some(Device::Cdrom);
        }),
        (F::Device, "does not pass SCSI commands", |disk| {
            disk.frontend.device = Some(Device::Lun);
        }),
        (
            F::Device,
            "only a raw block device can be passed through",
            |disk| {
                disk.frontend.device = Some(Device::Lun);
                disk.frontend.bus = Some(TargetBus::Scsi);
            },
        ),
        (
            F::Source,
            "only drives with removable media can be empty",
            |disk| {
                disk.backend.source = BackendSource::Empty;
            },
        ),
        (
            F::Transient,
            "a transient disk needs a new overlay",
            |disk| {
                disk.backend.is_transient = true;
            },
        ),
        (F::CopyOnRead, "copy-on-read needs", |disk| {
            disk.backend.copy_on_read = Some(Switch::On);
            disk.backend.is_read_only = true;
        }),
        (F::MetadataCacheSize, "only for qcow2 images", |disk| {
            disk.backend.metadata_cache_size = Some(Bytes(1 << 20));
        }),
        (F::Cache, "QEMU cannot set `cache`", |disk| {
            disk.backend.source = VhostUserSocket::new("/run/a.sock").into();
            disk.backend.cache = Some(CacheMode::None);
        }),
        (F::Reconnect, "requires a `timeout`", |disk| {
            let mut socket = VhostUserSocket::new("/run/a.sock");
            socket.reconnect = Some(Switch::On);
            disk.backend.source = socket.into();
        }),
        (
            F::SocketPath,
            "has 1 to 107 bytes, and this one 120",
            |disk| {
                disk.backend.source = VhostUserSocket::new("x".repeat(120)).into();
            },
        ),
        (F::TargetBus, "QEMU has no bus 'xen'", |disk| {
            disk.frontend.bus = Some(TargetBus::Xen);
        }),
        (F::TargetBus, "vmdisk does not write SD cards", |disk| {
            disk.frontend.bus = Some(TargetBus::Sd);
        }),
        (
            F::TargetBus,
            "an NVMe controller requires a serial",
            |disk| {
                disk.frontend.bus = Some(TargetBus::Nvme);
            },
        ),
        (F::ReadOnly, "cannot be read-only", |disk| {
            disk.frontend.bus = Some(TargetBus::Sata);
            disk.backend.is_read_only = true;
        }),
    ];
    for (field, message, change) in cases {
        let mut disk = virtio("vda");
        change(&mut disk);
        let found = problems(&disks([virtio("vdb"), disk]), "qemu=10.0");
        assert_eq!(found.len(), 1, "{message}: {found:?}");
        assert!(found[0].message.contains(message), "{message}: {found:?}");
        assert_eq!(found[0].at, FieldPath::Disk(1, *field), "{message}");
        assert_eq!(found[0].disk.as_deref(), Some("vda"), "{message}");
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let mut first = virtio("vda");
    first.frontend.queues = Some(2000);
    first.backend.is_transient = true;
    let mut second = virtio("vdb");
    second.backend.source =
        Image::new(Some(Format::Luks), Protocol::Other("rbd".to_owned())).into();
    let found = problems(&disks([first, second]), "qemu=10.0");
    let paths: Vec<FieldPath> = found.iter().map(|problem| problem.at).collect();
    assert_eq!(
        paths,
        [
            FieldPath::Disk(0, DiskField::Transient),
            FieldPath::Disk(0, DiskField::Queues),
            FieldPath::Image(1, 0, ImageField::Source),
            FieldPath::Image(1, 0, ImageField::Format),
        ],
        "{found:?}"
    );
}

#[test]
fn zero_bytes_and_noncharacters_are_refused_because_qemu_reads_others() {
    for name in [
        "/srv/a\0b",
        "/srv/a\u{fffe}b",
        "/srv/\u{1fffe}",
        "/srv/\u{fdd0}",
    ] {
        let disk = Disk::new(
            Frontend::new("vda", TargetBus::Virtio),
            Image::file(name, Format::Raw),
        );
        let found = problems(&disks([disk]), "qemu=10.0");
        assert!(
            found[0].message.contains("cannot be passed to QEMU"),
            "{found:?}"
        );
        assert_eq!(found[0].at, FieldPath::Image(0, 0, ImageField::Source));
    }
}

#[test]
fn what_qemu_decides_by_itself_is_noted_and_not_refused() {
    let mut disk = virtio("vda");
    disk.frontend.address = Some(Address::Other("ccw".to_owned()));
    let line = line(&disks([disk]), "qemu=10.0,arch=s390x");
    assert_eq!(line.left_out.len(), 1);
    assert_eq!(line.left_out[0].at, FieldPath::Disk(0, DiskField::Address));
    let mut disk = virtio("vda");
    disk.frontend.loadparm = Some("2".to_owned());
    disk.backend.snapshot = Some(Snapshot::No);
    let line = super::line(&disks([disk]), "qemu=10.0,machine=pc-q35-10.0");
    for option in ["loadparm", "snapshot"] {
        let said = format!("`{option}` is not written");
        let mut notes = line.left_out.iter();
        assert!(
            notes.any(|note| note.message.starts_with(&said)),
            "{option}: {line:?}"
        );
    }
}
