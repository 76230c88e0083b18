//! The real libvirt and libxml2, where they are installed: what is written is valid and defined as it
//! was meant, and what is refused here is refused there.
//!
//! `VMDISK_REAL=require` makes a missing tool a failure instead of a line of output.
// A test may start programs, look at files and print; the crate may not.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stdout
)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::xml_rules::{edits_of, findings};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use vmdisk_libvirt::{ReadFailureKind, Unmodeled, read, write_domain};
use vmdisk_model::*;
use vmdisk_testing::{installed, libvirt_driver, needed};

fn text_of(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The version of the installed libvirt.
fn libvirt_version() -> (u32, u32) {
    let output = Command::new("virsh").arg("--version").output().unwrap();
    let text = text_of(&output);
    let mut numbers = text.trim().split('.').map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// A guest that libvirt's QEMU driver can define without KVM.
fn guest(name: &str) -> Domain {
    Domain {
        name: Some(name.to_owned()),
        domain_type: Some(DomainType::Qemu),
        architecture: Some(Architecture::X86_64),
        machine: Some(MachineType::new("q35")),
        vcpus: Some(4),
        memory: Some(Bytes::gib(1)),
        ..Domain::default()
    }
}

/// `vda`, `vdb`, … `vdz`, `vdaa`, …
fn target(prefix: &str, mut nth: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(b'a' + (nth % 26) as u8);
        nth /= 26;
        if nth == 0 {
            break;
        }
        nth -= 1;
    }
    letters.reverse();
    format!("{prefix}{}", String::from_utf8(letters).unwrap())
}

/// One disk for each value of each option, as far as libvirt takes it alone.
fn disks_of_every_kind(version: (u32, u32)) -> Vec<Disk> {
    let mut disks: Vec<Disk> = Vec::new();
    let mut add = |change: &dyn Fn(&mut Disk)| {
        let name = target("vd", disks.len());
        let image = Image::file(format!("/srv/it's <{name}> & \"co\".qcow2"), Format::Qcow2);
        let mut disk = Disk::new(Frontend::new(name, TargetBus::Virtio), image);
        disk.frontend.device = Some(Device::Disk);
        change(&mut disk);
        disks.push(disk);
    };
    for cache in CacheMode::ALL {
        add(&|disk| disk.backend.cache = Some(*cache));
    }
    for aio in AioMode::ALL {
        add(&|disk| {
            disk.backend.aio = Some(*aio);
            disk.backend.cache = Some(CacheMode::None);
        });
    }
    for discard in Discard::ALL {
        add(&|disk| disk.backend.discard = Some(*discard));
    }
    for detect in DetectZeroes::ALL {
        add(&|disk| {
            disk.backend.detect_zeroes = Some(*detect);
            disk.backend.discard = Some(Discard::Unmap);
        });
    }
    for policy in ErrorPolicy::ALL {
        add(&|disk| disk.frontend.error_policy = Some(*policy));
    }
    for policy in ReadErrorPolicy::ALL {
        add(&|disk| disk.frontend.read_error_policy = Some(*policy));
    }
    for switch in Switch::ALL {
        add(&|disk| disk.backend.copy_on_read = Some(*switch));
        if version >= (9, 5) {
            add(&|disk| disk.backend.discard_no_unref = Some(*switch));
        }
    }
    for model in VirtioModel::ALL {
        add(&|disk| disk.frontend.model = Some(*model));
    }
    add(&|disk| {
        disk.frontend.queues = Some(4);
        disk.frontend.queue_size = Some(256);
        disk.frontend.iothread = Some(IoThreadId(2));
        disk.frontend.boot_order = Some(1);
        disk.frontend.serial = Some("web1 data_+.-".to_owned());
        disk.frontend.alias = Some("ua-data".to_owned());
        disk.backend.metadata_cache_size = Some(Bytes(4 << 20));
    });
    add(&|disk| {
        disk.frontend.logical_block_size = Some(512);
        disk.frontend.physical_block_size = Some(4096);
        if version >= (9, 8) {
            disk.frontend.discard_granularity = Some(4096);
        }
    });
    if version >= (10, 0) {
        add(&|disk| {
            let row = |id, queues: &[u32]| IoThreadQueues {
                iothread: IoThreadId(id),
                queues: queues.to_vec(),
            };
            disk.frontend.queues = Some(2);
            disk.frontend.iothread_mapping = vec![row(1, &[0]), row(2, &[1])];
        });
    }
    add(&|disk| {
        disk.frontend.virtio = VirtioOptions {
            iommu: Some(Switch::On),
            ats: Some(Switch::Off),
            packed: Some(Switch::On),
            page_per_vq: Some(Switch::On),
        };
        disk.frontend.ioeventfd = Some(Switch::On);
        disk.frontend.event_idx = Some(Switch::Off);
        disk.frontend.acpi_index = Some(7);
        disk.frontend.geometry = Some(Geometry {
            cylinders: Some(16383),
            heads: Some(16),
            sectors: Some(63),
            translation: None,
        });
    });
    for snapshot in Snapshot::ALL {
        add(&|disk| disk.backend.snapshot = Some(*snapshot));
    }
    if version >= (11, 2) {
        add(&|disk| disk.backend.throttle_filters = vec!["slow".to_owned(), "all".to_owned()]);
    }
    if version >= (11, 9) {
        add(&|disk| disk.frontend.statistics.intervals = vec![5, 60]);
    }
    add(&|disk| disk.backend.is_read_only = true);
    add(&|disk| {
        disk.backend.is_shareable = true;
        disk.backend.cache = Some(CacheMode::None);
        disk.backend.source = Image::host_device("/dev/vg0/shared").into();
    });
    add(&|disk| disk.backend.is_transient = true);
    add(&|disk| {
        let limits = IotuneLimits {
            total: Some(1_000_000),
            total_max: Some(2_000_000),
            total_max_length: Some(5),
            ..IotuneLimits::default()
        };
        disk.backend.iotune = Some(Box::new(Iotune {
            bytes: limits,
            iops: IotuneLimits {
                read: Some(100),
                write: Some(50),
                ..IotuneLimits::default()
            },
            size_iops: Some(4096),
            group: Some("slow".to_owned()),
        }));
    });
    add(&|disk| {
        let mut base = Image::host_device("/dev/vg0/base");
        base.backing = Backing::Terminated;
        let mut middle = Image::file("/srv/middle.qcow2", Format::Qcow2);
        middle.backing = Backing::Image(Box::new(base));
        let mut top = Image::file("/srv/top.qcow2", Format::Qcow2);
        top.backing = Backing::Image(Box::new(middle));
        disk.backend.source = top.into();
    });
    add(&|disk| {
        disk.backend.source = VhostUserSocket {
            path: "/run/vhost.sock".to_owned(),
            reconnect: Some(Switch::On),
            reconnect_timeout: Some(10),
            ..VhostUserSocket::new("")
        }
        .into();
        // What libvirt would say itself.
        disk.backend.snapshot = Some(Snapshot::No);
    });
    disks
}

/// Disks on other buses than virtio.
fn disks_of_every_bus() -> Vec<Disk> {
    let image = |nth: usize| Image::file(format!("/srv/bus{nth}.img"), Format::Raw);
    let mut cdrom = Disk::new(Frontend::new("sdc", TargetBus::Sata), BackendSource::Empty);
    cdrom.frontend.device = Some(Device::Cdrom);
    cdrom.backend.is_read_only = true;
    let mut scsi = Disk::new(Frontend::new("sda", TargetBus::Scsi), image(0));
    scsi.frontend.vendor = Some("ACME".to_owned());
    scsi.frontend.product = Some("A disk & more".to_owned());
    scsi.frontend.wwn = Some("5000c50015ea71aa".to_owned());
    scsi.frontend.rotation_rate = Some(7200);
    scsi.frontend.address = Some(Address::Drive(DriveAddress {
        controller: 1,
        bus: 0,
        target: 0,
        unit: 3,
    }));
    let mut lun = Disk::new(
        Frontend::new("sde", TargetBus::Scsi),
        Image::host_device("/dev/sg9"),
    );
    lun.frontend.device = Some(Device::Lun);
    lun.frontend.rawio = Some(Switch::On);
    lun.frontend.sgio = Some(Sgio::Filtered);
    let mut usb = Disk::new(Frontend::new("sdd", TargetBus::Usb), image(1));
    usb.frontend.removable = Some(Switch::On);
    usb.frontend.address = Some(Address::Usb(UsbAddress {
        bus: 0,
        port: "2".to_owned(),
    }));
    let mut pci = Disk::new(Frontend::new("vda", TargetBus::Virtio), image(2));
    pci.frontend.address = Some(Address::Pci(PciAddress {
        domain: 0,
        bus: 5,
        slot: 0,
        function: 0,
        multifunction: None,
    }));
    let sata = Disk::new(Frontend::new("sdb", TargetBus::Sata), image(3));
    let mut floppy = Disk::new(Frontend::new("fda", TargetBus::Fdc), BackendSource::Empty);
    floppy.frontend.device = Some(Device::Floppy);
    floppy.frontend.tray = Some(Tray::Open);
    let mut disks = vec![cdrom, scsi, lun, usb, pci, sata, floppy];
    for disk in &mut disks {
        disk.frontend.device.get_or_insert(Device::Disk);
    }
    disks
}

/// Whole guests that libvirt takes.
fn guests(version: (u32, u32)) -> Vec<Domain> {
    let mut every_kind = guest("kinds");
    every_kind.disks = disks_of_every_kind(version);
    every_kind.memory_backing.source = Some(MemorySource::Memfd);
    every_kind.memory_backing.access = Some(MemoryAccess::Shared);
    let mut pooled = IoThread::new(IoThreadId(2));
    pooled.is_listed = true;
    pooled.thread_pool_min = Some(2);
    pooled.thread_pool_max = Some(8);
    if version >= (9, 4) {
        pooled.polling.max = Some(1000);
        pooled.polling.grow = Some(2);
        pooled.polling.shrink = Some(0);
    }
    every_kind.default_iothread = Some(DefaultIoThread {
        thread_pool_min: Some(1),
        thread_pool_max: Some(16),
    });
    if version >= (11, 2) {
        let group = |name: &str| Iotune {
            group: Some(name.to_owned()),
            size_iops: Some(4096),
            ..Iotune::default()
        };
        every_kind.throttle_groups = vec![group("slow"), group("all")];
    }
    every_kind.iothreads = vec![pooled, IoThread::new(IoThreadId(1))];

    let mut buses = guest("buses & 'quotes'");
    buses.disks = disks_of_every_bus();
    buses.boot_devices = vec![BootDevice::Cdrom, BootDevice::Disk, BootDevice::Network];
    buses.blkiotune = Some(Blkiotune {
        weight: Some(500),
        devices: vec![BlkioDevice {
            path: Some("/dev/sda".to_owned()),
            weight: Some(100),
            read_iops_sec: Some(200),
            write_iops_sec: Some(300),
            read_bytes_sec: Some(1 << 33),
            write_bytes_sec: None,
        }],
    });
    let mut first = Controller::virtio_scsi(0);
    first.queues = Some(4);
    first.ioeventfd = Some(Switch::On);
    first.virtio.packed = Some(Switch::On);
    first.acpi_index = Some(9);
    let mut second = Controller::virtio_scsi(1);
    second.cmd_per_lun = Some(64);
    second.max_sectors = Some(512);
    second.iothread = Some(IoThreadId(1));
    buses.controllers = vec![first, second];
    buses.iothreads = vec![IoThread::new(IoThreadId(1))];

    let mut cells = guest("cells");
    cells.vcpus = Some(5);
    cells.memory = Some(Bytes(3 << 30));
    cells.memory_backing.huge_pages = Some(HugePages::default());
    cells.memory_backing.cell_access = vec![Some(MemoryAccess::Shared), None];
    vec![guest("plain"), every_kind, buses, cells]
}

#[test]
fn written_guests_satisfy_libvirts_schema() {
    let programs = installed("virt-xml-validate").and_then(|()| installed("virsh"));
    if needed(programs).is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for domain in guests(libvirt_version()) {
        let text = write_domain(&domain, &Unmodeled::default()).unwrap();
        let file = directory.path().join("guest.xml");
        std::fs::write(&file, &text).unwrap();
        let output = Command::new("virt-xml-validate")
            .arg(&file)
            .arg("domain")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}{text}", text_of(&output));
    }
}

