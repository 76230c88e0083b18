//! Specs for a host: disks in places that it has, with options asked for or left open.

use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use vmdisk::model::{
    AioMode, Bytes, CacheMode, DetectZeroes, Discard, Firmware, Format, NetworkProtocol,
    Preallocation, Qcow2Preallocation,
};
use vmdisk::plan::{
    AuthenticationSpec, BackendSpec, BackingSpec, BusSpec, DeviceAccess, DeviceSpec, DiskSpec,
    GuestSpec, GuestType, HugePagesSpec, IoThreadCount, IoThreadSpec, LvmSpec, LvmThinSpec,
    MediaSpec, NetworkHostSpec, NetworkIdentitySpec, NetworkSpec, Qcow2Spec, RawSpec, SecretSpec,
    Spec, SpecVersion, VhostUserBlkSpec,
};

use super::host::Host;

fn word<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> BoxedStrategy<T> {
    select(all).boxed()
}

fn size() -> BoxedStrategy<Bytes> {
    select(vec![Bytes::gib(1), Bytes::gib(40), Bytes(4096 * 513)]).boxed()
}

/// A file that is to be made in one of the host's directories.
fn new_path(host: &Host) -> BoxedStrategy<String> {
    (select(host.directories.clone()), 0_u32..1000)
        .prop_map(|(folder, number)| format!("{folder}/made-{number}.img"))
        .boxed()
}

fn raw(host: &Host) -> BoxedStrategy<BackendSpec> {
    let made = (
        new_path(host),
        size(),
        weighted(0.3, word(Preallocation::ALL)),
        weighted(0.2, any::<bool>()),
    )
        .prop_map(|(path, size, preallocation, nocow)| RawSpec {
            path,
            size: Some(size),
            preallocation,
            nocow,
            ..RawSpec::default()
        });
    let exists = select(host.images.clone()).prop_map(|(path, _)| RawSpec {
        path,
        ..RawSpec::default()
    });
    prop_oneof![made, exists]
        .prop_map(BackendSpec::from)
        .boxed()
}

fn qcow2(host: &Host) -> BoxedStrategy<BackendSpec> {
    let made = (
        new_path(host),
        size(),
        weighted(0.3, word(Qcow2Preallocation::ALL)),
        weighted(0.3, (14_u32..=21).prop_map(|power| Bytes(1 << power))),
        weighted(0.2, any::<bool>()),
        weighted(0.2, any::<bool>()),
        weighted(0.3, select(host.images.clone())),
    )
        .prop_map(
            |(path, size, preallocation, cluster_size, extended_l2, nocow, backing)| Qcow2Spec {
                path,
                size: Some(size),
                preallocation: preallocation.filter(|_| backing.is_none()),
                cluster_size,
                extended_l2,
                backing: backing.map(|(path, format)| BackingSpec {
                    path,
                    format: format_of(format.as_deref()),
                }),
                nocow,
                ..Qcow2Spec::default()
            },
        );
    let exists = select(host.images.clone()).prop_map(|(path, _)| existing_qcow2(path));
    prop_oneof![made, exists]
        .prop_map(BackendSpec::from)
        .boxed()
}

/// The format that a header shows.
fn format_of(name: Option<&str>) -> Format {
    match name {
        Some("qcow2") => Format::Qcow2,
        Some(_) | None => Format::Raw,
    }
}

fn lvm(host: &Host) -> BoxedStrategy<BackendSpec> {
    let made = (select(host.groups.clone()), size()).prop_map(|(group, size)| LvmSpec {
        group,
        volume: "made".to_owned(),
        size: Some(size),
    });
    let exists = select(host.volumes.clone()).prop_map(|(group, volume)| LvmSpec {
        group,
        volume,
        size: None,
    });
    prop_oneof![made, exists]
        .prop_map(BackendSpec::from)
        .boxed()
}

