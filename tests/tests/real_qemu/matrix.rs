//! Every frontend on every kind of backend, under every option.

use vmdisk_model::*;
use vmdisk_qemu::{Options, write};
use vmdisk_tests::{QemuBuild, on_each_qemu};

use crate::agree::differences;
use crate::qemu::start_paused;
use crate::storage::Storage;

/// A frontend with the guest around it.
pub(crate) struct Case {
    pub(crate) name: String,
    domain: Domain,
    device: Device,
    bus: TargetBus,
    target: &'static str,
}

impl Case {
    /// The guest with one disk on an image, changed in one way.
    pub(crate) fn guest(&self, image: &Image, change: Change) -> Domain {
        let mut frontend = Frontend::new(self.target, self.bus);
        frontend.device = Some(self.device);
        let mut disk = Disk::new(frontend, image.clone());
        if self.bus == TargetBus::Nvme {
            disk.frontend.serial = Some("nvme".to_owned());
        }
        change(&mut disk);
        let mut domain = self.domain.clone();
        domain.iothreads.push(IoThread::new(IoThreadId(1)));
        domain.disks.push(disk);
        domain
    }
}

/// A small emulated PC.
pub(crate) fn guest(machine: &str) -> Domain {
    Domain {
        domain_type: Some(DomainType::Qemu),
        architecture: Some(Architecture::X86_64),
        machine: Some(MachineType::new(machine)),
        vcpus: Some(2),
        memory: Some(Bytes(64 << 20)),
        ..Domain::default()
    }
}

pub(crate) fn frontends() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |machine: &str, model: Option<ScsiControllerModel>, device, bus, target| {
        let mut domain = guest(machine);
        let mut name = format!("{device} on {bus} of {machine}");
        if let Some(model) = model {
            let mut controller = Controller::new(ControllerType::Scsi, 0);
            controller.scsi_model = Some(model);
            domain.controllers.push(controller);
            name.push_str(&format!(" ({model})"));
        }
        cases.push(Case {
            name,
            domain,
            device,
            bus,
            target,
        });
    };
    for machine in ["q35", "pc"] {
        add(machine, None, Device::Disk, TargetBus::Virtio, "vda");
        add(machine, None, Device::Disk, TargetBus::Sata, "sda");
        add(machine, None, Device::Cdrom, TargetBus::Sata, "sdb");
        add(machine, None, Device::Disk, TargetBus::Usb, "sdc");
        add(machine, None, Device::Cdrom, TargetBus::Usb, "sdd");
        add(machine, None, Device::Disk, TargetBus::Nvme, "nvme0n1");
        add(machine, None, Device::Floppy, TargetBus::Fdc, "fda");
    }
    add("microvm", None, Device::Disk, TargetBus::Virtio, "vda");
    add("pc", None, Device::Disk, TargetBus::Ide, "hda");
    add("pc", None, Device::Cdrom, TargetBus::Ide, "hdc");
    for model in [
        ScsiControllerModel::Auto,
        ScsiControllerModel::Lsilogic,
        ScsiControllerModel::Lsisas1068,
        ScsiControllerModel::Lsisas1078,
        ScsiControllerModel::Vmpvscsi,
        ScsiControllerModel::VirtioScsi,
        ScsiControllerModel::VirtioTransitional,
        ScsiControllerModel::VirtioNonTransitional,
        ScsiControllerModel::Dc390,
        ScsiControllerModel::Am53c974,
    ] {
        add("q35", Some(model), Device::Disk, TargetBus::Scsi, "sde");
        add("q35", Some(model), Device::Cdrom, TargetBus::Scsi, "sdb");
    }
    cases
}

/// The backends of a test, by name.
pub(crate) fn backends(storage: &mut Storage) -> Vec<(&'static str, Image)> {
    let mut backends = vec![(
        "raw",
        Image::file(storage.raw("a.raw", 16 << 20), Format::Raw),
    )];
    if let Some(path) = storage.qcow2("a.qcow2", None) {
        backends.push(("qcow2", Image::file(path, Format::Qcow2)));
    }
    backends.extend(chain(storage).map(|chain| ("chain of three", chain)));
    match storage.loop_device("loop.raw") {
        Some(device) => backends.push(("block device", Image::host_device(device))),
        None => eprintln!("skipped: this process may not make loop devices"),
    }
    backends
}

/// Three qcow2 images, each on the next, the last without one below.
pub(crate) fn chain(storage: &Storage) -> Option<Image> {
    let base = storage.qcow2("base.qcow2", None)?;
    let middle = storage.qcow2("middle.qcow2", Some(&base))?;
    let top = storage.qcow2("top.qcow2", Some(&middle))?;
    let mut image = Image::file(base, Format::Qcow2);
    image.backing = Backing::Terminated;
    for path in [middle, top] {
        let below = image;
        image = Image::file(path, Format::Qcow2);
        image.backing = Backing::Image(Box::new(below));
    }
    Some(image)
}

