//! Old targets, other machines, and controllers.

use vmdisk_model::*;

use super::{disks, line, problems, virtio};

#[test]
fn an_old_target_gets_the_key_value_form_where_it_has_no_json() {
    let mut disk = virtio("vda");
    disk.frontend.serial = Some("a,b".to_owned());
    disk.frontend.iothread = Some(IoThreadId(1));
    disk.backend.is_shareable = true;
    disk.backend.iotune = Some(Box::new(Iotune {
        iops: IotuneLimits {
            total: Some(100),
            total_max: Some(200),
            ..IotuneLimits::default()
        },
        ..Iotune::default()
    }));
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
fn a_daemon_is_reconnected_to_in_the_units_of_the_target() {
    let mut disk = virtio("vda");
    disk.backend.source = VhostUserSocket {
        path: "/run/a,b.sock".to_owned(),
        reconnect: Some(Switch::On),
        reconnect_timeout: Some(10),
        ..VhostUserSocket::new("")
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
