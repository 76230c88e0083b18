//! Models of every kind that XML can carry.
//!
//! Left out is what no XML says: how storage is made; an empty path (libvirt takes it for none); an
//! iothread without an element whose number libvirt would not count to; a top image on a protocol that
//! is not modelled (it reads as `BackendSource::Other`).
// Not every test uses every strategy.
#![allow(dead_code)]

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

fn number() -> impl Strategy<Value = u32> {
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
        iothread: IoThreadId(id),
        queues,
    });
    vec(row, 0..3)
}

const OTHER_ADDRESSES: &[&str] = &["ccw", "usb", "virtio-mmio", "spapr-vio", "unassigned"];

fn address() -> impl Strategy<Value = Address> {
    let pci = (
        number(),
        number(),
        number(),
        number(),
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
    (identity, queues, blocks, policies, names).prop_map(
        |(identity, queues, blocks, policies, names)| {
            let (device, target, bus, model, rotation_rate, removable, boot_order, address, alias) =
                identity;
            Frontend {
                device,
                target: Some(target),
                bus,
                model,
                queues: queues.0,
                queue_size: queues.1,
                iothread: queues.2.map(IoThreadId),
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
                boot_order,
                address,
                alias,
            }
        },
    )
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

fn protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        nasty().prop_map(|path| Protocol::File { path }),
        nasty().prop_map(|path| Protocol::HostDevice {
            path: DevicePath(path)
        }),
    ]
}

const OTHER_SOURCES: &[&str] = &["dir", "network", "volume", "nvme", "vhostvdpa", "ctl"];

fn backing() -> impl Strategy<Value = Backing> {
    let below = prop_oneof![
        3 => protocol(),
        1 => select(OTHER_SOURCES).prop_map(|word| Protocol::Other(word.to_owned())),
    ];
    let chain = vec((of(select(Format::ALL)), below), 0..4);
    (chain, any::<bool>()).prop_map(|(chain, is_terminated)| {
        let end = if is_terminated {
            Backing::Terminated
        } else {
            Backing::Unspecified
        };
        chain.into_iter().fold(end, |backing, (format, protocol)| {
            Backing::Image(Box::new(Image {
                format,
                protocol,
                backing,
                creation: None,
            }))
        })
    })
}

fn source() -> impl Strategy<Value = BackendSource> {
    let image =
        (of(select(Format::ALL)), protocol(), backing()).prop_map(|(format, protocol, backing)| {
            BackendSource::Image(Image {
                format,
                protocol,
                backing,
                creation: None,
            })
        });
    let socket = (nasty(), of(select(Switch::ALL)), of(number())).prop_map(
        |(path, reconnect, reconnect_timeout)| {
            BackendSource::VhostUser(VhostUserSocket {
                path,
                reconnect,
                reconnect_timeout,
            })
        },
    );
    let other = (select(OTHER_SOURCES), of(select(Format::ALL))).prop_map(|(word, format)| {
        BackendSource::Other(OtherSource {
            source_type: word.to_owned(),
            format,
        })
    });
    prop_oneof![6 => image, 1 => socket, 1 => other, 1 => Just(BackendSource::Empty)]
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
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (source(), modes, of(size()), of(iotune()), flags).prop_map(
        |(source, modes, metadata_cache_size, iotune, flags)| Backend {
            source,
            cache: modes.0,
            aio: modes.1,
            discard: modes.2,
            detect_zeroes: modes.3,
            copy_on_read: modes.4,
            discard_no_unref: modes.5,
            metadata_cache_size,
            iotune,
            is_read_only: flags.0,
            is_shareable: flags.1,
            is_transient: flags.2,
        },
    )
}

pub(crate) fn disk() -> impl Strategy<Value = Disk> {
    (frontend(), backend()).prop_map(|(mut frontend, backend)| {
        // Only a drive with removable media may be empty.
        if backend.source == BackendSource::Empty {
            frontend.device = Some(Device::Cdrom);
        }
        Disk { frontend, backend }
    })
}

fn controller() -> impl Strategy<Value = Controller> {
    let numbers = (
        of(number()),
        of(number()),
        of(number()),
        of(number()),
        of(number()),
    );
    (
        select(ControllerType::ALL),
        of(select(ScsiControllerModel::ALL)),
        of(nasty()),
        numbers,
        mapping(),
        of(address()),
    )
        .prop_map(
            |(controller_type, scsi_model, other_model, numbers, iothread_mapping, address)| {
                let is_scsi = controller_type == ControllerType::Scsi;
                Controller {
                    controller_type,
                    index: numbers.0,
                    scsi_model: scsi_model.filter(|_| is_scsi),
                    other_model: other_model.filter(|_| !is_scsi),
                    queues: numbers.1,
                    cmd_per_lun: numbers.2,
                    max_sectors: numbers.3,
                    iothread: numbers.4.map(IoThreadId),
                    iothread_mapping,
                    address,
                }
            },
        )
}

fn iothreads() -> impl Strategy<Value = Vec<IoThread>> {
    let listed = btree_map(1..30_u32, (of(number()), of(number())), 0..4);
    (listed, 0..4_usize).prop_map(|(listed, counted)| {
        let taken: BTreeSet<u32> = listed.keys().copied().collect();
        let with_element = listed.into_iter().map(|(id, (min, max))| IoThread {
            id: IoThreadId(id),
            is_listed: true,
            thread_pool_min: min,
            thread_pool_max: max,
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
    );
    (
        any::<bool>(),
        machine,
        memory_backing(),
        iothreads(),
        vec(controller(), 0..3),
        vec(disk(), 0..4),
    )
        .prop_map(
            |(is_whole, machine, memory_backing, iothreads, controllers, disks)| {
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
                    iothreads,
                    controllers,
                    disks,
                }
            },
        )
}
