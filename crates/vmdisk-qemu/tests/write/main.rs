//! Command lines as they are written, for targets old and new.

mod frontend;
mod network;
mod refusal;
mod target;

use vmdisk_model::*;
use vmdisk_qemu::{CommandLine, Options, WriteProblem, write};

pub(crate) type Change = fn(&mut Disk);

pub(crate) fn options(target: &str) -> Options {
    Options {
        target: target.parse().expect("the tests name targets that exist"),
    }
}

pub(crate) fn virtio(target: &str) -> Disk {
    Disk::new(
        Frontend::new(target, TargetBus::Virtio),
        Image::file("/srv/a.img", Format::Raw),
    )
}

pub(crate) fn disks(disks: impl IntoIterator<Item = Disk>) -> Domain {
    Domain {
        scope: Scope::DisksOnly,
        disks: disks.into_iter().collect(),
        ..Domain::default()
    }
}

pub(crate) fn line(domain: &Domain, target: &str) -> CommandLine {
    write(domain, &options(target)).unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) fn problems(domain: &Domain, target: &str) -> Vec<WriteProblem> {
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

#[test]
fn a_failed_read_is_treated_like_a_failed_write_unless_said() {
    for (write, read, words) in [
        (None, None, (None, None)),
        (Some(ErrorPolicy::Stop), None, (Some("stop"), Some("stop"))),
        (Some(ErrorPolicy::Enospace), None, (Some("enospc"), None)),
        (
            Some(ErrorPolicy::Stop),
            Some(ReadErrorPolicy::Report),
            (Some("stop"), Some("report")),
        ),
        (None, Some(ReadErrorPolicy::Ignore), (None, Some("ignore"))),
    ] {
        let mut disk = virtio("vda");
        disk.frontend.error_policy = write;
        disk.frontend.read_error_policy = read;
        let line = line(&disks([disk]), "qemu=10.0");
        let device = line.arguments.last().unwrap();
        let written = (device.property("werror"), device.property("rerror"));
        assert_eq!(
            (written.0.as_deref(), written.1.as_deref()),
            words,
            "{write:?} {read:?}"
        );
    }
}
