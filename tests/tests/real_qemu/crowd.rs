//! Guests with many disks, and all that is around them.

use serde_json::json;
use vmdisk_facts::Capability;
use vmdisk_model::*;
use vmdisk_qemu::{Argument, CommandLine, Options, QemuOption, WriteProblems, write};
use vmdisk_qmp::QemuProcess;
use vmdisk_tests::{QemuBuild, on_each_qemu};

use crate::agree::differences;
use crate::matrix::guest;
use crate::qemu::start_paused;
use crate::storage::Storage;

fn options(installed: &QemuBuild) -> Options {
    Options {
        target: installed.target(),
    }
}

/// Starts a guest and holds it against its command line.
fn start(installed: &QemuBuild, domain: &Domain) -> (QemuProcess, CommandLine) {
    let line = write(domain, &options(installed)).unwrap_or_else(|problems| panic!("{problems}"));
    let mut qemu = start_paused(installed, &line)
        .unwrap_or_else(|error| panic!("{error}\n{}", line.to_shell()));
    let differences = differences(&mut qemu, &line);
    assert!(
        differences.is_empty(),
        "{differences:#?}\n{}",
        line.to_shell()
    );
    (qemu, line)
}

/// `sda`, `sdb`, … `sdz`, `sdaa`.
fn target(prefix: &str, nth: usize) -> String {
    let letter = |nth: usize| char::from(b'a' + u8::try_from(nth).unwrap());
    match nth {
        0..26 => format!("{prefix}{}", letter(nth)),
        _ => format!("{prefix}{}{}", letter(nth / 26 - 1), letter(nth % 26)),
    }
}

/// A guest with this many disks of a bus.
fn crowd(storage: &Storage, domain: &Domain, bus: TargetBus, count: usize) -> Domain {
    let mut domain = domain.clone();
    for nth in 0..count {
        let path = storage.raw(&format!("{bus}{nth}.raw"), 1 << 20);
        let target = target(bus.target_prefix(), nth);
        domain.disks.push(Disk::new(
            Frontend::new(target, bus),
            Image::file(path, Format::Raw),
        ));
    }
    domain
}

fn with_scsi(machine: &str, model: ScsiControllerModel, count: u32) -> Domain {
    let mut domain = guest(machine);
    for index in 0..count {
        let mut controller = Controller::new(ControllerType::Scsi, index);
        controller.scsi_model = Some(model);
        domain.controllers.push(controller);
    }
    domain
}

#[test]
fn each_bus_takes_as_many_disks_as_qemu_does_and_one_more_is_refused_here() {
    on_each_qemu(
        "each bus takes as many disks as qemu does and one more is refused here",
        |installed| {
            let storage = Storage::new();
            for (machine, bus, most) in [
                ("q35", TargetBus::Virtio, 30),
                ("pc", TargetBus::Virtio, 30),
                ("pc", TargetBus::Ide, 4),
                ("pc", TargetBus::Fdc, 2),
            ] {
                let domain = |count| {
                    let mut domain = crowd(&storage, &guest(machine), bus, count);
                    if bus == TargetBus::Fdc {
                        for disk in &mut domain.disks {
                            disk.frontend.device = Some(Device::Floppy);
                        }
                    }
                    domain
                };
                start(installed, &domain(most));
                let WriteProblems(problems) =
                    write(&domain(most + 1), &options(installed)).unwrap_err();
                assert_eq!(problems.len(), 1, "{machine} {bus}: {problems:?}");
            }
        },
    );
}

#[test]
fn further_controllers_come_as_they_are_needed() {
    on_each_qemu("further controllers come as they are needed", |installed| {
        let storage = Storage::new();
        // The chipset's six ports, then an AHCI controller of its own.
        start(
            installed,
            &crowd(&storage, &guest("q35"), TargetBus::Sata, 8),
        );
        start(
            installed,
            &crowd(&storage, &guest("pc"), TargetBus::Sata, 8),
        );
        start(
            installed,
            &crowd(&storage, &guest("q35"), TargetBus::Usb, 6),
        );
        for model in [
            ScsiControllerModel::VirtioScsi,
            ScsiControllerModel::Lsilogic,
            ScsiControllerModel::Lsisas1068,
            ScsiControllerModel::Lsisas1078,
            ScsiControllerModel::Vmpvscsi,
            ScsiControllerModel::Dc390,
            ScsiControllerModel::Am53c974,
        ] {
            let domain = with_scsi("q35", model, 4);
            start(installed, &crowd(&storage, &domain, TargetBus::Scsi, 20));
        }
    });
}