/// Runs commands in libvirt's QEMU driver, in a directory of its own and without a daemon.
fn virsh(root: &Path, commands: &str) -> String {
    let output = Command::new("virsh")
        .args(["--quiet", "-c"])
        .arg(format!("qemu:///embed?root={}", root.display()))
        .arg(commands)
        .output()
        .unwrap();
    assert!(output.status.success(), "{commands}\n{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What libvirt makes of a definition.
fn defined(root: &Path, text: &str) -> String {
    let file = root.join("guest.xml");
    std::fs::write(&file, text).unwrap();
    let name = read(text).unwrap().domain.name.unwrap();
    let file = file.display();
    let commands = format!("define {file}; dumpxml --inactive \"{name}\"; undefine \"{name}\"");
    let output = virsh(root, &commands);
    let start = output.find("<domain").unwrap();
    let end = output.find("</domain>").unwrap() + "</domain>".len();
    output[start..end].to_owned()
}

/// One test for all, because libvirt takes long to look at each QEMU it has not seen yet.
#[test]
fn libvirt_defines_what_is_written_as_it_was_meant() {
    let root = tempfile::tempdir().unwrap();
    // Under its usual user QEMU could neither enter the directory nor open /dev/kvm, and libvirt
    // would ask it anew, for seconds, before each step.
    std::fs::create_dir(root.path().join("etc")).unwrap();
    let settings = "user = \"root\"\ngroup = \"root\"\n";
    std::fs::write(root.path().join("etc/qemu.conf"), settings).unwrap();
    if needed(libvirt_driver(root.path())).is_none() {
        return;
    }
    for domain in guests(libvirt_version()) {
        assert_defined_as_meant(root.path(), &domain);
    }
    assert_undeclared_prefix_is_dropped(root.path());
    assert_resolved_as_libvirt_does(root.path());
}

/// Guests with much left open, the same in every run: machines, names, buses, addresses, controllers.
fn open_guests() -> Vec<String> {
    let mut state = 20_u32;
    let mut next = |below: u32| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state % below
    };
    let mut guests = Vec::new();
    for nth in 0..40 {
        let is_q35 = next(2) == 0;
        let mut devices = String::new();
        let mut names = BTreeSet::new();
        for disk in 0..1 + next(6) {
            let number = next(9) as usize;
            let (prefix, bus) = match next(if is_q35 { 8 } else { 10 }) {
                0 | 1 => ("sd", ""),
                2 => ("sd", " bus='scsi'"),
                3 | 4 => ("sd", " bus='sata'"),
                5 => ("sd", " bus='usb'"),
                6 => ("vd", " bus='scsi'"),
                7 => ("vd", ""),
                _ => ("hd", ""),
            };
            let number = if prefix == "hd" { number % 4 } else { number };
            let name = target(prefix, number);
            if !names.insert(name.clone()) {
                continue;
            }
            let address = match next(6) {
                0 if bus == " bus='scsi'" => {
                    let controller = next(3);
                    format!("<address type='drive' controller='{controller}' unit='{number}'/>")
                }
                _ => String::new(),
            };
            let driver = match next(3) {
                0 => "<driver name='qemu'/>",
                1 => "<driver name='qemu' type='qcow2'/>",
                _ => "",
            };
            let device = match next(4) {
                0 if bus != " bus='usb'" && prefix != "vd" => " device='cdrom'",
                _ => "",
            };
            devices.push_str(&format!(
                "<disk type='file'{device}>{driver}<source file='/srv/{nth}-{disk}'/>\
                 <target dev='{name}'{bus}/>{address}</disk>"
            ));
        }
        for _ in 0..next(3) {
            let index = match next(3) {
                0 => String::new(),
                _ => format!(" index='{}'", next(3)),
            };
            let model = match next(3) {
                0 => "",
                1 => " model='virtio-scsi'",
                _ => " model='lsisas1068'",
            };
            devices.push_str(&format!("<controller type='scsi'{index}{model}/>"));
        }
        if next(4) == 0 {
            devices.push_str("<controller type='usb'/>");
        }
        let machine = if is_q35 { "q35" } else { "pc" };
        guests.push(format!(
            "<domain type='qemu'><name>open{nth}</name><memory>65536</memory>\
             <os><type arch='x86_64' machine='{machine}'>hvm</type></os><devices>{devices}</devices></domain>"
        ));
    }
    guests
}

/// What libvirt makes of each guest is what we make of it, and what it refuses we call a conflict.
fn assert_resolved_as_libvirt_does(root: &Path) {
    let (mut same, mut refused) = (0, 0);
    for text in open_guests() {
        let document = read(&text).unwrap();
        let resolved = vmdisk_libvirt::resolve(&document.domain, &document.kept);
        let file = root.join("open.xml");
        std::fs::write(&file, &text).unwrap();
        let name = document.domain.name.unwrap();
        let output = Command::new("virsh")
            .args(["--quiet", "-c"])
            .arg(format!("qemu:///embed?root={}", root.display()))
            .arg(format!(
                "define {}; dumpxml --inactive {name}; undefine {name}",
                file.display()
            ))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            resolved.conflicts.is_empty(),
            output.status.success(),
            "{:?}\n{}{text}",
            resolved.conflicts,
            text_of(&output)
        );
        if !output.status.success() {
            refused += 1;
            continue;
        }
        let end = said.find("</domain>").unwrap() + "</domain>".len();
        let defined = read(&said[said.find("<domain").unwrap()..end]).unwrap();
        assert_eq!(
            outline(&resolved.domain),
            outline(&defined.domain),
            "{text}\n{said}"
        );
        same += 1;
    }
    println!("{same} guests are resolved as libvirt does it, {refused} are refused by both");
    assert!(same > 15 && refused > 2, "{same} same, {refused} refused");
}

