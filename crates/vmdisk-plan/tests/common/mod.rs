//! Specs of all shapes for property tests, and a host to plan for.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

pub(crate) mod host;
pub(crate) mod real;

use proptest::option::weighted;
use proptest::prelude::*;
use vmdisk_model::{
    AioMode, Architecture, Bytes, CacheMode, CpuMode, DetectZeroes, Discard, ErrorPolicy, Firmware,
    Format, NetworkProtocol, Preallocation, Qcow2Preallocation, ReadErrorPolicy,
};
use vmdisk_plan::*;

/// Sizes of disks: whole sectors.
pub(crate) fn size() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        (1_u64..2048).prop_map(|count| Bytes(count << 30)),
        (1_u64..1_000_000).prop_map(|count| Bytes(count * 512)),
    ]
}

/// Paths that a shell, a YAML reader and an option list could each misread.
pub(crate) fn path() -> impl Strategy<Value = String> {
    let odd = prop_oneof![
        "[a-z0-9]{1,8}",
        r#"[-a-z ,=:;'"\\$`!*?&|<>(){}\[\]#~%@^+\n\t\r\u{1}é…]{1,12}"#,
        Just("on".to_owned()),
        Just("-rf".to_owned()),
    ];
    (odd.clone(), odd).prop_map(|(directory, name)| format!("/{directory}/{name}.img"))
}

fn volume() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9+_.-]{0,10}".prop_filter("LVM keeps some names", |name| {
        !name.starts_with("snapshot") && !name.starts_with("pvmove") && !name.contains('_')
    })
}

fn word<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(all)
}

pub(crate) fn raw() -> impl Strategy<Value = RawSpec> {
    (
        path(),
        weighted(0.7, size()),
        any::<Option<bool>>(),
        weighted(0.3, word(Preallocation::ALL)),
    )
        .prop_map(|(path, size, nocow, preallocation)| RawSpec {
            path,
            preallocation: size.and(preallocation),
            nocow: size.and(nocow),
            size,
            ..RawSpec::default()
        })
}

pub(crate) fn qcow2() -> impl Strategy<Value = Qcow2Spec> {
    (
        path(),
        weighted(0.7, size()),
        weighted(0.5, word(Qcow2Preallocation::ALL)),
        weighted(0.5, (14_u32..=21).prop_map(|power| Bytes(1 << power))),
        any::<Option<bool>>(),
        any::<Option<bool>>(),
        any::<Option<bool>>(),
        weighted(
            0.3,
            (path(), prop_oneof![Just(Format::Raw), Just(Format::Qcow2)]),
        ),
    )
        .prop_map(
            |(path, size, preallocation, cluster_size, extended_l2, lazy, nocow, backing)| {
                let backing = backing
                    .filter(|(below, _)| *below != path)
                    .map(|(path, format)| BackingSpec { path, format });
                let is_made = size.is_some() || backing.is_some();
                let needs_subclusters = backing.is_some()
                    && preallocation.is_some_and(|mode| mode != Qcow2Preallocation::Off);
                Qcow2Spec {
                    path,
                    size,
                    preallocation: preallocation.filter(|_| is_made),
                    cluster_size: cluster_size.filter(|_| is_made),
                    extended_l2: if needs_subclusters {
                        Some(true)
                    } else {
                        extended_l2.filter(|_| is_made)
                    },
                    lazy_refcounts: lazy.filter(|_| is_made),
                    backing,
                    nocow: nocow.filter(|_| is_made),
                    ..Qcow2Spec::default()
                }
            },
        )
}

fn secret() -> impl Strategy<Value = EncryptionSpec> {
    prop_oneof![
        Just(SecretSpec {
            uuid: Some("5c3f0a52-8b1d-4f0e-9f43-2f6b6f6b7a02".to_owned()),
            usage: None
        }),
        "[a-z]{1,8}".prop_map(|usage| SecretSpec {
            uuid: None,
            usage: Some(usage)
        }),
    ]
    .prop_map(|secret| EncryptionSpec {
        secret,
        key_file: None,
    })
}

