//! What guests see of their disks: options of devices, controllers, limits and the order of booting.

use vmdisk_model::*;
use vmdisk_qemu::{Options, write};

use super::{disks, line, problems, virtio};

/// The arguments of a command line that hold `part`.
fn holding(domain: &Domain, target: &str, part: &str) -> Vec<String> {
    let line = line(domain, target);
    let found = line.arguments.iter().map(|argument| argument.value.word());
    found
        .flatten()
        .map(|word| word.to_string())
        .filter(|word| word.contains(part))
        .collect()
}

#[test]
fn zero_is_unset_as_in_libvirt() {
    let mut disk = virtio("vda");
    disk.frontend.queues = Some(0);
    disk.frontend.queue_size = Some(0);
    disk.frontend.logical_block_size = Some(0);
    disk.frontend.physical_block_size = Some(0);
    let mut scsi = virtio("sda");
    scsi.frontend.bus = Some(TargetBus::Scsi);
    let mut domain = disks([disk, scsi]);
    domain.controllers = vec![Controller {
        queues: Some(0),
        scsi_model: Some(ScsiControllerModel::VirtioScsi),
        ..Controller::new(ControllerType::Scsi, 0)
    }];
    assert_eq!(
        holding(&domain, "qemu=7.2", "virtio-"),
        [
            r#"{"driver":"virtio-scsi-pci","id":"scsi0"}"#,
            r#"{"driver":"virtio-blk-pci","id":"vda","drive":"vda-format"}"#,
        ]
    );
}

#[test]
fn what_a_virtio_device_is_told_stands_on_it() {
    let mut disk = virtio("vda");
    disk.frontend.virtio = VirtioOptions {
        iommu: Some(Switch::On),
        ats: Some(Switch::Off),
        packed: Some(Switch::On),
        page_per_vq: Some(Switch::Off),
    };
    disk.frontend.ioeventfd = Some(Switch::Off);
    disk.frontend.event_idx = Some(Switch::On);
    disk.frontend.acpi_index = Some(3);
    disk.frontend.geometry = Some(Geometry {
        cylinders: Some(16383),
        heads: Some(16),
        sectors: Some(63),
        translation: None,
    });
    disk.frontend.statistics.intervals = vec![5, 60];
    let found = holding(&disks([disk.clone()]), "qemu=11.1", "virtio-blk-pci");
    assert_eq!(
        found,
        [
            r#"{"driver":"virtio-blk-pci","id":"vda","drive":"vda-format","iommu_platform":true,"ats":false,"packed":true,"page-per-vq":false,"ioeventfd":false,"event_idx":true,"acpi-index":3,"stats-intervals":[5,60],"cyls":16383,"heads":16,"secs":63}"#
        ]
    );
    let found = problems(&disks([disk.clone()]), "qemu=10.0");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].at, FieldPath::Disk(0, DiskField::Statistics));
    disk.frontend.statistics = Statistics::default();
    disk.frontend.bus = Some(TargetBus::Sata);
    let found = problems(&disks([disk]), "qemu=10.0");
    let fields: Vec<FieldPath> = found.iter().map(|problem| problem.at).collect();
    assert_eq!(
        fields,
        [
            DiskField::Iommu,
            DiskField::Ats,
            DiskField::Packed,
            DiskField::PagePerVq,
            DiskField::IoEventFd,
            DiskField::EventIdx,
            DiskField::AcpiIndex,
        ]
        .map(|field| FieldPath::Disk(0, field))
    );
}

