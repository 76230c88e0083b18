//! What guests have around their disks: shared limits, event loops, controllers, addresses, an order of booting.

use vmdisk_model::*;
use vmdisk_qemu::{Options, write};
use vmdisk_tests::on_each_qemu;

use crate::agree::differences;
use crate::matrix::guest;
use crate::qemu::start_paused;
use crate::storage::Storage;

fn disk(target: &str, bus: TargetBus, path: &str) -> Disk {
    Disk::new(Frontend::new(target, bus), Image::file(path, Format::Raw))
}

/// Guests by name; `version` is that of the QEMU that is to run them.
fn guests(storage: &Storage, version: (u32, u32)) -> Vec<(&'static str, Domain)> {
    let path = |name: &str| storage.raw(name, 16 << 20);
    let mut guests = Vec::new();

    let mut shared = guest("q35");
    let group = |name: &str, total| Iotune {
        bytes: IotuneLimits {
            total: Some(total),
            total_max: Some(2 * total),
            ..IotuneLimits::default()
        },
        group: Some(name.to_owned()),
        ..Iotune::default()
    };
    shared.throttle_groups = vec![
        group("one", 1 << 20),
        group("all,\"", 8 << 20),
        group("idle", 1),
    ];
    let mut first = disk("vda", TargetBus::Virtio, &path("one.raw"));
    first.backend.throttle_filters = vec!["one".to_owned(), "all,\"".to_owned()];
    first.backend.cache = Some(CacheMode::None);
    first.backend.discard = Some(Discard::Unmap);
    let mut second = disk("sda", TargetBus::Sata, &path("two.raw"));
    second.backend.throttle_filters = vec!["all,\"".to_owned()];
    shared.disks = vec![first, second];
    guests.push(("shared limits", shared));

    let mut loops = guest("q35");
    let mut thread = IoThread::new(IoThreadId(3));
    thread.polling = Polling {
        max: Some(16384),
        grow: Some(2),
        shrink: Some(4),
    };
    if version >= (7, 1) {
        thread.thread_pool_min = Some(1);
        thread.thread_pool_max = Some(8);
        loops.default_iothread = Some(DefaultIoThread {
            thread_pool_min: Some(2),
            thread_pool_max: Some(16),
        });
    }
    loops.iothreads = vec![thread];
    let mut looped = disk("vda", TargetBus::Virtio, &path("loop.raw"));
    looped.frontend.iothread = Some(IoThreadId(3));
    loops.disks = vec![looped];
    guests.push(("event loops", loops));

    let mut usb = guest("q35");
    let controller = |model: &str, index, start_port| Controller {
        other_model: Some(model.to_owned()),
        start_port,
        ..Controller::new(ControllerType::Usb, index)
    };
    usb.controllers = vec![
        controller("ich9-ehci1", 0, None),
        controller("ich9-uhci1", 0, Some(0)),
        controller("ich9-uhci2", 0, Some(2)),
        controller("ich9-uhci3", 0, Some(4)),
        Controller {
            ports: Some(8),
            ..controller("qemu-xhci", 1, None)
        },
    ];
    let port = |target: &str, bus, port: &str| {
        let mut disk = disk(target, TargetBus::Usb, &path(target));
        disk.frontend.address = Some(Address::Usb(UsbAddress {
            bus,
            port: port.to_owned(),
        }));
        disk
    };
    usb.disks = vec![
        port("sda", 0, "3"),
        port("sdb", 1, "7"),
        port("sdc", 1, "2"),
    ];
    usb.disks[2].frontend.device = Some(Device::Cdrom);
    guests.push(("USB ports", usb));

    let mut scsi = guest("pc");
    let mut queued = Controller::virtio_scsi(0);
    queued.queues = Some(2);
    queued.cmd_per_lun = Some(64);
    queued.max_sectors = Some(512);
    queued.ioeventfd = Some(Switch::Off);
    queued.virtio.packed = Some(Switch::On);
    queued.virtio.page_per_vq = Some(Switch::On);
    scsi.controllers = vec![queued];
    // The ninth place is on the second controller, which nobody wrote down.
    scsi.disks = vec![
        disk("sda", TargetBus::Scsi, &path("sda.raw")),
        disk("sdi", TargetBus::Scsi, &path("sdi.raw")),
    ];
    guests.push(("SCSI controllers", scsi));

    let mut boot = guest("pc");
    let mut floppy = disk("fdb", TargetBus::Fdc, &path("floppy.raw"));
    floppy.frontend.device = Some(Device::Floppy);
    let mut cd = Disk::new(Frontend::new("hdc", TargetBus::Ide), BackendSource::Empty);
    cd.frontend.device = Some(Device::Cdrom);
    boot.disks = vec![
        disk("vda", TargetBus::Virtio, &path("boot.raw")),
        floppy,
        cd,
    ];
    boot.boot_devices = vec![BootDevice::Floppy, BootDevice::Cdrom, BootDevice::Disk];
    guests.push(("an order of booting", boot));

    let mut nvme = guest("q35");
    nvme.controllers = vec![Controller {
        serial: Some("of the controller".to_owned()),
        ..Controller::new(ControllerType::Nvme, 0)
    }];
    nvme.disks = vec![
        disk("nvme0n1", TargetBus::Nvme, &path("n1.raw")),
        disk("nvme0n2", TargetBus::Nvme, &path("n2.raw")),
    ];
    guests.push(("namespaces", nvme));
    guests
}

#[test]
fn qemu_has_what_stands_around_the_disks_as_written() {
    on_each_qemu(
        "qemu has what stands around the disks as written",
        |installed| {
            let storage = Storage::new();
            let version = (installed.version.0, installed.version.1);
            for (name, domain) in guests(&storage, version) {
                let options = Options {
                    target: installed.target(),
                };
                let line = write(&domain, &options)
                    .unwrap_or_else(|problems| panic!("{name}: {problems}"));
                let shown = line.to_shell();
                let mut qemu = start_paused(installed, &line)
                    .unwrap_or_else(|error| panic!("{name}: QEMU refuses:\n{error}\n{shown}"));
                let differences = differences(&mut qemu, &line);
                assert!(differences.is_empty(), "{name}: {differences:#?}\n{shown}");
            }
        },
    );
}