/// Images that exist, with all that their headers could say.
fn existing() -> impl Strategy<Value = BackendSpec> {
    let below = (path(), prop_oneof![Just(Format::Raw), Just(Format::Qcow2)])
        .prop_map(|(path, format)| BackingSpec { path, format });
    // Nothing lies below a raw image.
    let chain = proptest::collection::vec(below, 0..3).prop_map(|mut chain| {
        let last = chain.len().saturating_sub(1);
        for image in chain.iter_mut().take(last) {
            image.format = Format::Qcow2;
        }
        chain
    });
    let qcow2 = (
        path(),
        weighted(0.6, chain),
        weighted(0.3, path()),
        weighted(0.3, secret()),
    );
    let qcow2 = qcow2.prop_map(|(path, backing_chain, data_file, encryption)| {
        BackendSpec::from(Qcow2Spec {
            path: format!("{path}.top"),
            backing_chain,
            data_file: data_file.map(|path| format!("{path}.data")),
            encryption,
            ..Qcow2Spec::default()
        })
    });
    let raw = (path(), secret()).prop_map(|(path, encryption)| {
        BackendSpec::from(RawSpec {
            path,
            encryption: Some(encryption),
            ..RawSpec::default()
        })
    });
    let device = (path(), proptest::option::of(Just(Vec::new()))).prop_map(|(path, chain)| {
        BackendSpec::from(DeviceSpec {
            path: format!("/dev/vg0{path}"),
            access: None,
            format: Some(Format::Qcow2),
            backing_chain: chain,
        })
    });
    prop_oneof![qcow2, raw, device]
}

/// Storage that QEMU drives itself, or that only libvirt locates.
fn direct() -> impl Strategy<Value = BackendSpec> {
    let nvme =
        (0_u32..256, 1_u64..9, any::<Option<bool>>()).prop_map(|(bus, namespace, managed)| {
            BackendSpec::from(NvmeSpec {
                address: format!("0000:{bus:02x}:00.0"),
                namespace: Some(namespace),
                managed,
            })
        });
    let vdpa = path().prop_map(|path| BackendSpec::from(VhostVdpaSpec { path }));
    let directory = path().prop_map(|path| BackendSpec::from(DirectorySpec { path }));
    let format = proptest::sample::select(vec![Format::Raw, Format::Qcow2, Format::Vmdk]);
    let volume = ("[a-z]{1,6}", "[a-z.]{1,6}", format).prop_map(|(pool, volume, format)| {
        BackendSpec::from(VolumeSpec {
            pool,
            volume,
            size: None,
            format: Some(format),
            mode: None,
        })
    });
    prop_oneof![nvme, vdpa, directory, volume]
}

pub(crate) fn lvm() -> impl Strategy<Value = LvmSpec> {
    (volume(), volume(), weighted(0.7, size())).prop_map(|(group, volume, size)| LvmSpec {
        group,
        volume,
        size,
    })
}

pub(crate) fn lvm_thin() -> impl Strategy<Value = LvmThinSpec> {
    (
        (volume(), volume(), volume()),
        weighted(0.7, size()),
        any::<bool>(),
        weighted(0.5, size()),
        weighted(0.5, (1_u64..=16384).prop_map(|count| Bytes(count << 16))),
        any::<Option<bool>>(),
    )
        .prop_map(
            |((group, volume, pool), size, names_pool, pool_size, chunk_size, zero)| {
                let pool =
                    Some(pool).filter(|pool| *pool != volume && (names_pool || size.is_some()));
                let size = size.filter(|_| pool.is_some());
                let pool_size = pool_size.filter(|_| size.is_some());
                LvmThinSpec {
                    group,
                    volume,
                    size,
                    pool,
                    chunk_size: chunk_size.filter(|_| pool_size.is_some()),
                    zero: zero.filter(|_| pool_size.is_some()),
                    pool_size,
                }
            },
        )
}

pub(crate) fn backend() -> impl Strategy<Value = BackendSpec> {
    prop_oneof![
        raw().prop_map(BackendSpec::from),
        qcow2().prop_map(BackendSpec::from),
        lvm().prop_map(BackendSpec::from),
        lvm_thin().prop_map(BackendSpec::from),
        (path(), weighted(0.5, word(DeviceAccess::ALL))).prop_map(|(path, access)| {
            BackendSpec::from(DeviceSpec {
                path: format!("/dev/disk/by-id{path}"),
                access,
                format: None,
                backing_chain: None,
            })
        }),
        (path(), any::<Option<bool>>(), weighted(0.3, 1_u32..60)).prop_map(
            |(socket, reconnect, timeout)| BackendSpec::from(VhostUserBlkSpec {
                socket: format!("/run{socket}"),
                reconnect,
                reconnect_timeout: timeout.filter(|_| reconnect != Some(false)),
                serves: None,
            })
        ),
        network().prop_map(BackendSpec::from),
        existing(),
        direct(),
    ]
}

