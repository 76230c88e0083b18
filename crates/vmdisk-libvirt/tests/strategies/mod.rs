//! Models of every kind that XML can carry.
//!
//! Left out is what no XML says: how storage is made; an empty path (libvirt takes it for none); an
//! iothread without an element whose number libvirt would not count to; secrets that only QEMU has.
// Not every test uses every strategy.
#![allow(dead_code)]

pub(crate) mod image;

use std::collections::BTreeSet;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use vmdisk_model::*;

/// Characters that have a meaning somewhere in XML, in option strings or on a screen.
const NASTY: &[char] = &[
    '&', '<', '>', '\'', '"', ',', ':', ';', '=', '#', '-', '!', '/', '\\', ' ', '\n', '\t', '\r',
    'a', 'B', '7', 'é', '漢', '😀', '\u{85}', '\u{2028}', ']', '?',
];

pub(crate) fn nasty() -> impl Strategy<Value = String> {
    vec(select(NASTY), 1..12).prop_map(String::from_iter)
}

pub(crate) fn number() -> impl Strategy<Value = u32> {
    prop_oneof![0..20_u32, any::<u32>()]
}

fn big_number() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_u64, any::<u64>()]
}

pub(crate) fn size() -> impl Strategy<Value = Bytes> {
    prop_oneof![any::<u64>(), (0..1_u64 << 40).prop_map(|kib| kib * 1024)].prop_map(Bytes)
}

fn mapping() -> impl Strategy<Value = Vec<IoThreadQueues>> {
    let row = (number(), vec(number(), 0..3)).prop_map(|(id, queues)| IoThreadQueues {
        iothread: IoThreadId(id.max(1)),
        queues,
    });
    vec(row, 0..3)
}

const OTHER_ADDRESSES: &[&str] = &["ccw", "usb", "isa", "spapr-vio", "dimm"];

fn address() -> impl Strategy<Value = Address> {
    let pci = (
        0..=0xffff_u32,
        0..=0xff_u32,
        0..=0x1f_u32,
        0..=7_u32,
        of(select(Switch::ALL)),
    );
    let drive = (number(), number(), number(), number());
    prop_oneof![
        pci.prop_map(
            |(domain, bus, slot, function, multifunction)| Address::Pci(PciAddress {
                domain,
                bus,
                slot,
                function,
                multifunction,
            })
        ),
        drive.prop_map(
            |(controller, bus, target, unit)| Address::Drive(DriveAddress {
                controller,
                bus,
                target,
                unit,
            })
        ),
        (number(), nasty()).prop_map(|(bus, port)| Address::Usb(UsbAddress { bus, port })),
        (number(), number(), number()).prop_map(|(cssid, ssid, devno)| Address::Ccw(CcwAddress {
            cssid,
            ssid,
            devno
        })),
        number().prop_map(Address::SpaprVio),
        select(vec![Address::VirtioMmio, Address::Unassigned]),
        select(OTHER_ADDRESSES).prop_map(|word| Address::Other(word.to_owned())),
    ]
}

fn frontend() -> impl Strategy<Value = Frontend> {
    let identity = (
        of(select(Device::ALL)),
        nasty(),
        of(select(TargetBus::ALL)),
        of(select(VirtioModel::ALL)),
        of(number()),
        of(select(Switch::ALL)),
        of(number()),
        of(address()),
        of(nasty()),
    );
    let queues = (of(number()), of(number()), of(number()), mapping());
    let blocks = (of(number()), of(number()), of(number()));
    let policies = (
        of(select(ErrorPolicy::ALL)),
        of(select(ReadErrorPolicy::ALL)),
    );
    let names = (of(nasty()), of(nasty()), of(nasty()), of(nasty()));
    let passed_through = (of(select(Switch::ALL)), of(select(Sgio::ALL)));
    let switches = (
        of(select(Switch::ALL)),
        of(select(Switch::ALL)),
        of(select(Switch::ALL)),
        of(select(Tray::ALL)),
        of(nasty()),
        of(number()),
    );
    let more = (
        passed_through,
        switches,
        virtio(),
        of(geometry()),
        statistics(),
    );
    (identity, queues, blocks, policies, names, more).prop_map(
        |(identity, queues, blocks, policies, names, more)| {
            let (device, target, bus, model, rotation_rate, removable, boot_order, address, alias) =
                identity;
            Frontend {
                device,
                target: Some(target),
                bus,
                model,
                rawio: more.0.0,
                sgio: more.0.1,
                ioeventfd: more.1.0,
                event_idx: more.1.1,
                dpofua: more.1.2,
                tray: more.1.3,
                // libvirt requires a number in the boot order too.
                loadparm: more.1.4.filter(|_| boot_order.is_some()),
                acpi_index: more.1.5,
                virtio: more.2,
                geometry: more.3,
                statistics: more.4,
                queues: queues.0,
                queue_size: queues.1,
                iothread: queues.2.map(|id| IoThreadId(id.max(1))),
                iothread_mapping: queues.3,
                logical_block_size: blocks.0,
                physical_block_size: blocks.1,
                discard_granularity: blocks.2,
                error_policy: policies.0,
                read_error_policy: policies.1,
                serial: names.0,
                wwn: names.1,
                vendor: names.2,
                product: names.3,
                rotation_rate,
                removable,
                boot_order: boot_order.map(|order: u32| order.max(1)),
                address,
                alias,
            }
        },
    )
}

