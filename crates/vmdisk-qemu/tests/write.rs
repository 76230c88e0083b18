//! Command lines as they are written, for targets old and new.

use vmdisk_model::*;
use vmdisk_qemu::{CommandLine, Options, WriteProblem, write};

type Change = fn(&mut Disk);

fn options(target: &str) -> Options {
    Options {
        target: target.parse().expect("the tests name targets that exist"),
        ..Options::default()
    }
}

fn virtio(target: &str) -> Disk {
    Disk::new(
        Frontend::new(target, TargetBus::Virtio),
        Image::file("/srv/a.img", Format::Raw),
    )
}

fn disks(disks: impl IntoIterator<Item = Disk>) -> Domain {
    Domain {
        scope: Scope::DisksOnly,
        disks: disks.into_iter().collect(),
        ..Domain::default()
    }
}

fn line(domain: &Domain, target: &str) -> CommandLine {
    write(domain, &options(target)).unwrap_or_else(|problems| panic!("{problems}"))
}

fn problems(domain: &Domain, target: &str) -> Vec<WriteProblem> {
    match write(domain, &options(target)) {
        Ok(line) => panic!("written: {}", line.to_shell()),
        Err(problems) => problems.0,
    }
}

#[test]
fn a_whole_guest_comes_out_one_option_per_line() {
    let mut domain = Domain {
        name: Some("web1".to_owned()),
        domain_type: Some(DomainType::Kvm),
        machine: Some(MachineType::new("pc-q35-10.0")),
        vcpus: Some(4),
        memory: Some(Bytes::gib(4)),
        iothreads: vec![IoThread::new(IoThreadId(1))],
        controllers: vec![Controller::virtio_scsi(0)],
        ..Domain::default()
    };
    domain.memory_backing.access = Some(MemoryAccess::Shared);
    let mut base = Image::file("/srv/base.qcow2", Format::Qcow2);
    base.backing = Backing::Terminated;
    let mut top = Image::file("/srv/it's web1.qcow2", Format::Qcow2);
    top.backing = Backing::Image(Box::new(base));
    let mut system = Disk::new(Frontend::new("vda", TargetBus::Virtio), top);
    system.frontend.iothread = Some(IoThreadId(1));
    system.frontend.queues = Some(4);
    system.frontend.boot_order = Some(1);
    system.backend.cache = Some(CacheMode::None);
    system.backend.aio = Some(AioMode::IoUring);
    system.backend.discard = Some(Discard::Unmap);
    system.backend.detect_zeroes = Some(DetectZeroes::Unmap);
    let mut data = Disk::new(
        Frontend::new("sda", TargetBus::Scsi),
        Image::host_device("/dev/vg0/data"),
    );
    data.frontend.serial = Some("data-1".to_owned());
    data.frontend.logical_block_size = Some(4096);
    let mut cd = Disk::new(Frontend::new("sdb", TargetBus::Sata), BackendSource::Empty);
    cd.frontend.device = Some(Device::Cdrom);
    domain.disks = vec![system, data, cd];
    assert_eq!(
        line(&domain, "qemu=10.0").to_shell(),
        r#"qemu-system-x86_64 \
  -name guest=web1 \
  -nodefaults \
  -machine pc-q35-10.0,memory-backend=memory \
  -accel kvm \
  -smp 4 \
  -m size=4G \
  -object '{"qom-type":"memory-backend-memfd","id":"memory","size":4294967296,"share":true}' \
  -object '{"qom-type":"iothread","id":"iothread1"}' \
  -device '{"driver":"virtio-scsi-pci","id":"scsi0"}' \
  -blockdev '{"driver":"file","node-name":"vda-base1-file","filename":"/srv/base.qcow2","aio":"io_uring","cache":{"direct":true,"no-flush":false},"discard":"unmap","auto-read-only":true}' \
  -blockdev '{"driver":"qcow2","node-name":"vda-base1-format","file":"vda-base1-file","backing":null,"cache":{"direct":true,"no-flush":false},"discard":"unmap","detect-zeroes":"unmap","read-only":true}' \
  -blockdev '{"driver":"file","node-name":"vda-file","filename":"/srv/it'\''s web1.qcow2","aio":"io_uring","cache":{"direct":true,"no-flush":false},"discard":"unmap","read-only":false}' \
  -blockdev '{"driver":"qcow2","node-name":"vda-format","file":"vda-file","backing":"vda-base1-format","cache":{"direct":true,"no-flush":false},"discard":"unmap","detect-zeroes":"unmap","read-only":false}' \
  -device '{"driver":"virtio-blk-pci","id":"vda","drive":"vda-format","num-queues":4,"iothread":"iothread1","bootindex":1,"write-cache":"on"}' \
  -blockdev '{"driver":"host_device","node-name":"sda-file","filename":"/dev/vg0/data","read-only":false}' \
  -blockdev '{"driver":"raw","node-name":"sda-format","file":"sda-file","read-only":false}' \
  -device '{"driver":"scsi-hd","id":"sda","bus":"scsi0.0","channel":0,"scsi-id":0,"lun":0,"drive":"sda-format","device_id":"data-1","logical_block_size":4096,"physical_block_size":4096,"serial":"data-1"}' \
  -device '{"driver":"ide-cd","id":"sdb","bus":"ide.1"}'
"#
    );
}