pub(crate) type Change = fn(&mut Disk);

/// Options, each with what it does to a disk.
pub(crate) const OPTIONS: &[(&str, Change)] = &[
    ("nothing", |_| {}),
    ("cache none", |disk| {
        disk.backend.cache = Some(CacheMode::None)
    }),
    ("cache writeback", |disk| {
        disk.backend.cache = Some(CacheMode::Writeback)
    }),
    ("cache writethrough", |disk| {
        disk.backend.cache = Some(CacheMode::Writethrough)
    }),
    ("cache directsync", |disk| {
        disk.backend.cache = Some(CacheMode::Directsync)
    }),
    ("cache unsafe", |disk| {
        disk.backend.cache = Some(CacheMode::Unsafe)
    }),
    ("native", |disk| {
        disk.backend.cache = Some(CacheMode::None);
        disk.backend.aio = Some(AioMode::Native);
    }),
    ("discard and zeroes", |disk| {
        disk.backend.discard = Some(Discard::Unmap);
        disk.backend.detect_zeroes = Some(DetectZeroes::Unmap);
    }),
    ("zeroes without discard", |disk| {
        disk.backend.detect_zeroes = Some(DetectZeroes::Unmap);
    }),
    ("discard ignored", |disk| {
        disk.backend.discard = Some(Discard::Ignore);
        disk.backend.detect_zeroes = Some(DetectZeroes::On);
    }),
    ("limits", |disk| {
        disk.backend.cache = Some(CacheMode::None);
        disk.backend.discard = Some(Discard::Unmap);
        disk.backend.iotune = Some(Box::new(Iotune {
            bytes: IotuneLimits {
                read: Some(1 << 20),
                read_max: Some(2 << 20),
                read_max_length: Some(3),
                ..IotuneLimits::default()
            },
            iops: IotuneLimits {
                total: Some(500),
                ..IotuneLimits::default()
            },
            size_iops: Some(4096),
            group: None,
        }));
    }),
    ("boot order", |disk| disk.frontend.boot_order = Some(1)),
    ("alias", |disk| {
        disk.frontend.alias = Some("ua-system.disk_1".to_owned())
    }),
];

/// Options that only some frontends have; a refusal by name is as good as an answer.
pub(crate) const SOME_OPTIONS: &[(&str, Change)] = &[
    ("read-only", |disk| disk.backend.is_read_only = true),
    ("shareable", |disk| disk.backend.is_shareable = true),
    ("copy on read", |disk| {
        disk.backend.copy_on_read = Some(Switch::On)
    }),
    ("metadata cache", |disk| {
        disk.backend.metadata_cache_size = Some(Bytes(4 << 20));
    }),
    ("queues", |disk| {
        disk.frontend.queues = Some(1024);
        disk.frontend.queue_size = Some(1024);
    }),
    ("few queues", |disk| {
        disk.frontend.queues = Some(1);
        disk.frontend.queue_size = Some(4);
    }),
    ("sectors", |disk| {
        disk.frontend.logical_block_size = Some(4096)
    }),
    ("physical sectors", |disk| {
        disk.frontend.physical_block_size = Some(4096)
    }),
    ("both sectors", |disk| {
        disk.frontend.logical_block_size = Some(512);
        disk.frontend.physical_block_size = Some(16384);
        disk.frontend.discard_granularity = Some(512);
    }),
    ("errors", |disk| {
        disk.frontend.error_policy = Some(ErrorPolicy::Enospace);
        disk.frontend.read_error_policy = Some(ReadErrorPolicy::Stop);
    }),
    ("serial", |disk| {
        disk.frontend.serial = Some("a,b=\"c\" 'd\\".to_owned())
    }),
    ("wwn", |disk| {
        disk.frontend.wwn = Some("5000c500155f0cc5".to_owned())
    }),
    ("vendor", |disk| {
        disk.frontend.vendor = Some("ACME".to_owned());
        disk.frontend.product = Some("Disk, large".to_owned());
    }),
    ("rotation rate", |disk| {
        disk.frontend.rotation_rate = Some(1)
    }),
    ("removable", |disk| {
        disk.frontend.removable = Some(Switch::On)
    }),
    ("transitional", |disk| {
        disk.frontend.model = Some(VirtioModel::Transitional)
    }),
    ("non-transitional", |disk| {
        disk.frontend.model = Some(VirtioModel::NonTransitional)
    }),
    ("iothread", |disk| {
        disk.frontend.iothread = Some(IoThreadId(1))
    }),
    ("virtio", |disk| {
        disk.frontend.virtio = VirtioOptions {
            iommu: Some(Switch::On),
            ats: Some(Switch::On),
            packed: Some(Switch::On),
            page_per_vq: Some(Switch::On),
        };
        disk.frontend.event_idx = Some(Switch::Off);
        // What has no standard of its own takes the new one.
        disk.frontend.model = Some(VirtioModel::NonTransitional);
    }),
    ("eventfd", |disk| {
        disk.frontend.ioeventfd = Some(Switch::Off)
    }),
    ("geometry", |disk| {
        disk.frontend.geometry = Some(Geometry {
            cylinders: Some(32),
            heads: Some(16),
            sectors: Some(63),
            translation: None,
        });
    }),
    ("translation", |disk| {
        disk.frontend.geometry = Some(Geometry {
            cylinders: Some(32),
            heads: Some(16),
            sectors: Some(63),
            translation: Some(GeometryTranslation::Lba),
        });
    }),
    ("statistics", |disk| {
        disk.frontend.statistics.intervals = vec![5, 60]
    }),
    ("dpofua", |disk| disk.frontend.dpofua = Some(Switch::On)),
    ("what is left to others", |disk| {
        disk.frontend.rawio = Some(Switch::On);
        disk.frontend.sgio = Some(Sgio::Filtered);
        disk.frontend.tray = Some(Tray::Open);
        disk.backend.snapshot = Some(Snapshot::No);
    }),
];