#[test]
fn addresses_are_kept_and_the_rest_goes_around_them() {
    on_each_qemu(
        "addresses are kept and the rest goes around them",
        |installed| {
            let storage = Storage::new();
            for machine in ["q35", "pc"] {
                let mut domain = crowd(&storage, &guest(machine), TargetBus::Virtio, 8);
                let pci = |bus, slot, function| {
                    Some(Address::Pci(PciAddress {
                        bus,
                        slot,
                        function,
                        ..PciAddress::default()
                    }))
                };
                // The slot that QEMU would give to the first disk without an address.
                domain.disks[1].frontend.address = pci(0, 2, 0);
                domain.disks[2].frontend.address = pci(0, 5, 1);
                domain.disks[3].frontend.address = Some(Address::Pci(PciAddress {
                    slot: 5,
                    multifunction: Some(Switch::On),
                    ..PciAddress::default()
                }));
                domain.disks[4].frontend.address = pci(3, if machine == "pc" { 4 } else { 0 }, 0);
                domain.disks[5].frontend.address = pci(7, 1, 0);
                // QEMU wants function 0 first.
                domain.disks.swap(2, 3);
                start(installed, &domain);
            }
            let mut domain = crowd(
                &storage,
                &with_scsi("q35", ScsiControllerModel::VirtioScsi, 2),
                TargetBus::Scsi,
                4,
            );
            let drive = |controller, target, unit| {
                Some(Address::Drive(DriveAddress {
                    controller,
                    bus: 0,
                    target,
                    unit,
                }))
            };
            // The places that the two others would have by their names.
            domain.disks[0].frontend.address = drive(0, 0, 1);
            domain.disks[2].frontend.address = drive(1, 255, 16383);
            domain.disks[3].frontend.address = drive(0, 0, 0);
            start(installed, &domain);
        },
    );
}

#[test]
fn empty_drives_start_without_a_medium() {
    on_each_qemu("empty drives start without a medium", |installed| {
        for (machine, device, bus, target) in [
            ("q35", Device::Cdrom, TargetBus::Sata, "sda"),
            ("pc", Device::Cdrom, TargetBus::Ide, "hdc"),
            ("q35", Device::Cdrom, TargetBus::Scsi, "sda"),
            ("q35", Device::Cdrom, TargetBus::Usb, "sda"),
            ("q35", Device::Floppy, TargetBus::Fdc, "fda"),
        ] {
            let mut domain = guest(machine);
            let mut frontend = Frontend::new(target, bus);
            frontend.device = Some(device);
            frontend.boot_order = Some(1);
            domain.disks.push(Disk::new(frontend, BackendSource::Empty));
            start(installed, &domain);
        }
    });
}

#[test]
fn disks_of_a_throttle_group_share_its_limits() {
    on_each_qemu("disks of a throttle group share its limits", |installed| {
        let storage = Storage::new();
        let mut domain = crowd(&storage, &guest("q35"), TargetBus::Virtio, 3);
        for disk in &mut domain.disks[..2] {
            disk.backend.iotune = Some(Box::new(Iotune {
                iops: IotuneLimits {
                    total: Some(200),
                    ..IotuneLimits::default()
                },
                group: Some("gold, \"fast\"".to_owned()),
                ..Iotune::default()
            }));
        }
        let (_, line) = start(installed, &domain);
        let of_iotune = |argument: &&Argument| {
            argument.option == QemuOption::Object
                && argument.origin == FieldPath::Disk(0, DiskField::Iotune)
        };
        let groups = line.arguments.iter().filter(of_iotune).count();
        assert_eq!(groups, 1);
        let other = domain.disks[1].backend.iotune.as_mut().unwrap();
        other.iops.total = Some(300);
        assert!(write(&domain, &options(installed)).is_err());
    });
}