/// Names that an address, an option list and a YAML reader could each misread.
fn odd_name() -> impl Strategy<Value = String> {
    r#"[-a-z0-9 ,=:;'"\\$?&(){}\[\]#%@^+.é…]{1,12}"#
}

fn server() -> impl Strategy<Value = NetworkHostSpec> {
    (
        prop_oneof![
            "[a-z][a-z0-9-]{0,8}\\.example",
            Just("192.0.2.7".to_owned()),
            Just("2001:db8::7".to_owned()),
        ],
        weighted(0.5, 1_u32..=65535),
    )
        .prop_map(|(name, port)| NetworkHostSpec {
            name: Some(name),
            port,
            socket: None,
        })
}

fn socket() -> impl Strategy<Value = NetworkHostSpec> {
    "/run/[a-z ,=é]{1,20}".prop_map(|socket| NetworkHostSpec {
        socket: Some(socket),
        ..NetworkHostSpec::default()
    })
}

fn login() -> impl Strategy<Value = AuthenticationSpec> {
    (odd_name(), odd_name(), any::<bool>()).prop_map(|(username, usage, is_number)| {
        let uuid = "01234567-89ab-cdef-0123-456789abcdef".to_owned();
        AuthenticationSpec {
            username,
            secret: if is_number {
                SecretSpec {
                    uuid: Some(uuid),
                    usage: None,
                }
            } else {
                SecretSpec {
                    uuid: None,
                    usage: Some(usage),
                }
            },
        }
    })
}

/// Formats that are opened wherever the image is.
const FORMATS: &[Format] = &[Format::Raw, Format::Qcow2, Format::Vmdk, Format::Vpc];