fn virtio() -> impl Strategy<Value = VirtioOptions> {
    vec(of(select(Switch::ALL)), 4).prop_map(|switches| VirtioOptions {
        iommu: switches[0],
        ats: switches[1],
        packed: switches[2],
        page_per_vq: switches[3],
    })
}

fn geometry() -> impl Strategy<Value = Geometry> {
    (
        of(number()),
        of(number()),
        of(number()),
        of(select(GeometryTranslation::ALL)),
    )
        .prop_map(|(cylinders, heads, sectors, translation)| Geometry {
            cylinders,
            heads,
            sectors,
            translation,
        })
}

fn statistics() -> impl Strategy<Value = Statistics> {
    let histogram =
        (of(nasty()), vec(big_number(), 0..3)).prop_map(|(request, bin_starts)| LatencyHistogram {
            request,
            bin_starts,
        });
    (vec(number(), 0..3), vec(histogram, 0..2)).prop_map(|(intervals, histograms)| Statistics {
        intervals,
        histograms,
    })
}

fn blkiotune() -> impl Strategy<Value = Blkiotune> {
    let device = (of(nasty()), vec(of(number()), 3), vec(of(big_number()), 2)).prop_map(
        |(path, small, large)| BlkioDevice {
            path,
            weight: small[0],
            read_iops_sec: small[1],
            write_iops_sec: small[2],
            read_bytes_sec: large[0],
            write_bytes_sec: large[1],
        },
    );
    (of(number()), vec(device, 0..3)).prop_map(|(weight, devices)| Blkiotune { weight, devices })
}

fn limits() -> impl Strategy<Value = IotuneLimits> {
    vec(of(big_number()), 9).prop_map(|numbers| IotuneLimits {
        total: numbers[0],
        read: numbers[1],
        write: numbers[2],
        total_max: numbers[3],
        read_max: numbers[4],
        write_max: numbers[5],
        total_max_length: numbers[6],
        read_max_length: numbers[7],
        write_max_length: numbers[8],
    })
}

fn iotune() -> impl Strategy<Value = Iotune> {
    (limits(), limits(), of(big_number()), of(nasty())).prop_map(
        |(bytes, iops, size_iops, group)| Iotune {
            bytes,
            iops,
            size_iops,
            group,
        },
    )
}

fn source() -> impl Strategy<Value = BackendSource> {
    let socket = (nasty(), of(select(Switch::ALL)), of(number())).prop_map(
        |(path, reconnect, reconnect_timeout)| {
            BackendSource::VhostUser(VhostUserSocket {
                path,
                reconnect,
                reconnect_timeout,
                ..VhostUserSocket::new("")
            })
        },
    );
    let image = image::image().prop_map(BackendSource::from);
    prop_oneof![6 => image, 1 => socket, 1 => Just(BackendSource::Empty)]
}

fn backend() -> impl Strategy<Value = Backend> {
    let modes = (
        of(select(CacheMode::ALL)),
        of(select(AioMode::ALL)),
        of(select(Discard::ALL)),
        of(select(DetectZeroes::ALL)),
        of(select(Switch::ALL)),
        of(select(Switch::ALL)),
    );
    let flags = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        of(select(Switch::ALL)),
        of(select(Snapshot::ALL)),
        vec(nasty(), 0..3),
        of(select(StartupPolicy::ALL)),
    );
    (
        source().boxed(),
        modes.boxed(),
        of(size()),
        of(iotune()),
        flags,
    )
        .prop_map(
            |(source, modes, metadata_cache_size, iotune, flags)| Backend {
                startup_policy: flags.6.filter(|_| image::may_be_missing(&source)),
                source,
                cache: modes.0,
                aio: modes.1,
                discard: modes.2,
                detect_zeroes: modes.3,
                copy_on_read: modes.4,
                discard_no_unref: modes.5,
                metadata_cache_size,
                iotune: iotune.map(Box::new),
                is_read_only: flags.0,
                is_shareable: flags.1,
                is_transient: flags.2,
                // An attribute of the same element.
                share_backing: flags.3.filter(|_| flags.2),
                snapshot: flags.4,
                throttle_filters: flags.5,
            },
        )
}

pub(crate) fn disk() -> BoxedStrategy<Disk> {
    (frontend().boxed(), backend().boxed())
        .prop_map(|(mut frontend, backend)| {
            // Only a drive with removable media may be empty.
            if backend.source == BackendSource::Empty {
                frontend.device = Some(Device::Cdrom);
            }
            Disk { frontend, backend }
        })
        .boxed()
}