fn lvm_thin(host: &Host) -> BoxedStrategy<BackendSpec> {
    let in_new_pool = (
        select(host.groups.clone()),
        size(),
        weighted(0.3, (1_u64..=256).prop_map(|count| Bytes(count << 16))),
        weighted(0.3, any::<bool>()),
    )
        .prop_map(|(group, size, chunk_size, zero)| LvmThinSpec {
            group,
            volume: "made".to_owned(),
            size: Some(size),
            pool: Some("made-pool".to_owned()),
            pool_size: Some(Bytes::gib(100)),
            chunk_size,
            zero,
        });
    let mut all = in_new_pool.boxed();
    if !host.pools.is_empty() {
        let in_old_pool =
            (select(host.pools.clone()), size()).prop_map(|((group, pool), size)| LvmThinSpec {
                group,
                volume: "made".to_owned(),
                size: Some(size),
                pool: Some(pool),
                pool_size: None,
                chunk_size: None,
                zero: None,
            });
        all = prop_oneof![all, in_old_pool].boxed();
    }
    if !host.thin_volumes.is_empty() {
        let exists =
            select(host.thin_volumes.clone()).prop_map(|(group, volume, pool)| LvmThinSpec {
                group,
                volume,
                size: None,
                pool,
                pool_size: None,
                chunk_size: None,
                zero: None,
            });
        all = prop_oneof![all, exists].boxed();
    }
    all.prop_map(BackendSpec::from).boxed()
}

/// A disk behind a server, with what its protocol has.
fn network() -> BoxedStrategy<BackendSpec> {
    let host = |name: &str, port| NetworkHostSpec {
        name: Some(name.to_owned()),
        port,
        socket: None,
    };
    let login = AuthenticationSpec {
        username: "fred".to_owned(),
        secret: SecretSpec {
            uuid: None,
            usage: Some("key".to_owned()),
        },
    };
    let plain = |protocol, name: &str| NetworkSpec {
        name: Some(name.to_owned()),
        hosts: Some(vec![host("store.example", None)]),
        ..NetworkSpec::new(protocol)
    };
    let of_each = vec![
        NetworkSpec {
            name: None,
            hosts: Some(vec![NetworkHostSpec {
                socket: Some("/run/nbd.sock".to_owned()),
                ..NetworkHostSpec::default()
            }]),
            reconnect_delay: Some(10),
            ..NetworkSpec::new(NetworkProtocol::Nbd)
        },
        NetworkSpec {
            hosts: Some(vec![host("2001:db8::7", Some(10810))]),
            tls: Some(true),
            tls_hostname: Some("store.example".to_owned()),
            ..plain(NetworkProtocol::Nbd, "web1")
        },
        NetworkSpec {
            hosts: Some(vec![host("mon1", Some(6789)), host("mon2", None)]),
            auth: Some(login.clone()),
            config_file: Some("/etc/ceph/ceph.conf".to_owned()),
            ..plain(NetworkProtocol::Rbd, "pool/web1")
        },
        NetworkSpec {
            hosts: None,
            snapshot: Some("old".to_owned()),
            ..plain(NetworkProtocol::Rbd, "pool/space/web1")
        },
        NetworkSpec {
            initiator: Some("iqn.2013-07.example:client".to_owned()),
            auth: Some(login.clone()),
            ..plain(NetworkProtocol::Iscsi, "iqn.2013-07.example:disks/1")
        },
        plain(NetworkProtocol::Gluster, "vol/web1.img"),
        NetworkSpec {
            identity: Some(NetworkIdentitySpec {
                user: Some("+1000".to_owned()),
                ..NetworkIdentitySpec::default()
            }),
            ..plain(NetworkProtocol::Nfs, "/srv/web1.img")
        },
        NetworkSpec {
            identity: Some(NetworkIdentitySpec {
                username: Some("fred".to_owned()),
                agent_socket: Some("/run/agent".to_owned()),
                ..NetworkIdentitySpec::default()
            }),
            known_hosts: Some("/etc/ssh/known".to_owned()),
            ..plain(NetworkProtocol::Ssh, "/srv/web1.img")
        },
        NetworkSpec {
            query: Some("a=b".to_owned()),
            ssl_verify: Some(false),
            readahead: Some(Bytes(65536)),
            timeout: Some(10),
            auth: Some(login),
            ..plain(NetworkProtocol::Https, "web1.img")
        },
        plain(NetworkProtocol::Http, "web1.img"),
        plain(NetworkProtocol::Ftp, "web1.img"),
        NetworkSpec {
            ssl_verify: Some(true),
            ..plain(NetworkProtocol::Ftps, "web1.img")
        },
    ];
    let formats = vec![Format::Raw, Format::Qcow2, Format::Vmdk, Format::Vdi];
    let access = word(DeviceAccess::ALL);
    (
        select(of_each),
        weighted(0.4, select(formats)),
        weighted(0.3, access),
    )
        .prop_map(|(network, format, access)| {
            let is_lun = access.filter(|_| network.protocol == NetworkProtocol::Iscsi);
            NetworkSpec {
                format: format.filter(|_| is_lun != Some(DeviceAccess::Lun)),
                access: is_lun,
                ..network
            }
        })
        .prop_map(BackendSpec::from)
        .boxed()
}