/// What became of one configuration.
#[derive(Debug, PartialEq)]
enum Outcome {
    Agreed,
    /// The writer would not write it.
    Refused(Vec<String>),
}

fn try_one(installed: &QemuBuild, case: &Case, image: &Image, change: Change) -> Outcome {
    let domain = case.guest(image, change);
    let options = Options {
        target: installed.target(),
    };
    let line = match write(&domain, &options) {
        Ok(line) => line,
        Err(problems) => {
            return Outcome::Refused(problems.0.iter().map(ToString::to_string).collect());
        }
    };
    let shown = line.to_shell();
    let mut qemu = start_paused(installed, &line)
        .unwrap_or_else(|error| panic!("{}: QEMU refuses:\n{error}\n{shown}", case.name));
    let differences = differences(&mut qemu, &line);
    assert!(
        differences.is_empty(),
        "{}: {differences:#?}\n{shown}",
        case.name
    );
    Outcome::Agreed
}

#[test]
fn qemu_has_each_frontend_on_each_backend_as_written() {
    on_each_qemu(
        "qemu has each frontend on each backend as written",
        |installed| {
            let mut storage = Storage::new();
            let backends = backends(&mut storage);
            // Each pair with one option of a round, so that all options meet most frontends.
            let mut round = OPTIONS.iter().cycle();
            for case in frontends() {
                for (name, image) in &backends {
                    let (option, change) = round.next().unwrap();
                    let outcome = try_one(installed, &case, image, *change);
                    let what = format!("{} on {name} with {option}", case.name);
                    assert_eq!(outcome, Outcome::Agreed, "{what}");
                }
            }
        },
    );
}

#[test]
fn qemu_has_every_option_on_every_backend_as_written() {
    on_each_qemu(
        "qemu has every option on every backend as written",
        |installed| {
            let mut storage = Storage::new();
            let backends = backends(&mut storage);
            let cases = frontends();
            for (name, image) in &backends {
                for (option, change) in OPTIONS {
                    let outcome = try_one(installed, &cases[0], image, *change);
                    assert_eq!(outcome, Outcome::Agreed, "{name} with {option}");
                }
            }
        },
    );
}

#[test]
fn an_option_is_written_where_qemu_has_it_and_refused_by_name_where_not() {
    on_each_qemu(
        "an option is written where qemu has it and refused by name where not",
        |installed| {
            let mut storage = Storage::new();
            let backends = backends(&mut storage);
            let mut agreed = 0;
            // The disks of all other SCSI controllers are the same devices.
            let is_of_interest = |case: &&Case| {
                let model = case
                    .domain
                    .controllers
                    .first()
                    .map(|first| first.scsi_model);
                model.is_none_or(|model| {
                    model == Some(ScsiControllerModel::VirtioScsi)
                        || model == Some(ScsiControllerModel::Lsilogic)
                })
            };
            for (at, (option, change)) in SOME_OPTIONS.iter().enumerate() {
                for (nth, case) in frontends().iter().filter(is_of_interest).enumerate() {
                    if case.name.ends_with("microvm") && *option == "iothread" {
                        // An iothread on MMIO needs KVM, which these tests do without.
                        continue;
                    }
                    let (name, image) = &backends[(at + nth) % backends.len()];
                    match try_one(installed, case, image, *change) {
                        Outcome::Agreed => agreed += 1,
                        Outcome::Refused(problems) => {
                            for problem in problems {
                                assert!(
                                    problem.starts_with(&format!("disk {}: ", case.target)),
                                    "{} on {name} with {option}: {problem}",
                                    case.name
                                );
                            }
                        }
                    }
                }
            }
            assert!(agreed > 120, "only {agreed} configurations were started");
        },
    );
}