/// A disk behind a server, with any of what its protocol has.
pub(crate) fn network() -> impl Strategy<Value = NetworkSpec> {
    let any_of = |protocol| {
        (
            odd_name(),
            server(),
            weighted(0.3, word(FORMATS)),
            weighted(0.3, login()),
        )
            .prop_map(move |(name, host, format, auth)| NetworkSpec {
                name: Some(name),
                hosts: Some(vec![host]),
                format,
                auth,
                ..NetworkSpec::new(protocol)
            })
    };
    let nbd = (
        any_of(NetworkProtocol::Nbd),
        any::<[bool; 4]>(),
        weighted(0.3, socket()),
        weighted(0.3, 0_u32..100),
    )
        .prop_map(|(spec, switches, socket, reconnect_delay)| {
            let [is_named, tls, has_hostname, says_off] = switches;
            let tls_hostname =
                (tls && (has_hostname || socket.is_some())).then(|| "store.example".to_owned());
            NetworkSpec {
                name: spec.name.filter(|_| is_named),
                hosts: socket.map(|socket| vec![socket]).or(spec.hosts),
                tls: (tls || says_off).then_some(tls),
                tls_hostname,
                reconnect_delay,
                auth: None,
                ..NetworkSpec::new(NetworkProtocol::Nbd)
            }
        });
    let rbd = (
        any_of(NetworkProtocol::Rbd),
        proptest::collection::vec(server(), 0..3),
        weighted(0.3, odd_name()),
        weighted(0.3, "[a-z]{1,5}"),
        weighted(0.3, Just("/etc/ceph/ceph.conf".to_owned())),
    )
        .prop_map(|(spec, hosts, snapshot, namespace, config_file)| {
            let image = spec.name.unwrap_or_default().replace('@', "-");
            NetworkSpec {
                name: Some(match namespace {
                    Some(namespace) => format!("pool/{namespace}/{image}"),
                    None => format!("pool/{image}"),
                }),
                hosts: (!hosts.is_empty()).then_some(hosts),
                snapshot,
                config_file,
                format: spec.format,
                auth: spec.auth,
                ..NetworkSpec::new(NetworkProtocol::Rbd)
            }
        });
    let iscsi = (
        any_of(NetworkProtocol::Iscsi),
        weighted(0.7, 0_u32..256),
        weighted(0.3, Just("iqn.2013-07.example:client".to_owned())),
        weighted(0.3, word(DeviceAccess::ALL)),
    )
        .prop_map(|(spec, unit, initiator, access)| {
            let target = "iqn.2013-07.example:disks";
            NetworkSpec {
                name: Some(match unit {
                    Some(unit) => format!("{target}/{unit}"),
                    None => target.to_owned(),
                }),
                initiator,
                access,
                format: spec.format.filter(|_| access != Some(DeviceAccess::Lun)),
                ..spec
            }
        });
    let gluster = (
        any_of(NetworkProtocol::Gluster),
        proptest::collection::vec(prop_oneof![server(), socket()], 1..3),
    )
        .prop_map(|(spec, hosts)| NetworkSpec {
            name: spec.name.map(|name| format!("volume/{name}")),
            hosts: Some(hosts),
            auth: None,
            ..spec
        });
    let nfs =
        (any_of(NetworkProtocol::Nfs), weighted(0.5, 0_u32..2000)).prop_map(|(spec, owner)| {
            NetworkSpec {
                name: spec.name.map(|name| format!("/srv/{name}")),
                hosts: spec.hosts.map(|mut hosts| {
                    hosts[0].port = None;
                    hosts
                }),
                identity: owner.map(|owner| NetworkIdentitySpec {
                    user: Some(format!("+{owner}")),
                    ..NetworkIdentitySpec::default()
                }),
                auth: None,
                ..spec
            }
        });
    let ssh = (any_of(NetworkProtocol::Ssh), any::<[bool; 2]>()).prop_map(
        |(spec, [has_identity, knows])| NetworkSpec {
            identity: has_identity.then(|| NetworkIdentitySpec {
                username: Some("fred".to_owned()),
                agent_socket: Some("/run/agent".to_owned()),
                ..NetworkIdentitySpec::default()
            }),
            known_hosts: knows.then(|| "/etc/ssh/known".to_owned()),
            ..spec
        },
    );
    let curl = (
        proptest::sample::select(vec![
            NetworkProtocol::Http,
            NetworkProtocol::Https,
            NetworkProtocol::Ftp,
            NetworkProtocol::Ftps,
        ])
        .prop_flat_map(any_of),
        weighted(0.3, "[a-z=&%]{1,8}"),
        weighted(0.3, any::<bool>()),
        weighted(0.3, (1_u64..100).prop_map(|sectors| Bytes(sectors * 512))),
        weighted(0.3, 1_u64..=10_000),
    )
        .prop_map(|(spec, query, verify, readahead, timeout)| {
            let is_http = matches!(
                spec.protocol,
                NetworkProtocol::Http | NetworkProtocol::Https
            );
            let is_safe = matches!(
                spec.protocol,
                NetworkProtocol::Https | NetworkProtocol::Ftps
            );
            NetworkSpec {
                query: query.filter(|_| is_http),
                ssl_verify: verify.filter(|_| is_safe),
                readahead,
                timeout,
                ..spec
            }
        });
    prop_oneof![nbd, rbd, iscsi, gluster, nfs, ssh, curl]
}

pub(crate) fn iotune() -> impl Strategy<Value = IotuneSpec> {
    (any::<bool>(), 1_u64..1 << 40, 1_u64..1 << 20, any::<bool>()).prop_map(
        |(is_total, bytes, iops, bursts)| {
            let empty = IotuneSpec::default();
            if is_total {
                IotuneSpec {
                    total_bytes_sec: Some(Bytes(bytes)),
                    total_bytes_sec_max: bursts.then_some(Bytes(bytes * 2)),
                    total_bytes_sec_max_length: bursts.then_some(10),
                    ..empty
                }
            } else {
                IotuneSpec {
                    read_iops_sec: Some(iops),
                    write_iops_sec: Some(iops),
                    group_name: bursts.then(|| "gold".to_owned()),
                    size_iops_sec: Some(Bytes(4096)),
                    ..empty
                }
            }
        },
    )
}

type Modes = (
    Option<CacheMode>,
    Option<AioMode>,
    Option<Discard>,
    Option<DetectZeroes>,
    Option<ErrorPolicy>,
    Option<ReadErrorPolicy>,
);

fn modes() -> impl Strategy<Value = Modes> {
    (
        weighted(0.3, word(CacheMode::ALL)),
        weighted(0.3, word(AioMode::ALL)),
        weighted(0.3, word(Discard::ALL)),
        weighted(0.3, word(DetectZeroes::ALL)),
        weighted(0.2, word(ErrorPolicy::ALL)),
        weighted(0.2, word(ReadErrorPolicy::ALL)),
    )
}