#[test]
fn the_machine_around_the_disks_is_as_written() {
    on_each_qemu("the machine around the disks is as written", |installed| {
        let mut domain = guest("q35");
        domain.vcpus = Some(3);
        domain.memory = Some(Bytes((96 << 20) + 1));
        domain.iothreads.push(IoThread::new(IoThreadId(1)));
        let mut second = IoThread::new(IoThreadId(7));
        if installed
            .target()
            .can(Capability::IothreadThreadPool)
            .is_yes()
        {
            second.thread_pool_min = Some(2);
            second.thread_pool_max = Some(8);
        }
        domain.iothreads.push(second);
        let (mut qemu, _) = start(installed, &domain);
        let cpus = qemu.ask("query-cpus-fast", json!({})).unwrap();
        assert_eq!(cpus.as_array().unwrap().len(), 3);
        let memory = qemu.ask("query-memory-size-summary", json!({})).unwrap();
        assert_eq!(memory["base-memory"], json!((96 << 20) + 8192));
        let threads = qemu.ask("query-iothreads", json!({})).unwrap();
        assert_eq!(threads.as_array().unwrap().len(), 2);

        for (access, source, share, kind) in [
            (
                Some(MemoryAccess::Shared),
                None,
                true,
                "memory-backend-memfd",
            ),
            (
                None,
                Some(MemorySource::Memfd),
                false,
                "memory-backend-memfd",
            ),
            (
                Some(MemoryAccess::Shared),
                Some(MemorySource::File),
                true,
                "memory-backend-file",
            ),
        ] {
            domain.memory_backing.access = access;
            domain.memory_backing.source = source;
            let (mut qemu, _) = start(installed, &domain);
            let seen = qemu.property("/objects/memory", "share").unwrap();
            assert_eq!(seen, json!(share));
            assert_eq!(qemu.property("/objects/memory", "type").unwrap(), kind);
        }
    });
}

#[test]
fn queues_are_mapped_to_iothreads_where_qemu_can() {
    on_each_qemu(
        "queues are mapped to iothreads where qemu can",
        |installed| {
            let storage = Storage::new();
            let row = |id, queues| IoThreadQueues {
                iothread: IoThreadId(id),
                queues,
            };
            let mut on_disk = crowd(&storage, &guest("q35"), TargetBus::Virtio, 1);
            on_disk.disks[0].frontend.queues = Some(4);
            on_disk.disks[0].frontend.iothread_mapping =
                vec![row(1, vec![0, 3]), row(2, vec![1, 2])];
            let mut on_controller = crowd(
                &storage,
                &with_scsi("q35", ScsiControllerModel::VirtioScsi, 1),
                TargetBus::Scsi,
                1,
            );
            on_controller.controllers[0].queues = Some(4);
            // Without queues QEMU deals them out.
            on_controller.controllers[0].iothread_mapping = vec![row(1, vec![]), row(2, vec![])];
            for (mut domain, capability) in [
                (on_disk, Capability::IothreadVqMappingBlk),
                (on_controller, Capability::IothreadVqMappingScsi),
            ] {
                domain.iothreads.push(IoThread::new(IoThreadId(1)));
                domain.iothreads.push(IoThread::new(IoThreadId(2)));
                if installed.target().can(capability).is_yes() {
                    start(installed, &domain);
                } else {
                    let WriteProblems(problems) = write(&domain, &options(installed)).unwrap_err();
                    assert!(problems[0].message.contains("needs QEMU"), "{problems:?}");
                }
            }
        },
    );
}

#[test]
fn a_vhost_user_backend_is_connected_to_and_maps_the_memory() {
    on_each_qemu(
        "a vhost user backend is connected to and maps the memory",
        |installed| {
            let storage = Storage::new();
            let socket = storage.path("vhost, user.sock");
            let image = storage.raw("a.raw", 16 << 20);
            let Some(_daemon) = crate::storage::Daemon::start(installed, &image, &socket) else {
                eprintln!("skipped: qemu-storage-daemon does not start");
                return;
            };
            let mut disk = Disk::new(
                Frontend::new("vda", TargetBus::Virtio),
                VhostUserSocket {
                    path: socket,
                    reconnect: Some(Switch::On),
                    reconnect_timeout: Some(5),
                    ..VhostUserSocket::new("")
                },
            );
            disk.frontend.queues = Some(2);
            disk.frontend.queue_size = Some(512);
            disk.frontend.boot_order = Some(1);
            let mut domain = guest("q35");
            domain.disks.push(disk);
            assert!(
                write(&domain, &options(installed)).is_err(),
                "with private memory the guest would hang"
            );
            domain.memory_backing.access = Some(MemoryAccess::Shared);
            let (mut qemu, _) = start(installed, &domain);
            let chardevs = qemu.ask("query-chardev", json!({})).unwrap();
            let ours = chardevs
                .as_array()
                .unwrap()
                .iter()
                .find(|chardev| chardev["label"] == "socket-vda")
                .unwrap();
            assert_eq!(ours["frontend-open"], json!(true), "{ours}");
        },
    );
}
