//! Guests made of anything: writing never panics, and what is written holds together.

use crate::normal;
use std::collections::HashSet;

use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use vmdisk_facts::Target;
use vmdisk_model::*;
use vmdisk_qemu::{
    ArgumentValue, CommandLineForm, Document, Json, Options, QemuOption, write,
    write_monitor_script,
};
use vmdisk_rule::{Consumer, Context, Finding, Outcome};

fn word() -> BoxedStrategy<String> {
    prop_oneof![
        "[a-z]{1,6}",
        select(vec![
            "vda",
            "sda",
            "sdb",
            "hdc",
            "fda",
            "nvme0n1",
            "vda-base1",
            "scsi0",
            "usb",
            "memory",
            "ide"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ]
    .boxed()
}

fn path() -> BoxedStrategy<String> {
    prop_oneof![
        Just("/srv/a.img".to_owned()),
        "/[ -~]{0,20}",
        any::<String>()
    ]
    .boxed()
}

fn small() -> BoxedStrategy<u32> {
    prop_oneof![
        0_u32..8,
        select(vec![255, 256, 512, 1024, 1025, 4096, u32::MAX])
    ]
    .boxed()
}

fn mapping() -> impl Strategy<Value = Vec<IoThreadQueues>> {
    let row =
        (1_u32..3, prop::collection::vec(0_u32..4, 0..3)).prop_map(|(id, queues)| IoThreadQueues {
            iothread: IoThreadId(id),
            queues,
        });
    prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(row, 0..3)]
}

fn address() -> BoxedStrategy<Option<Address>> {
    let pci =
        (0_u32..2, 0_u32..4, 0_u32..33, 0_u32..3).prop_map(|(domain, bus, slot, function)| {
            Address::Pci(PciAddress {
                domain,
                bus,
                slot,
                function,
                multifunction: None,
            })
        });
    let drive = (small(), small(), small(), small()).prop_map(|(controller, bus, target, unit)| {
        Address::Drive(DriveAddress {
            controller,
            bus,
            target,
            unit,
        })
    });
    prop_oneof![
        6 => Just(None),
        1 => pci.prop_map(Some),
        1 => drive.prop_map(Some),
        1 => select(vec!["ccw", "usb", "x"]).prop_map(|word| Some(Address::Other(word.to_owned()))),
        1 => select(vec![Address::VirtioMmio, Address::Unassigned, Address::SpaprVio(0x2000)]).prop_map(Some),
        1 => (0_u32..3, "[1-9](\\.[1-9])?").prop_map(|(bus, port)| Some(Address::Usb(UsbAddress { bus, port }))),
        1 => (0_u32..255, 0_u32..4, 0_u32..0x1_0000)
            .prop_map(|(cssid, ssid, devno)| Some(Address::Ccw(CcwAddress { cssid, ssid, devno }))),
    ]
    .boxed()
}

fn virtio() -> BoxedStrategy<VirtioOptions> {
    prop::collection::vec(of(select(Switch::ALL)), 4)
        .prop_map(|switches| VirtioOptions {
            iommu: switches[0],
            ats: switches[1],
            packed: switches[2],
            page_per_vq: switches[3],
        })
        .boxed()
}

fn geometry() -> impl Strategy<Value = Geometry> {
    let numbers = (of(small()), of(small()), of(small()));
    (numbers, of(select(GeometryTranslation::ALL))).prop_map(|(numbers, translation)| Geometry {
        cylinders: numbers.0,
        heads: numbers.1,
        sectors: numbers.2,
        translation,
    })
}

prop_compose! {
    fn frontend()(
        device in of(select(Device::ALL)),
        target in of(word()),
        bus in of(select(TargetBus::ALL)),
        model in prop_oneof![4 => Just(None), 1 => of(select(VirtioModel::ALL))],
        (queues, queue_size) in (of(small()), of(small())),
        (iothread, iothread_mapping) in (of((1_u32..3).prop_map(IoThreadId)), mapping()),
        (logical_block_size, physical_block_size, discard_granularity) in (of(small()), of(small()), of(small())),
        (error_policy, read_error_policy) in (of(select(ErrorPolicy::ALL)), of(select(ReadErrorPolicy::ALL))),
        (serial, wwn, vendor, product) in (of(word()), of("[0-9a-g+]{1,17}"), of(word()), of(word())),
        (rotation_rate, removable, boot_order) in (of(small()), of(select(Switch::ALL)), of(small())),
        address in address(),
        alias in of(word()),
        virtio in virtio(),
        (rawio, sgio, ioeventfd, event_idx) in (of(select(Switch::ALL)), of(select(Sgio::ALL)), of(select(Switch::ALL)), of(select(Switch::ALL))),
        (tray, dpofua, loadparm, acpi_index) in (of(select(Tray::ALL)), of(select(Switch::ALL)), of(word()), of(small())),
        (geometry, intervals) in (of(geometry()), prop::collection::vec(small(), 0..3)),
        // Most options unset in most cases, or next to nothing could be written.
        bare in prop::bool::weighted(0.6),
        rare in prop::bool::weighted(0.6),
    ) -> Frontend {
        let frontend = Frontend {
            device, target, bus, model, queues, queue_size, iothread, iothread_mapping,
            logical_block_size, physical_block_size, discard_granularity, error_policy,
            read_error_policy, serial, wwn, vendor, product, rotation_rate, removable, boot_order,
            address, alias, virtio, rawio, sgio, ioeventfd, event_idx, tray, dpofua, loadparm, acpi_index, geometry,
            statistics: Statistics { intervals, histograms: Vec::new() },
        };
        let frontend = if rare {
            // Without what only one kind of device has.
            Frontend {
                virtio: VirtioOptions::default(),
                sgio: None,
                ioeventfd: None,
                event_idx: None,
                dpofua: None,
                loadparm: None,
                acpi_index: None,
                geometry: None,
                statistics: Statistics::default(),
                ..frontend
            }
        } else {
            Frontend {
                device: frontend.device,
                bus: frontend.bus,
                virtio: frontend.virtio,
                ioeventfd: frontend.ioeventfd,
                event_idx: frontend.event_idx,
                geometry: frontend.geometry,
                acpi_index: frontend.acpi_index,
                statistics: frontend.statistics,
                dpofua: frontend.dpofua,
                address: frontend.address,
                ..Frontend::unset()
            }
        };
        if bare {
            Frontend {
                device: frontend.device,
                target: frontend.target,
                bus: frontend.bus,
                serial: frontend.serial,
                alias: frontend.alias,
                ..Frontend::unset()
            }
        } else {
            frontend
        }
    }
}

fn host() -> BoxedStrategy<NetworkHost> {
    prop_oneof![
        (word(), of(0_u32..65536)).prop_map(|(name, port)| NetworkHost::tcp(name, port)),
        path().prop_map(NetworkHost::unix),
    ]
    .boxed()
}

fn network() -> BoxedStrategy<Protocol> {
    let identity = of((of(0_u32..9), of(word()))).prop_map(Option::unwrap_or_default);
    (
        select(NetworkProtocol::ALL),
        of(prop_oneof![
            word(),
            path(),
            Just("pool/image".to_owned()),
            Just("target/3".to_owned())
        ]),
        prop::collection::vec(host(), 0..3),
        (of(word()), of(select(Switch::ALL)), of(1_u64..9)),
        identity,
    )
        .prop_map(
            |(protocol, name, hosts, (text, switch, number), (user, username))| {
                let mut source = NetworkSource::new(protocol, name, hosts);
                // What the protocol passes to QEMU; the rest is left out, which is another test's business.
                for field in NetworkSource::FIELDS {
                    let row = vmdisk_fields::image(*field);
                    let is_passed = row.node.is_some() || *field == ImageField::Query;
                    if !is_passed || !row.is_of(protocol) {
                        continue;
                    }
                    let value = match field.kind() {
                        Some(FieldKind::Text) => text.clone().map(FieldValue::Text),
                        Some(FieldKind::Switch) => switch.map(FieldValue::Switch),
                        Some(FieldKind::Number) => number.map(|_| FieldValue::Number(3)),
                        Some(FieldKind::Count) => number.map(FieldValue::Count),
                        Some(FieldKind::Size) => number.map(|size| FieldValue::Size(Bytes(size))),
                        _ => None,
                    };
                    if let Some(value) = value {
                        source.set(*field, value);
                    }
                }
                match protocol {
                    NetworkProtocol::Nfs => source.user = user.map(|user| format!("+{user}")),
                    NetworkProtocol::Ssh => source.username = username,
                    _ => {}
                }
                Protocol::Network(Box::new(source))
            },
        )
        .boxed()
}

fn secret() -> BoxedStrategy<Secret> {
    let reference = prop_oneof![
        Just(SecretReference::Uuid(
            "0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f".to_owned()
        )),
        word().prop_map(SecretReference::Usage),
        (path(), any::<bool>())
            .prop_map(|(path, is_base64)| SecretReference::File { path, is_base64 }),
    ];
    reference
        .prop_map(|reference| Secret {
            secret_type: None,
            reference,
        })
        .boxed()
}

fn alone() -> BoxedStrategy<Image> {
    let protocol = prop_oneof![
        8 => path().prop_map(|path| Protocol::File { path }),
        8 => path().prop_map(|path| Protocol::HostDevice { path: DevicePath(path) }),
        1 => word().prop_map(Protocol::Other),
        4 => network(),
        1 => path().prop_map(|path| Protocol::VhostVdpa { path }),
        1 => path().prop_map(|path| Protocol::Directory { path }),
        1 => (0_u32..300, 1_u64..9).prop_map(|(bus, namespace)| Protocol::Nvme(NvmeSource {
            address: PciAddress { bus, ..PciAddress::default() },
            namespace,
            managed: None,
        })),
    ];
    let format = prop_oneof![
        Just(Some(Format::Raw)),
        Just(Some(Format::Qcow2)),
        of(select(Format::ALL)),
    ];
    let rarely = |of: BoxedStrategy<Secret>| prop::option::weighted(0.1, of);
    let slice = (0_u64..9, 1_u64..9).prop_map(|(offset, size)| Slice {
        offset: offset * 512,
        size: size * 512,
    });
    let reservations =
        (of(select(Switch::ALL)), of(path())).prop_map(|(managed, socket)| Reservations {
            managed,
            socket,
            migration: None,
        });
    (
        format,
        protocol,
        prop::option::weighted(0.1, slice),
        rarely(secret().boxed()),
        prop::option::weighted(0.1, (of(word()), of(secret()))),
        prop::option::weighted(0.1, reservations),
    )
        .prop_map(|(format, protocol, slice, key, login, reservations)| {
            let is_device = matches!(protocol, Protocol::HostDevice { .. });
            let takes_login = matches!(&protocol, Protocol::Network(source)
                if source.protocol.is_curl()
                    || matches!(source.protocol, NetworkProtocol::Rbd | NetworkProtocol::Iscsi));
            Image {
                slice,
                encryption: key.map(|secret| {
                    Box::new(Encryption {
                        format: Some(EncryptionFormat::Luks),
                        secrets: vec![secret],
                        ..Encryption::default()
                    })
                }),
                authentication: login
                    .filter(|_| takes_login)
                    .map(|(username, secret)| Box::new(Authentication { username, secret })),
                reservations: reservations.filter(|_| is_device),
                ..Image::new(format, protocol)
            }
        })
        .boxed()
}

fn image() -> BoxedStrategy<Image> {
    let data_file =
        prop::option::weighted(0.1, path().prop_map(|path| Image::file(path, Format::Raw)));
    let chain = prop::collection::vec((alone(), data_file), 1..4);
    (chain, any::<bool>())
        .prop_map(|(chain, is_terminated)| {
            let mut backing = if is_terminated {
                Backing::Terminated
            } else {
                Backing::Unspecified
            };
            let mut images = chain.into_iter().rev().peekable();
            loop {
                let (image, data_file) = images.next().expect("there is one");
                let data_file = data_file.filter(|_| image.format == Some(Format::Qcow2));
                let image = Image {
                    backing,
                    data_file: data_file.map(Box::new),
                    ..image
                };
                if images.peek().is_none() {
                    return image;
                }
                backing = Backing::Image(Box::new(image));
            }
        })
        .boxed()
}

prop_compose! {
    fn backend()(
        source in prop_oneof![
            8 => image().prop_map(BackendSource::from),
            1 => path().prop_map(|path| BackendSource::VhostUser(VhostUserSocket::new(path))),
            1 => Just(BackendSource::Empty),
        ],
        (cache, aio) in (of(select(CacheMode::ALL)), of(select(AioMode::ALL))),
        (discard, detect_zeroes) in (of(select(Discard::ALL)), of(select(DetectZeroes::ALL))),
        copy_on_read in prop_oneof![4 => Just(None), 1 => of(select(Switch::ALL))],
        discard_no_unref in prop_oneof![4 => Just(None), 1 => of(select(Switch::ALL))],
        metadata_cache_size in prop_oneof![4 => Just(None), 1 => of((0_u64..1 << 40).prop_map(Bytes))],
        iotune in prop_oneof![
            3 => Just(None),
            1 => (of(word()), of(0_u64..1000)).prop_map(|(group, total)| Some(Iotune {
                iops: IotuneLimits { total, ..IotuneLimits::default() },
                group,
                ..Iotune::default()
            })),
        ],
        (is_read_only, is_shareable) in (prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
        is_transient in prop::bool::weighted(0.02),
        throttle_filters in prop_oneof![
            4 => Just(Vec::new()),
            1 => prop::collection::vec(select(vec!["slow", "throttle-slow", "0", "none"]).prop_map(str::to_owned), 1..3),
        ],
        snapshot in of(select(Snapshot::ALL)),
    ) -> Backend {
        Backend {
            source, cache, aio, discard, detect_zeroes, copy_on_read, discard_no_unref,
            metadata_cache_size, iotune: iotune.map(Box::new), is_read_only, is_shareable, is_transient,
            throttle_filters, snapshot, share_backing: None, startup_policy: None,
        }
    }
}

prop_compose! {
    fn controller()(
        controller_type in select(ControllerType::ALL),
        index in of(0_u32..3),
        scsi_model in of(select(ScsiControllerModel::ALL)),
        other_model in prop_oneof![4 => Just(None), 1 => of(select(vec!["qemu-xhci", "none", "ich9-uhci1", "x"]))],
        queues in prop_oneof![4 => Just(None), 1 => of(small())],
        (ports, start_port) in prop_oneof![4 => Just((None, None)), 1 => (of(small()), of(small()))],
        virtio in prop_oneof![4 => Just(VirtioOptions::default()), 1 => virtio()],
        address in address(),
    ) -> Controller {
        Controller {
            index,
            scsi_model,
            other_model: other_model.map(str::to_owned),
            queues,
            ports,
            start_port,
            virtio,
            address,
            ..Controller::new(controller_type, 0)
        }
    }
}

prop_compose! {
    fn domain()(
        scope in select(vec![Scope::WholeGuest, Scope::DisksOnly]),
        name in of(word()),
        domain_type in of(select(vec![DomainType::Kvm, DomainType::Qemu])),
        architecture in of(prop_oneof![4 => Just(Architecture::X86_64), 1 => select(Architecture::ALL)]),
        machine in of(select(vec!["q35", "pc", "pc-q35-7.2", "virt", "microvm", "a,b"])),
        memory in of((0_u64..1 << 40).prop_map(Bytes)),
        access in of(select(MemoryAccess::ALL)),
        source in of(select(MemorySource::ALL)),
        iothreads in 0_u32..4,
        polling in of(0_u64..1 << 40),
        firmware in of(select(Firmware::ALL)),
        boot_devices in prop::collection::vec(select(BootDevice::ALL), 0..3),
        default_iothread in of((of(0_u32..9), of(1_u32..9))),
        controllers in prop::collection::vec(controller().boxed(), 0..3),
        disks in prop::collection::vec((frontend().boxed(), backend().boxed()).boxed(), 1..5).boxed(),
    ) -> Domain {
        Domain {
            scope, name, uuid: None, domain_type, architecture,
            machine: machine.map(MachineType::new),
            vcpus: None,
            scsi_host_devices: Vec::new(),
            boots_from_others: false,
            emulator: None,
            pci_room: None,
            manager: None,
        system: None,
            cpu: None,
            acpi: None,
            tuned_iothreads: Vec::new(),
            memory,
            memory_backing: MemoryBacking { access, source, ..MemoryBacking::default() },
            firmware,
            boot_devices,
            blkiotune: None,
            throttle_groups: ["slow", "throttle-slow", "0"].map(|name| Iotune {
                size_iops: polling,
                group: Some(name.to_owned()),
                ..Iotune::default()
            }).into(),
            default_iothread: default_iothread
                .map(|(thread_pool_min, thread_pool_max)| DefaultIoThread { thread_pool_min, thread_pool_max }),
            iothreads: (1..=iothreads)
                .map(|id| IoThread { polling: Polling { max: polling, ..Polling::default() }, ..IoThread::new(IoThreadId(id)) })
                .collect(),
            controllers,
            disks: disks.into_iter().map(|(frontend, backend)| Disk { frontend, backend }).collect(),
        }
    }
}

/// A value as another parser of JSON reads it.
fn read(json: &impl std::fmt::Display) -> serde_json::Value {
    serde_json::from_str(&json.to_string()).expect("what is written is JSON")
}

/// What is said of a command line for which no QEMU is named.
fn findings(document: &Document) -> Vec<Finding> {
    let target = Target::default();
    let context = Context {
        consumer: Consumer::Qemu,
        ..Context::new(&document.domain, &target)
    };
    let mut outcome = Outcome::default();
    outcome.add_problems(&context, &document.problems);
    vmdisk_qemu::check(document, &context, &mut outcome);
    outcome.findings
}

/// Asserts that nothing of a text is a problem, or kept, or about something else but for one name.
fn assert_understood(document: &Document, text: &str, other: &str) {
    let is_open = |text: &str| text.contains(['$', '%', '`']);
    // A secret that only libvirt knows is still to be given, and so are cookies. A directory that the guest may write is
    // written as it is, and QEMU refuses it.
    let told = ["encryption-secret-missing", "fat-directory-refused"];
    let mut others = findings(document);
    others.retain(|finding| !told.contains(&finding.rule.name));
    let span = |finding: &Finding| finding.span.unwrap_or_default();
    others.retain(|finding| !is_open(span(finding).slice(text).unwrap_or_default()));
    assert!(others.is_empty(), "{others:?}\n{text}");
    let mut kept = document.kept.iter();
    // A running machine has the port of a disk.
    let is_port = |key: &str| key == "bus" && document.form == CommandLineForm::MonitorScript;
    assert!(
        kept.all(|kept| kept.is_open || is_port(&kept.key)),
        "{:?}\n{text}",
        document.kept
    );
    let mut others = document.others.iter();
    assert!(
        others.all(|option| option.name == other),
        "{:?}\n{text}",
        document.others
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_holds_together(
        domain in domain(),
        target in select(vec!["qemu=5.2", "qemu=6.1", "qemu=7.2", "qemu=11.1", "machine=q35"]),
    ) {
        let options = Options { target: target.parse().unwrap() };
        let line = match write(&domain, &options) {
            Ok(line) => line,
            Err(problems) => {
                prop_assert!(!problems.0.is_empty());
                for problem in problems.0 {
                    let disk = problem.at.disk().map(|nth| domain.disks[nth].name().to_owned());
                    prop_assert_eq!(problem.disk, disk);
                }
                return Ok(());
            }
        };
        prop_assert_eq!(&line, &write(&domain, &options).unwrap(), "the same input, the same line");
        let mut nodes = HashSet::new();
        let mut ids = HashSet::new();
        for argument in &line.arguments {
            if let ArgumentValue::Json(object) = &argument.value {
                let _ = read(object);
            }
            match argument.option {
                QemuOption::Blockdev => {
                    for child in ["file", "backing"] {
                        if let Some(child) = argument.property(child).filter(|child| child != "null") {
                            prop_assert!(nodes.contains(&child), "{} comes later, or never", child);
                        }
                    }
                    let name = argument.property("node-name").unwrap();
                    prop_assert!(name.len() <= 31 && nodes.insert(name));
                }
                QemuOption::Device | QemuOption::Object | QemuOption::Chardev => {
                    // Nothing speaks of a companion.
                    match argument.property("id") {
                        Some(id) => prop_assert!(ids.insert((argument.option, id))),
                        None => prop_assert!(argument.value.word().is_some_and(|word| word.contains("ich9-usb-uhci"))),
                    }
                    if let Some(node) = argument.property("drive") {
                        prop_assert!(nodes.contains(&node));
                    }
                }
                QemuOption::Name | QemuOption::Uuid | QemuOption::Nodefaults | QemuOption::Machine | QemuOption::Accel | QemuOption::Cpu
                | QemuOption::Memory | QemuOption::Smp | QemuOption::Global | QemuOption::Drive => {}
                QemuOption::Export => prop_assert!(false, "an option of the daemon, and not of QEMU"),
            }
        }
    }

    #[test]
    fn every_path_and_serial_number_is_read_back_the_same(
        path in path(),
        serial in word(),
        bus in select(vec![TargetBus::Virtio, TargetBus::Sata, TargetBus::Usb]),
    ) {
        let mut disk = Disk::new(Frontend::new("vda", bus), Image::file(path.as_str(), Format::Qcow2));
        disk.frontend.serial = Some(serial.clone());
        let domain = Domain { scope: Scope::DisksOnly, disks: vec![disk], ..Domain::default() };
        let Ok(line) = write(&domain, &Options::default()) else {
            let is_odd = |character: char| {
                let code = u32::from(character);
                code == 0 || code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code)
            };
            prop_assert!(path.is_empty() || path.contains(is_odd) || serial.contains(is_odd));
            return Ok(());
        };
        let file = line.blockdevs().next().unwrap();
        prop_assert_eq!(&read(file)["filename"], &serde_json::Value::from(path.as_str()));
        let device = line.arguments.last().unwrap();
        let ArgumentValue::Json(object) = &device.value else { panic!("not JSON") };
        prop_assert_eq!(object.get("serial"), Some(&Json::String(serial.clone())));
        prop_assert_eq!(&read(object)["serial"], &serde_json::Value::from(serial.as_str()));
    }

    #[test]
    fn what_is_written_is_read_back_the_same(
        domain in domain(),
        target in select(vec!["qemu=5.2", "qemu=7.2", "qemu=11.1"]),
        form in 0_u8..3,
    ) {
        let options = Options { target: target.parse().unwrap() };
        let Ok(line) = write(&domain, &options) else { return Ok(()) };
        let argv = line.argv();
        let text = match form {
            0 => line.to_json_argv().to_string(),
            1 => argv.iter().map(|word| format!("{word}\0")).collect(),
            _ => line.to_shell(),
        };
        let document = vmdisk_qemu::read(&text).unwrap_or_else(|failure| panic!("{failure}: {text}"));
        assert_understood(&document, &text, "-global");
        prop_assert!(normal::shares_memory(&document.domain, &domain));
        let read = normal::normal(&document.domain, &domain);
        prop_assert_eq!(read, normal::normal(&domain, &domain), "{}", text);
    }

    #[test]
    fn what_is_written_for_the_monitor_is_read_back_the_same(
        domain in domain(),
        target in select(vec!["qemu=5.2", "qemu=7.2", "qemu=11.1"]),
    ) {
        let options = Options { target: target.parse().unwrap() };
        let Ok(script) = write_monitor_script(&domain, &options) else { return Ok(()) };
        let text = script.to_lines();
        let document = vmdisk_qemu::read(&text).unwrap_or_else(|failure| panic!("{failure}: {text}"));
        prop_assert_eq!(document.form, CommandLineForm::MonitorScript);
        assert_understood(&document, &text, "");
        if text.contains("\"driver\":\"nvme\"") && !text.contains("nvme-ns") {
            return Ok(()); // a controller with its only namespace, which reads as a disk without a controller
        }
        // The machine is there already, and so are the iothreads that no disk speaks of.
        let used = |id: IoThreadId| text.contains(&format!("\"iothread{id}\""));
        let iothreads = domain.iothreads.iter().filter(|thread| used(thread.id)).cloned().collect();
        let groups = document.domain.throttle_groups.clone();
        let domain = Domain {
            scope: Scope::DisksOnly,
            iothreads,
            throttle_groups: domain.throttle_groups.iter().filter(|group| groups.contains(group)).cloned().collect(),
            default_iothread: None,
            firmware: None,
            boot_devices: Vec::new(),
            ..domain
        };
        let read = normal::normal(&document.domain, &domain);
        prop_assert_eq!(read, normal::normal(&domain, &domain), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in prop_oneof![
            any::<String>(),
            "(qemu-system-x86_64 )?(-(drive|device|blockdev|object|m|hda|machine) [a-z0-9,='\"{}:\\\\ .$-]{0,40} ){1,6}",
            "(\\[(drive|device|machine|x)( \"[a-z\"]{0,3}\")?\\]?[\r ]?\n? *((driver|type|if|file) ?= ?\"[a-z é\"]{0,9}\"?[\r ]?\n?){1,3}){1,6}",
            "(\\{\"execute\":\"(device_add|blockdev-add)\",\"arguments\":\\{(\"(driver|file)\":[\"{a-z}]{0,9},?){0,3}\\}\\}\n?){1,4}",
        ],
    ) {
        if let Ok(document) = vmdisk_qemu::read(&text) {
            for (_, place) in document.source_map.iter() {
                prop_assert!(place.span.slice(&text).is_some() && place.whole.slice(&text).is_some());
            }
            for problem in &document.problems {
                prop_assert!(problem.span.slice(&text).is_some());
            }
        }
    }
}