fn iothread() -> impl Strategy<Value = IoThreadSpec> {
    prop_oneof![
        Just(IoThreadSpec::Auto),
        (1_u32..4).prop_map(IoThreadSpec::Number),
        Just(IoThreadSpec::Several(vec![2, 1])),
    ]
}

/// A disk whose own values are fit; whether they go together is for the planner to tell.
pub(crate) fn disk() -> impl Strategy<Value = DiskSpec> {
    (
        backend(),
        modes(),
        (
            weighted(0.4, word(BusSpec::ALL)),
            weighted(0.1, word(MediaSpec::ALL)),
            weighted(0.2, 1_u32..=1024),
            weighted(0.2, (2_u32..=10).prop_map(|power| 1 << power)),
            weighted(0.3, iothread()),
        ),
        (
            weighted(0.2, Just((Bytes(512), Bytes(4096), Bytes(65536)))),
            weighted(0.2, "[A-Za-z0-9_.+ -]{1,20}"),
            weighted(0.1, Just("5000c50015ea71ac".to_owned())),
            weighted(0.1, prop_oneof![Just(1_u32), 1025_u32..65535]),
        ),
        (any::<[Option<bool>; 4]>(), any::<[Option<bool>; 2]>()),
        weighted(0.1, iotune()),
    )
        .prop_map(|(backend, modes, device, identity, switches, iotune)| {
            let (cache, io, discard, detect_zeroes, error_policy, read_error_policy) = modes;
            let (bus, media, queues, queue_size, iothread) = device;
            let (blocks, serial, wwn, rotation_rate) = identity;
            let ([copy_on_read, removable, readonly, shareable], [transient, no_unref]) = switches;
            let is_far_qcow2 = matches!(
                &backend,
                BackendSpec::Network(network) if network.format == Some(Format::Qcow2)
            );
            let is_qcow2 = is_far_qcow2 || matches!(backend, BackendSpec::Qcow2(_));
            DiskSpec {
                backend,
                bus,
                target: None,
                media,
                cache,
                io,
                discard,
                detect_zeroes,
                copy_on_read,
                discard_no_unref: no_unref.filter(|_| is_qcow2),
                metadata_cache_size: is_qcow2.then_some(Bytes(1 << 20)),
                queues,
                queue_size,
                iothread,
                logical_block_size: blocks.map(|(logical, ..)| logical),
                physical_block_size: blocks.map(|(_, physical, _)| physical),
                discard_granularity: blocks.map(|(.., granularity)| granularity),
                error_policy,
                read_error_policy,
                serial,
                wwn,
                vendor: rotation_rate.map(|_| "ACME \"1\"".to_owned()),
                product: rotation_rate.map(|_| "0x10".to_owned()),
                rotation_rate,
                removable,
                boot: None,
                readonly,
                shareable,
                transient,
                iotune,
            }
        })
}

fn iothread_options() -> impl Strategy<Value = IoThreadOptions> {
    (
        weighted(0.3, 0_u64..100_000),
        weighted(0.3, 0_u64..8),
        weighted(0.3, 0_u64..8),
        weighted(0.3, (0_u32..8, 8_u32..64)),
    )
        .prop_map(
            |(poll_max_ns, poll_grow, poll_shrink, pool)| IoThreadOptions {
                poll_max_ns,
                poll_grow,
                poll_shrink,
                thread_pool_min: pool.map(|(min, _)| min),
                thread_pool_max: pool.map(|(_, max)| max),
            },
        )
}