/// What is resolved of a guest, in an order of its own.
fn outline(domain: &Domain) -> Vec<String> {
    let disk = |disk: &Disk| {
        let Frontend {
            device,
            target,
            bus,
            address,
            ..
        } = &disk.frontend;
        let place = match address {
            Some(Address::Drive(place)) => Some(*place),
            _ => None,
        };
        let format = disk.backend.image().and_then(|image| image.format);
        let is_read_only = disk.backend.is_read_only;
        format!("{target:?} {device:?} {bus:?} {place:?} {format:?} {is_read_only}")
    };
    let controller = |controller: &Controller| {
        let Controller {
            controller_type,
            index,
            scsi_model,
            other_model,
            ..
        } = controller;
        format!("{controller_type} {index:?} {scsi_model:?} {other_model:?}")
    };
    let mut lines: Vec<String> = domain.disks.iter().map(disk).collect();
    lines.extend(domain.controllers.iter().map(controller));
    lines.sort();
    lines
}

fn assert_defined_as_meant(root: &Path, domain: &Domain) {
    let text = write_domain(domain, &Unmodeled::default()).unwrap();
    let dumped = defined(root, &text);
    let document = read(&dumped).unwrap();
    assert_eq!(document.problems, [], "{dumped}");
    let mut defined = document.domain;
    assert_eq!(defined.name, domain.name);
    let size = |domain: &Domain| (domain.vcpus, domain.memory);
    assert_eq!(size(&defined), size(domain));
    assert_eq!(defined.memory_backing, domain.memory_backing, "{dumped}");
    assert_eq!(defined.disks.len(), domain.disks.len());
    defined.disks.sort_by(|a, b| a.name().cmp(b.name()));
    let mut meant = domain.disks.clone();
    meant.sort_by(|a, b| a.name().cmp(b.name()));
    for (defined, meant) in defined.disks.iter().zip(&mut meant) {
        // libvirt gives every disk an address.
        assert!(defined.frontend.address.is_some());
        if meant.frontend.address.is_none() {
            meant.frontend.address.clone_from(&defined.frontend.address);
        }
        assert_eq!(defined, meant, "{text}\n{dumped}");
    }
    let tuned = |domain: &Domain| (domain.blkiotune.clone(), domain.throttle_groups.clone());
    assert_eq!(tuned(&defined), tuned(domain), "{dumped}");
    assert_eq!(
        defined.default_iothread, domain.default_iothread,
        "{dumped}"
    );
    if !domain.boot_devices.is_empty() {
        assert_eq!(defined.boot_devices, domain.boot_devices, "{dumped}");
    }
    for meant in &domain.controllers {
        let controller = defined.controllers.iter().find(|controller| {
            (controller.controller_type, controller.index) == (meant.controller_type, meant.index)
        });
        let mut controller = controller.unwrap().clone();
        controller.address.clone_from(&meant.address);
        assert_eq!(&controller, meant, "{dumped}");
    }
    let mut threads = defined.iothreads;
    threads.sort_by_key(|thread| thread.id);
    let mut meant = domain.iothreads.clone();
    meant.sort_by_key(|thread| thread.id);
    // libvirt lists all of them as soon as one has an option.
    for (thread, meant) in threads.iter_mut().zip(&meant) {
        thread.is_listed = meant.is_listed;
    }
    assert_eq!(threads, meant, "{dumped}");
}