fn controller() -> impl Strategy<Value = Controller> {
    let numbers = (
        of(number()),
        of(number()),
        of(number()),
        of(number()),
        of(number()),
    );
    let more = (
        of(select(Switch::ALL)),
        virtio(),
        of(number()),
        of(number()),
        of(nasty()),
        of(nasty()),
        of(number()),
    );
    (
        select(ControllerType::ALL),
        of(select(ScsiControllerModel::ALL)),
        of(nasty()),
        numbers,
        mapping(),
        of(address()),
        more,
    )
        .prop_map(
            |(
                controller_type,
                scsi_model,
                other_model,
                numbers,
                iothread_mapping,
                address,
                more,
            )| {
                let is_scsi = controller_type == ControllerType::Scsi;
                Controller {
                    controller_type,
                    index: numbers.0,
                    scsi_model: scsi_model.filter(|_| is_scsi),
                    other_model: other_model.filter(|_| !is_scsi),
                    queues: numbers.1,
                    cmd_per_lun: numbers.2,
                    max_sectors: numbers.3,
                    ioeventfd: more.0,
                    virtio: more.1,
                    ports: more.2.filter(|_| !is_scsi),
                    start_port: more.3,
                    serial: more.4,
                    alias: more.5,
                    acpi_index: more.6,
                    iothread: numbers.4.map(|id| IoThreadId(id.max(1))),
                    iothread_mapping,
                    address,
                }
            },
        )
}

fn iothreads() -> impl Strategy<Value = Vec<IoThread>> {
    let polling = vec(of(big_number()), 3).prop_map(|numbers| Polling {
        max: numbers[0],
        grow: numbers[1],
        shrink: numbers[2],
    });
    let listed = btree_map(1..30_u32, (of(number()), of(number()), polling), 0..4);
    (listed, 0..4_usize).prop_map(|(listed, counted)| {
        let taken: BTreeSet<u32> = listed.keys().copied().collect();
        let with_element = listed
            .into_iter()
            .map(|(id, (min, max, polling))| IoThread {
                id: IoThreadId(id),
                is_listed: true,
                thread_pool_min: min,
                thread_pool_max: max,
                polling,
            });
        let free = (1..).filter(|id| !taken.contains(id)).take(counted);
        let without = free.map(|id| IoThread::new(IoThreadId(id)));
        with_element.chain(without).collect()
    })
}

fn memory_backing() -> impl Strategy<Value = MemoryBacking> {
    let pages = vec(size(), 0..3).prop_map(|page_sizes| HugePages { page_sizes });
    (
        of(pages),
        of(select(MemorySource::ALL)),
        of(select(MemoryAccess::ALL)),
        vec(of(select(MemoryAccess::ALL)), 0..3),
    )
        .prop_map(|(huge_pages, source, access, cell_access)| MemoryBacking {
            huge_pages,
            source,
            access,
            cell_access,
        })
}

fn domain_type() -> impl Strategy<Value = DomainType> {
    prop_oneof![
        Just(DomainType::Kvm),
        Just(DomainType::Qemu),
        nasty().prop_map(DomainType::Other)
    ]
}

pub(crate) fn domain() -> impl Strategy<Value = Domain> {
    let machine = (
        of(nasty()),
        of(domain_type()),
        of(select(Architecture::ALL)),
        of(nasty()),
        of(number()),
        of(size()),
        of(nasty()),
        of(select(Firmware::ALL)),
    );
    let default_iothread =
        (of(number()), of(number())).prop_map(|(thread_pool_min, thread_pool_max)| {
            DefaultIoThread {
                thread_pool_min,
                thread_pool_max,
            }
        });
    let tunes = (
        vec(select(BootDevice::ALL), 0..3),
        of(blkiotune()),
        vec(iotune(), 0..3),
        of(default_iothread),
    );
    (
        any::<bool>(),
        machine,
        memory_backing(),
        iothreads(),
        vec(controller(), 0..3),
        vec(disk(), 0..4),
        tunes,
    )
        .prop_map(
            |(is_whole, machine, memory_backing, iothreads, controllers, disks, tunes)| {
                if !is_whole {
                    return Domain {
                        scope: Scope::DisksOnly,
                        controllers,
                        disks,
                        ..Domain::default()
                    };
                }
                Domain {
                    scope: Scope::WholeGuest,
                    name: machine.0,
                    uuid: machine.6,
                    domain_type: machine.1,
                    architecture: machine.2,
                    machine: machine.3.map(MachineType),
                    vcpus: machine.4,
                    memory: machine.5,
                    memory_backing,
                    firmware: machine.7,
                    boot_devices: tunes.0,
                    blkiotune: tunes.1,
                    throttle_groups: tunes.2,
                    default_iothread: tunes.3,
                    iothreads,
                    controllers,
                    disks,
                    scsi_host_devices: Vec::new(),
                    boots_from_others: false,
                    emulator: None,
                    pci_room: None,
                    manager: None,
                    system: None,
                    cpu: None,
                    acpi: None,
                    tuned_iothreads: Vec::new(),
                }
            },
        )
}