fn backend(host: &Host) -> BoxedStrategy<BackendSpec> {
    let device = (
        select(host.devices.clone()),
        weighted(0.3, word(DeviceAccess::ALL)),
    )
        .prop_map(|(path, access)| {
            BackendSpec::from(DeviceSpec {
                path,
                access,
                format: None,
                backing_chain: None,
            })
        });
    // Every third has a daemon of ours.
    let socket = (0_u32..1000).prop_map(|number| {
        let serves = number.is_multiple_of(3).then(|| BackingSpec {
            path: format!("/srv/img/served-{number}"),
            format: if number.is_multiple_of(2) {
                Format::Raw
            } else {
                Format::Qcow2
            },
        });
        BackendSpec::from(VhostUserBlkSpec {
            socket: format!("/run/disk-{number}.sock"),
            reconnect: None,
            reconnect_timeout: None,
            serves,
        })
    });
    prop_oneof![
        4 => raw(host),
        4 => qcow2(host),
        2 => lvm(host),
        3 => lvm_thin(host),
        3 => device,
        1 => socket,
        2 => network(),
    ]
    .boxed()
}

/// Options of one disk, as far as its kind has them.
fn disk(host: &Host) -> BoxedStrategy<DiskSpec> {
    let modes = (
        weighted(0.25, word(CacheMode::ALL)),
        weighted(0.25, word(AioMode::ALL)),
        weighted(0.25, word(Discard::ALL)),
        weighted(0.25, word(DetectZeroes::ALL)),
    );
    let device = (
        weighted(0.4, word(BusSpec::ALL)),
        weighted(0.1, word(MediaSpec::ALL)),
        weighted(0.2, 1_u32..=8),
        weighted(
            0.2,
            prop_oneof![
                Just(IoThreadSpec::Auto),
                Just(IoThreadSpec::Number(1)),
                Just(IoThreadSpec::Several(vec![1, 2])),
            ],
        ),
        weighted(0.2, select(vec![Bytes(512), Bytes(4096)])),
    );
    let switches = (
        weighted(0.15, any::<bool>()),
        weighted(0.15, any::<bool>()),
        weighted(0.1, any::<bool>()),
        weighted(0.1, any::<bool>()),
    );
    (backend(host), modes, device, switches)
        .prop_map(|(backend, modes, device, switches)| {
            let mut disk = DiskSpec::new(backend);
            let (cache, io, discard, detect_zeroes) = modes;
            let (bus, media, queues, iothread, logical) = device;
            if let BackendSpec::VhostUserBlk(socket) = &disk.backend {
                disk.queues = queues;
                if socket.serves.is_some() {
                    disk.cache = cache;
                    disk.io = io;
                    disk.discard = discard;
                    disk.detect_zeroes = detect_zeroes;
                }
                return disk;
            }
            let is_lun = match &disk.backend {
                BackendSpec::Device(device) => device.access == Some(DeviceAccess::Lun),
                BackendSpec::Network(network) => network.access == Some(DeviceAccess::Lun),
                BackendSpec::Raw(_)
                | BackendSpec::Qcow2(_)
                | BackendSpec::Lvm(_)
                | BackendSpec::LvmThin(_)
                | BackendSpec::VhostUserBlk(_)
                | BackendSpec::Zvol(_)
                | BackendSpec::Seed(_)
                | BackendSpec::Nvme(_)
                | BackendSpec::VhostVdpa(_)
                | BackendSpec::Directory(_)
                | BackendSpec::Volume(_)
                | BackendSpec::Empty(_) => false,
            };
            disk.cache = cache;
            let is_networked = matches!(disk.backend, BackendSpec::Network(_));
            disk.io = io.filter(|_| !is_networked);
            disk.discard = discard;
            disk.detect_zeroes = detect_zeroes;
            disk.queues = queues;
            disk.iothread = iothread;
            if !is_lun {
                disk.bus = bus;
                disk.media = media;
                disk.logical_block_size = logical;
            }
            if disk.bus == Some(BusSpec::Nvme) {
                disk.serial = Some("disk1".to_owned());
            }
            let (readonly, shareable, transient, copy_on_read) = switches;
            disk.readonly = readonly;
            disk.shareable = shareable;
            disk.transient = transient;
            disk.copy_on_read = copy_on_read.filter(|_| !is_lun);
            disk
        })
        .boxed()
}