#[test]
fn every_kind_of_address_is_where_the_device_sits() {
    let at = |address, bus| {
        let mut disk = virtio("vda");
        disk.frontend.bus = Some(bus);
        disk.frontend.address = Some(address);
        disk
    };
    let channel = at(
        Address::Ccw(CcwAddress {
            cssid: 0xfe,
            ssid: 0,
            devno: 0x1f,
        }),
        TargetBus::Virtio,
    );
    let found = holding(&disks([channel]), "qemu=10.0,arch=s390x", "virtio-blk-ccw");
    assert!(found[0].contains(r#""devno":"fe.0.001f""#), "{found:?}");
    let port = at(
        Address::Usb(UsbAddress {
            bus: 1,
            port: "1.2".to_owned(),
        }),
        TargetBus::Usb,
    );
    let found = holding(&disks([port]), "qemu=10.0", "usb-storage");
    assert!(
        found[0].contains(r#""bus":"usb1.0","port":"1.2""#),
        "{found:?}"
    );
    let slot = at(Address::VirtioMmio, TargetBus::Virtio);
    let found = holding(&disks([slot]), "qemu=10.0", "virtio-blk-device");
    assert_eq!(found.len(), 1);
    for (address, bus) in [
        (Address::Unassigned, TargetBus::Virtio),
        (Address::SpaprVio(0x2000), TargetBus::Virtio),
        (Address::VirtioMmio, TargetBus::Scsi),
        (Address::Ccw(CcwAddress::default()), TargetBus::Usb),
    ] {
        let found = problems(&disks([at(address, bus)]), "qemu=10.0");
        assert_eq!(
            found[0].at,
            FieldPath::Disk(0, DiskField::Address),
            "{found:?}"
        );
    }
}

#[test]
fn disks_share_the_limits_of_the_guests_groups_each_by_a_filter() {
    let group = |name: &str, iops| Iotune {
        iops: IotuneLimits {
            total: Some(iops),
            ..IotuneLimits::default()
        },
        group: Some(name.to_owned()),
        ..Iotune::default()
    };
    let mut disk = virtio("vda");
    disk.backend.throttle_filters = vec!["slow".to_owned(), "all".to_owned()];
    let mut domain = disks([disk, virtio("vdb")]);
    domain.throttle_groups = vec![group("slow", 100), group("all", 1000)];
    let found = holding(&domain, "qemu=10.0", "throttle");
    assert_eq!(
        found,
        [
            r#"{"qom-type":"throttle-group","id":"limits-slow","limits":{"iops-total":100}}"#,
            r#"{"qom-type":"throttle-group","id":"limits-all","limits":{"iops-total":1000}}"#,
            r#"{"driver":"throttle","node-name":"vda-limit0","throttle-group":"limits-slow","file":"vda-format","read-only":false}"#,
            r#"{"driver":"throttle","node-name":"vda-limit1","throttle-group":"limits-all","file":"vda-limit0","read-only":false}"#,
        ]
    );
    let device = holding(&domain, "qemu=10.0", "virtio-blk");
    assert!(device[0].contains(r#""drive":"vda-limit1""#), "{device:?}");

    let options = Options {
        target: "qemu=10.0".parse().unwrap(),
    };
    let line = write(&domain, &options).unwrap();
    let read = vmdisk_qemu::read(&line.to_shell()).unwrap();
    assert_eq!(read.problems, []);
    assert_eq!(read.domain.throttle_groups, domain.throttle_groups);
    let filters = |domain: &Domain| domain.disks[0].backend.throttle_filters.clone();
    assert_eq!(filters(&read.domain), filters(&domain));

    domain.disks[1].backend.throttle_filters = vec!["slwo".to_owned()];
    let found = problems(&domain, "qemu=10.0");
    assert_eq!(found[0].help.as_deref(), Some("did you mean 'slow'?"));
}

#[test]
fn the_machines_boot_order_becomes_that_of_the_first_disk_of_each_kind() {
    let mut cd = Disk::new(Frontend::new("sda", TargetBus::Sata), BackendSource::Empty);
    cd.frontend.device = Some(Device::Cdrom);
    let mut domain = disks([virtio("vdb"), virtio("vda"), cd]);
    domain.boot_devices = vec![BootDevice::Network, BootDevice::Cdrom, BootDevice::Disk];
    let order = |domain: &Domain| -> Vec<String> {
        holding(domain, "qemu=10.0", "bootindex")
            .iter()
            .map(|word| {
                let id = word.split("\"id\":\"").nth(1).unwrap();
                let index = word.split("\"bootindex\":").nth(1).unwrap();
                format!("{} {}", &id[..3], &index[..1])
            })
            .collect()
    };
    assert_eq!(order(&domain), ["vda 3", "sda 2"]);
    domain.disks[0].frontend.boot_order = Some(1);
    assert_eq!(order(&domain), ["vdb 1"]);
}

#[test]
fn event_loops_poll_and_have_pools_as_they_are_told() {
    let mut domain = disks([virtio("vda")]);
    let mut thread = IoThread::new(IoThreadId(1));
    thread.thread_pool_max = Some(8);
    thread.polling = Polling {
        max: Some(1000),
        grow: Some(2),
        shrink: Some(0),
    };
    domain.iothreads = vec![thread];
    domain.default_iothread = Some(DefaultIoThread {
        thread_pool_min: Some(1),
        thread_pool_max: None,
    });
    let object = |kind| holding(&domain, "qemu=10.0", kind);
    assert_eq!(
        object("iothread"),
        [
            r#"{"qom-type":"iothread","id":"iothread1","thread-pool-max":8,"poll-max-ns":1000,"poll-grow":2,"poll-shrink":0}"#
        ]
    );
    assert_eq!(
        object("main-loop"),
        [r#"{"qom-type":"main-loop","id":"main-loop","thread-pool-min":1}"#]
    );
    let found = problems(&domain, "qemu=7.0");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_usb2_controller_has_its_usb1_halves() {
    let usb = |model: &str, start_port| Controller {
        other_model: Some(model.to_owned()),
        start_port,
        ..Controller::new(ControllerType::Usb, 0)
    };
    let mut domain = disks([virtio("vda")]);
    domain.controllers = vec![
        usb("ich9-ehci1", None),
        usb("ich9-uhci1", Some(0)),
        usb("ich9-uhci2", Some(2)),
    ];
    assert_eq!(
        holding(&domain, "qemu=10.0", "usb"),
        [
            r#"{"driver":"ich9-usb-ehci1","id":"usb"}"#,
            r#"{"driver":"ich9-usb-uhci1","masterbus":"usb.0","firstport":0}"#,
            r#"{"driver":"ich9-usb-uhci2","masterbus":"usb.0","firstport":2}"#,
        ]
    );
    domain.controllers = vec![usb("qemu-xhci", None)];
    domain.controllers[0].ports = Some(8);
    let found = holding(&domain, "qemu=10.0", "xhci");
    assert!(found[0].contains(r#""p2":8,"p3":8"#), "{found:?}");
}

#[test]
fn what_a_transport_does_not_have_is_refused_on_it() {
    let mut disk = virtio("vda");
    disk.frontend.virtio.ats = Some(Switch::On);
    disk.frontend.ioeventfd = Some(Switch::On);
    let mut domain = disks([disk]);
    domain.machine = Some(MachineType::new("microvm"));
    domain.controllers = vec![Controller::virtio_scsi(0)];
    domain.controllers[0].virtio.page_per_vq = Some(Switch::On);
    let found = problems(&domain, "qemu=10.0");
    let fields: Vec<FieldPath> = found.iter().map(|problem| problem.at).collect();
    assert_eq!(
        fields,
        [
            FieldPath::Controller(0, ControllerField::PagePerVq),
            FieldPath::Disk(0, DiskField::Ats),
            FieldPath::Disk(0, DiskField::IoEventFd),
        ]
    );
}