/// What the reader says about undeclared prefixes is true, and its fix is one.
fn assert_undeclared_prefix_is_dropped(root: &Path) {
    let text = write_domain(&guest("prefixed"), &Unmodeled::default()).unwrap();
    let element = "<qemu:commandline><qemu:arg value='-nodefaults'/></qemu:commandline></domain>";
    let text = text.replace("</domain>", element);
    let findings = findings(&text);
    assert_eq!(findings.len(), 1);
    let fixed = vmdisk_source::apply_edits(&text, edits_of(&findings[0])).unwrap();
    assert!(!defined(root, &text).contains("qemu:arg"));
    assert!(defined(root, &fixed).contains("qemu:arg"), "{fixed}");
}

/// True if libxml2 takes a text for well-formed.
fn libxml2_accepts(text: &str) -> bool {
    let mut child = Command::new("xmllint")
        .args(["--noout", "--nonet", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    child.wait().unwrap().success()
}

#[test]
fn what_libxml2_refuses_is_refused_here_and_the_other_way_round() {
    if needed(installed("xmllint")).is_none() {
        return;
    }
    const PIECES: &[&str] = &[
        "<a>",
        "</a>",
        "<b c='d'>",
        "</b>",
        "<e/>",
        "<a",
        ">",
        "/>",
        " f='g'",
        " f=\"g\"",
        " h",
        " i=j",
        "='",
        "'",
        "\"",
        "<",
        "&",
        "&amp;",
        "&#65;",
        "&#x0;",
        "&#1;",
        "&k;",
        "<!-- l -->",
        "<!--",
        "-->",
        "--",
        "<![CDATA[",
        "]]>",
        "<?m n?>",
        "<?xml version='1.0'?>",
        "é",
        "text",
        "\u{1}",
        "\u{b}",
        "\u{fffe}",
        " ",
        "\n",
        "\t",
        "<1>",
        "<-o/>",
        "<_p/>",
        "<q.r-s/>",
    ];
    let mut runner = TestRunner::deterministic();
    let loose = proptest::collection::vec(proptest::sample::select(PIECES), 1..7);
    let mut checked = [0, 0];
    for nth in 0..1500 {
        let mut text = loose.new_tree(&mut runner).unwrap().current().concat();
        // Loose pieces are hardly ever a document, so that most are put into one.
        if nth % 4 != 0 {
            text = format!("<a>{text}</a>");
        }
        let is_refused = match read(&text) {
            Ok(_) => false,
            Err(failure) => match failure.kind {
                ReadFailureKind::Malformed => true,
                ReadFailureKind::NotADomainOrDisk(_) => false,
                ReadFailureKind::Encoding
                | ReadFailureKind::TooLarge
                | ReadFailureKind::DocumentType => continue,
            },
        };
        checked[usize::from(is_refused)] += 1;
        assert_eq!(is_refused, !libxml2_accepts(&text), "{text:?}");
    }
    assert!(checked.iter().all(|count| *count > 100), "{checked:?}");
}