#[test]
fn an_old_target_gets_the_key_value_form_where_it_has_no_json() {
    let mut disk = virtio("vda");
    disk.frontend.serial = Some("a,b".to_owned());
    disk.frontend.iothread = Some(IoThreadId(1));
    disk.backend.is_shareable = true;
    disk.backend.iotune = Some(Iotune {
        iops: IotuneLimits {
            total: Some(100),
            total_max: Some(200),
            ..IotuneLimits::default()
        },
        ..Iotune::default()
    });
    let domain = disks([disk]);
    let words = |target: &str| line(&domain, target).argv().join("\n");
    let old = words("qemu=5.2");
    for part in [
        "-object\niothread,id=iothread1\n",
        "-object\nthrottle-group,id=throttle-vda,x-iops-total=100,x-iops-total-max=200\n",
        "\n-blockdev\n{\"driver\":\"throttle\",",
        "-device\nvirtio-blk-pci,id=vda,drive=vda-throttle,share-rw=on,iothread=iothread1,write-cache=on,serial=a,,b",
    ] {
        assert!(old.contains(part), "{part:?} in\n{old}");
    }
    let between = words("qemu=6.1");
    assert!(between.contains("-object\n{\"qom-type\":\"throttle-group\",\"id\":\"throttle-vda\",\"limits\":{\"iops-total\":100,\"iops-total-max\":200}}"));
    assert!(between.contains("-device\nvirtio-blk-pci,"));
    let new = words("qemu=6.2");
    assert!(new.contains("-device\n{\"driver\":\"virtio-blk-pci\""));
    assert_eq!(words("machine=q35"), new, "an unknown QEMU is a recent one");
}

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
fn a_daemon_is_reconnected_to_in_the_units_of_the_target() {
    let mut disk = virtio("vda");
    disk.backend.source = VhostUserSocket {
        path: "/run/a,b.sock".to_owned(),
        reconnect: Some(Switch::On),
        reconnect_timeout: Some(10),
    }
    .into();
    let domain = disks([disk]);
    for (target, value) in [
        ("qemu=7.2", "reconnect=10"),
        ("qemu=9.1", "reconnect=10"),
        ("qemu=9.2", "reconnect-ms=10000"),
        ("qemu=11.1", "reconnect-ms=10000"),
    ] {
        let argv = line(&domain, target).argv();
        assert_eq!(
            argv[1],
            format!("socket,id=socket-vda,path=/run/a,,b.sock,{value}"),
            "{target}"
        );
    }
}