pub(crate) fn guest() -> impl Strategy<Value = GuestSpec> {
    (
        weighted(
            0.5,
            prop_oneof![
                "[a-z][a-z0-9 ']{0,8}x",
                Just("null".to_owned()),
                Just("1e3".to_owned())
            ],
        ),
        weighted(0.5, word(GuestType::ALL)),
        weighted(0.5, word(Architecture::ALL)),
        weighted(
            0.5,
            proptest::sample::select(vec!["q35", "pc", "pc-q35-5.1", "pc-i440fx-3.1"]),
        ),
        weighted(0.5, 1_u32..64),
        weighted(0.5, (64_u64..65536).prop_map(|count| Bytes(count << 20))),
        weighted(
            0.5,
            prop_oneof![
                Just(IoThreadCount::Auto),
                (0_u32..8).prop_map(IoThreadCount::Number),
                proptest::collection::vec(iothread_options(), 0..4).prop_map(IoThreadCount::Each)
            ],
        ),
        weighted(
            0.3,
            prop_oneof![
                Just(HugePagesSpec::No),
                Just(HugePagesSpec::DefaultSize),
                Just(HugePagesSpec::Size(Bytes(2 << 20)))
            ],
        ),
        (
            any::<bool>(),
            weighted(0.3, word(Firmware::ALL)),
            weighted(0.3, word(CpuMode::ALL)),
        ),
    )
        .prop_map(
            |(name, guest_type, arch, machine, vcpus, memory, iothreads, hugepages, others)| {
                let (uuid, firmware, cpu) = others;
                // The CPU of the host needs KVM, which no spec without a type is sure of.
                let is_kvm = guest_type == Some(GuestType::Kvm);
                let cpu = cpu.filter(|cpu| is_kvm || *cpu == CpuMode::Maximum);
                GuestSpec {
                    name,
                    uuid: uuid.then(|| "01234567-89ab-cdef-0123-456789abcdef".to_owned()),
                    guest_type,
                    arch,
                    machine: machine.map(str::to_owned),
                    firmware,
                    vcpus,
                    cpu,
                    memory,
                    iothreads,
                    hugepages,
                    ..GuestSpec::default()
                }
            },
        )
}

/// A whole spec, in which no two disks write to one storage.
pub(crate) fn spec() -> impl Strategy<Value = Spec> {
    (
        weighted(0.6, guest()),
        proptest::collection::vec(disk(), 0..5),
    )
        .prop_map(|(guest, disks)| Spec {
            version: SpecVersion::V1,
            guest,
            disks,
        })
        .prop_filter("two disks on one storage", |spec| spec.check().is_empty())
}

/// A spec that asks for storage, and leaves nearly all else open.
pub(crate) fn open_spec() -> impl Strategy<Value = Spec> {
    let disk = (
        backend(),
        weighted(0.2, word(CacheMode::ALL)),
        weighted(
            0.3,
            proptest::sample::select(vec![
                BusSpec::Virtio,
                BusSpec::VirtioScsi,
                BusSpec::Sata,
                BusSpec::Usb,
            ]),
        ),
        weighted(0.1, Just(IoThreadSpec::Auto)),
    )
        .prop_map(|(backend, cache, bus, iothread)| {
            let decides_itself = match &backend {
                BackendSpec::VhostUserBlk(_) => true,
                BackendSpec::Device(device) => device.access == Some(DeviceAccess::Lun),
                BackendSpec::Raw(_)
                | BackendSpec::Qcow2(_)
                | BackendSpec::Lvm(_)
                | BackendSpec::LvmThin(_)
                | BackendSpec::Zvol(_)
                | BackendSpec::Seed(_)
                | BackendSpec::Nvme(_)
                | BackendSpec::VhostVdpa(_)
                | BackendSpec::Directory(_)
                | BackendSpec::Volume(_)
                | BackendSpec::Empty(_) => false,
                BackendSpec::Network(network) => network.access == Some(DeviceAccess::Lun),
            };
            // QEMU only reads such a disk, and ATA has no disks that only read.
            let is_only_read = matches!(
                &backend,
                BackendSpec::Network(network)
                    if network.protocol.is_curl() || network.snapshot.is_some()
            ) || matches!(&backend, BackendSpec::Directory(_));
            let bus = bus.filter(|bus| !is_only_read || *bus != BusSpec::Sata);
            let has_loops = matches!(bus, None | Some(BusSpec::Virtio | BusSpec::VirtioScsi));
            DiskSpec {
                cache: cache.filter(|_| !decides_itself),
                bus: bus.filter(|_| !decides_itself),
                iothread: iothread.filter(|_| !decides_itself && has_loops),
                ..DiskSpec::new(backend)
            }
        });
    (
        weighted(0.5, 1_u32..16),
        proptest::collection::vec(disk, 0..6),
    )
        .prop_map(|(vcpus, disks)| Spec {
            version: SpecVersion::V1,
            guest: vcpus.map(|vcpus| GuestSpec {
                vcpus: Some(vcpus),
                ..GuestSpec::default()
            }),
            disks,
        })
        .prop_filter("two disks on one storage", |spec| spec.check().is_empty())
}