fn guest() -> BoxedStrategy<GuestSpec> {
    (
        weighted(0.2, word(GuestType::ALL)),
        weighted(
            0.3,
            select(vec!["q35", "pc", "pc-q35-5.1", "pc-i440fx-3.1"]),
        ),
        weighted(0.5, 1_u32..16),
        weighted(0.5, select(vec![Bytes::gib(1), Bytes::gib(16)])),
        weighted(
            0.3,
            prop_oneof![
                Just(IoThreadCount::Auto),
                (0_u32..4).prop_map(IoThreadCount::Number)
            ],
        ),
        weighted(
            0.3,
            prop_oneof![
                Just(HugePagesSpec::No),
                Just(HugePagesSpec::DefaultSize),
                Just(HugePagesSpec::Size(Bytes(2 << 20))),
            ],
        ),
    )
        .prop_map(
            |(guest_type, machine, vcpus, memory, iothreads, hugepages)| GuestSpec {
                guest_type,
                machine: machine.map(str::to_owned),
                // Not drawn: another draw would shift all that follow.
                firmware: vcpus.zip(memory).map(|(vcpus, _)| {
                    if vcpus % 2 == 0 {
                        Firmware::Efi
                    } else {
                        Firmware::Bios
                    }
                }),
                vcpus,
                memory,
                iothreads,
                hugepages,
                ..GuestSpec::default()
            },
        )
        .boxed()
}

/// What chance brings about too seldom: discards that a thin volume never sees, and a shared image whose end direct
/// I/O cannot write.
pub(crate) fn seldom(host: &Host) -> Vec<Spec> {
    let thin = host
        .thin_volumes
        .iter()
        .map(|(group, volume, pool)| DiskSpec {
            discard: Some(Discard::Ignore),
            ..DiskSpec::new(LvmThinSpec {
                group: group.clone(),
                volume: volume.clone(),
                size: None,
                pool: pool.clone(),
                pool_size: None,
                chunk_size: None,
                zero: None,
            })
        });
    let shared = host.images.iter().map(|(path, _)| DiskSpec {
        shareable: Some(true),
        ..DiskSpec::new(RawSpec {
            path: path.clone(),
            ..RawSpec::default()
        })
    });
    let is_qcow2 = |format: &Option<String>| format.as_deref() == Some("qcow2");
    let qcow2 = host
        .images
        .iter()
        .filter(|(_, format)| is_qcow2(format))
        .map(|(path, _)| DiskSpec::new(existing_qcow2(path.clone())));
    thin.chain(shared)
        .chain(qcow2)
        .map(|disk| Spec::new(vec![disk]))
        .collect()
}

/// A qcow2 image that exists, with the options that it has.
fn existing_qcow2(path: String) -> Qcow2Spec {
    Qcow2Spec {
        path,
        ..Qcow2Spec::default()
    }
}

/// A whole spec for a host.
pub(crate) fn spec(host: &Host) -> BoxedStrategy<Spec> {
    let disks = proptest::collection::vec(disk(host), 1..4);
    (weighted(0.6, guest()), disks)
        .prop_map(|(guest, disks)| Spec {
            version: SpecVersion::V1,
            guest,
            disks,
        })
        .boxed()
}