#[test]
fn cache_modes_set_their_switches_on_nodes_and_device() {
    for (mode, device, direct, no_flush) in [
        (CacheMode::None, "on", true, false),
        (CacheMode::Writethrough, "off", false, false),
        (CacheMode::Writeback, "on", false, false),
        (CacheMode::Directsync, "off", true, false),
        (CacheMode::Unsafe, "on", false, true),
    ] {
        let mut disk = virtio("vda");
        disk.backend.cache = Some(mode);
        let line = line(&disks([disk]), "qemu=10.0");
        let cache = format!(r#""cache":{{"direct":{direct},"no-flush":{no_flush}}}"#);
        assert_eq!(line.blockdevs().count(), 2);
        for node in line.blockdevs() {
            assert!(node.to_string().contains(&cache), "{mode}: {node}");
        }
        let written = line.arguments.last().unwrap().property("write-cache");
        assert_eq!(written.as_deref(), Some(device), "{mode}");
    }
    let text = line(&disks([virtio("vda")]), "qemu=10.0").to_shell();
    assert!(
        !text.contains("cache"),
        "QEMU's defaults go without saying: {text}"
    );
}

#[test]
fn what_cannot_be_written_is_refused_at_its_field() {
    use DiskField as F;
    let cases: &[(DiskField, &str, Change)] = &[
        (F::Queues, "1025 queues", |disk| {
            disk.frontend.queues = Some(1025)
        }),
        (F::Queues, "0 queues", |disk| disk.frontend.queues = Some(0)),
        (F::QueueSize, "a queue of 2048", |disk| {
            disk.frontend.queue_size = Some(2048)
        }),
        (F::QueueSize, "a queue of 100", |disk| {
            disk.frontend.queue_size = Some(100)
        }),
        (F::LogicalBlockSize, "1000 bytes", |disk| {
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
        (F::Wwn, "virtio-blk does not have this option", |disk| {
            disk.frontend.wwn = Some("5000c500155f0cc5".to_owned());
        }),
        (F::Wwn, "'+5' is not a world wide name", |disk| {
            disk.frontend.bus = Some(TargetBus::Sata);
            disk.frontend.wwn = Some("+5".to_owned());
        }),
        (
            F::IoThreadMapping,
            "either one iothread or a mapping",
            |disk| {
                disk.frontend.iothread = Some(IoThreadId(1));
                disk.frontend.iothread_mapping = vec![IoThreadQueues {
                    iothread: IoThreadId(2),
                    queues: vec![],
                }];
            },
        ),
        (F::IoThread, "scsi-hd does not have this option", |disk| {
            disk.frontend.bus = Some(TargetBus::Scsi);
            disk.frontend.iothread = Some(IoThreadId(1));
        }),
        (F::Device, "there is no cdrom on bus 'virtio'", |disk| {
            disk.frontend.device = Some(Device::Cdrom);
        }),
        (F::Device, "passes no SCSI commands on", |disk| {
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
            F::SourceType,
            "a source of type 'network' cannot be written yet",
            |disk| {
                disk.backend.source = BackendSource::Other(OtherSource {
                    source_type: "network".to_owned(),
                    format: None,
                });
            },
        ),
        (F::Transient, "a transient disk is an overlay", |disk| {
            disk.backend.is_transient = true;
        }),
        (F::CopyOnRead, "nowhere to copy", |disk| {
            disk.backend.copy_on_read = Some(Switch::On);
            disk.backend.is_read_only = true;
        }),
        (F::MetadataCacheSize, "only qcow2 images", |disk| {
            disk.backend.metadata_cache_size = Some(Bytes(1 << 20));
        }),
        (F::Cache, "the VhostUserBackend does the I/O", |disk| {
            disk.backend.source = VhostUserSocket::new("/run/a.sock").into();
            disk.backend.cache = Some(CacheMode::None);
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
        (F::TargetBus, "only -drive if=sd reaches", |disk| {
            disk.frontend.bus = Some(TargetBus::Sd);
        }),
        (
            F::TargetBus,
            "an NVMe controller does not start without a serial",
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
    second.backend.source = Image {
        format: Some(Format::Luks),
        protocol: Protocol::Other("rbd".to_owned()),
        backing: Backing::Unspecified,
        creation: None,
    }
    .into();
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
            found[0].message.contains("cannot be given to QEMU"),
            "{found:?}"
        );
        assert_eq!(found[0].at, FieldPath::Image(0, 0, ImageField::Source));
    }
}

#[test]
fn machines_differ_in_how_virtio_is_reached_and_in_what_they_have() {
    let guest = |architecture, machine: &str, disk: Disk| Domain {
        architecture: Some(architecture),
        machine: Some(MachineType::new(machine)),
        disks: vec![disk],
        ..Domain::default()
    };
    let on = |bus| {
        let mut disk = virtio("vda");
        disk.frontend.bus = Some(bus);
        disk
    };
    for (architecture, machine, bus, driver) in [
        (
            Architecture::X86_64,
            "q35",
            TargetBus::Virtio,
            "virtio-blk-pci",
        ),
        (
            Architecture::X86_64,
            "microvm",
            TargetBus::Virtio,
            "virtio-blk-device",
        ),
        (
            Architecture::S390x,
            "s390-ccw-virtio",
            TargetBus::Virtio,
            "virtio-blk-ccw",
        ),
        (
            Architecture::Aarch64,
            "virt",
            TargetBus::Virtio,
            "virtio-blk-pci",
        ),
        (
            Architecture::Aarch64,
            "raspi3b",
            TargetBus::Virtio,
            "virtio-blk-device",
        ),
        (
            Architecture::S390x,
            "s390-ccw-virtio",
            TargetBus::Scsi,
            "virtio-scsi-ccw",
        ),
        (
            Architecture::Aarch64,
            "virt",
            TargetBus::Scsi,
            "virtio-scsi-pci",
        ),
        (
            Architecture::Ppc64le,
            "pseries",
            TargetBus::Scsi,
            "spapr-vscsi",
        ),
        (Architecture::X86_64, "q35", TargetBus::Scsi, "lsi53c895a"),
        (Architecture::X86_64, "pc", TargetBus::Sata, "ich9-ahci"),
        (Architecture::X86_64, "q35", TargetBus::Usb, "qemu-xhci"),
    ] {
        let line = line(&guest(architecture, machine, on(bus)), "qemu=10.0");
        let first = line.arguments.iter().find_map(|argument| {
            argument
                .property("driver")
                .filter(|_| argument.option.as_word() == "-device")
        });
        assert_eq!(first.as_deref(), Some(driver), "{machine} {bus}");
        let program = line.program.unwrap();
        assert!(program.starts_with("qemu-system-"), "{program}");
    }
    for (machine, message) in [
        ("q35", "q35 has no IDE controller; use bus='sata'"),
        ("virt", "virt has no IDE controller"),
    ] {
        let found = problems(
            &guest(Architecture::X86_64, machine, on(TargetBus::Ide)),
            "qemu=10.0",
        );
        assert!(found[0].to_string().contains(message), "{found:?}");
    }
}

#[test]
fn what_qemu_decides_by_itself_is_noted_and_not_refused() {
    let mut disk = virtio("vda");
    disk.frontend.address = Some(Address::Other("ccw".to_owned()));
    let line = line(&disks([disk]), "qemu=10.0,arch=s390x");
    assert_eq!(line.left_out.len(), 1);
    assert_eq!(line.left_out[0].at, FieldPath::Disk(0, DiskField::Address));
}

#[test]
fn every_argument_knows_what_it_was_written_for() {
    let mut disk = virtio("vda");
    disk.backend.copy_on_read = Some(Switch::On);
    let line = line(&disks([virtio("vdb"), disk]), "qemu=10.0");
    let of_second: Vec<FieldPath> = line
        .arguments
        .iter()
        .map(|argument| argument.origin)
        .filter(|origin| origin.disk() == Some(1))
        .collect();
    assert_eq!(
        of_second,
        [
            FieldPath::Image(1, 0, ImageField::Source),
            FieldPath::Image(1, 0, ImageField::Format),
            FieldPath::Disk(1, DiskField::CopyOnRead),
            FieldPath::Disk(1, DiskField::Disk),
        ]
    );
}

#[test]
fn block_nodes_alone_come_as_one_json_array() {
    let line = line(&disks([virtio("vda")]), "qemu=10.0");
    assert_eq!(
        line.to_blockdev_json().to_string(),
        r#"[{"driver":"file","node-name":"vda-file","filename":"/srv/a.img","read-only":false},{"driver":"raw","node-name":"vda-format","file":"vda-file","read-only":false}]"#
    );
    let argv: Vec<String> = serde_json::from_str(&line.to_json_argv().to_string()).unwrap();
    assert_eq!(argv, line.argv());
}

#[test]
fn huge_pages_are_a_memfd_of_their_size() {
    let mut domain = Domain {
        memory: Some(Bytes::gib(2)),
        ..Domain::default()
    };
    for (sizes, size) in [
        (vec![], ""),
        (vec![Bytes(2 << 20)], r#""hugetlbsize":2097152,"#),
        (
            vec![Bytes(1 << 30), Bytes(2 << 20)],
            r#""hugetlbsize":1073741824,"#,
        ),
    ] {
        let is_one = sizes.len() < 2;
        domain.memory_backing.huge_pages = Some(HugePages { page_sizes: sizes });
        let line = line(&domain, "qemu=10.0");
        let object = format!(
            r#"-object '{{"qom-type":"memory-backend-memfd","id":"memory","hugetlb":true,{size}"prealloc":true,"size":2147483648,"share":false}}'"#
        );
        assert!(line.to_shell().contains(&object), "{}", line.to_shell());
        assert_eq!(line.left_out.is_empty(), is_one);
    }
}
