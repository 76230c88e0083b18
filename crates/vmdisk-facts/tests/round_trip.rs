//! Written facts read back as the same facts, and neither text nor facts make a reader or an index panic.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use vmdisk_facts::access::{QemuAccess, Socket};
use vmdisk_facts::blockdev::{
    Bcache, Crypt, Dm, LbaFormat, LoopFile, Lvm, Md, Nvme, Partition, Percent, Queue, Scsi, Zvol,
};
use vmdisk_facts::cgroup::{Cgroup, Cgroups, IoMax};
use vmdisk_facts::filesystem::{Btrfs, Ext4, Overlay, Zfs};
use vmdisk_facts::host::{
    Cpu, HugePagePool, Kernel, Kvm, KvmObstacle, Limits, Memory, NodePages, NumaNode, Qemu,
    Security,
};
use vmdisk_facts::libvirt::{Libvirt, QemuConf, QemuUser};
use vmdisk_facts::lvm_config::LvmConfig;
use vmdisk_facts::path::{
    BackingFact, DeclaredVerdict, Dio, DioAlign, Inode, Lock, Mode, TrialOutcome,
};
use vmdisk_facts::{
    BlockDevice, BlockKind, CollectError, Collector, DeviceNumber, Directory, Fact, Facts, File,
    FileKind, Filesystem, FsKind, HostIndex, HostName, ImageHeader, Mount, OptionValue, Reason,
    Redaction, Unknown, Version,
};

/// Any text, often text that YAML could read as another type.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z/:,.-]{0,12}",
        2 => any::<String>(),
        1 => prop::sample::select(vec![
            "", "null", "~", "true", "no", "1.0", "0600", "0x1f", "1e3", ".inf", "-", "- a", "a: b", "# c", "'", "\"", "a\nb",
            "a\n", " a", "<<", "!x", "&a", "*a", "{", "2026-11-20", "\u{feff}", "\u{85}", "\u{0}", "unknown", "detail",
        ])
        .prop_map(str::to_owned),
    ]
}

fn fact<T: std::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Fact<T>> {
    prop_oneof![
        4 => value.prop_map(Fact::Known),
        1 => Just(Fact::Absent),
        1 => (text(), text()).prop_map(|(word, detail)| Fact::Unknown(Unknown::new(Reason::from(word.as_str()), detail))),
        1 => Just(Fact::NotCollected),
    ]
    .boxed()
}

fn words() -> BoxedStrategy<Fact<Vec<String>>> {
    fact(vec(text(), 0..3))
}

fn version() -> BoxedStrategy<Fact<Version>> {
    fact(
        (any::<u32>(), any::<u32>(), any::<u32>())
            .prop_map(|(major, minor, micro)| Version(major, minor, micro)),
    )
}

/// Few ids, so that references meet, also in circles.
fn id() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "d"]).prop_map(str::to_owned)
}

/// Few paths, so that lookups meet.
fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["/", "/a", "/a/b", "/a/b/c.img", "/dev/x", "a", "", "//", "/a/../b", "7:0"]).prop_map(str::to_owned),
        1 => text(),
    ]
}

fn device_number() -> impl Strategy<Value = DeviceNumber> {
    (0_u32..9, 0_u32..9).prop_map(|(major, minor)| DeviceNumber { major, minor })
}

fn dio() -> impl Strategy<Value = Dio> {
    let outcome = || fact(text().prop_map(TrialOutcome::from));
    let align = prop::sample::select(vec![DioAlign::Set, DioAlign::Unset]);
    let verdict = prop::sample::select(vec![
        DeclaredVerdict::Unsupported,
        DeclaredVerdict::AcceptedButBuffered,
        DeclaredVerdict::Direct,
        DeclaredVerdict::DirectUnstableChecksums,
        DeclaredVerdict::DirectUnstableMirrors,
        DeclaredVerdict::DirectCowOrBuffered,
    ]);
    let number = || fact(any::<u64>());
    (
        fact(align),
        number(),
        number(),
        outcome(),
        outcome(),
        outcome(),
        fact(verdict),
    )
        .prop_map(
            |(dioalign, mem, off, open, nowait_overwrite, w512, verdict)| Dio {
                dioalign,
                mem,
                off,
                open,
                nowait_overwrite,
                w512,
                verdict,
            },
        )
}

fn image() -> impl Strategy<Value = ImageHeader> {
    let flag = || fact(any::<bool>());
    let small = || fact(any::<u32>());
    let backing = (text(), fact(text())).prop_map(|(path, format)| BackingFact { path, format });
    let numbers = (
        small(),
        fact(any::<u64>()),
        fact(any::<u64>()),
        small(),
        small(),
    );
    let flags = (flag(), flag(), flag(), flag());
    (
        numbers,
        flags,
        (fact(text()), fact(text()), fact(text()), fact(text())),
        fact(backing),
    )
        .prop_map(
            |(
                (version, virtual_size, cluster, snapshots, refcount_bits),
                (ext_l2, dirty, corrupt, lazy),
                (format, encryption, compression, data_file),
                backing,
            )| ImageHeader {
                probed: format.clone(),
                format,
                version,
                virtual_size,
                cluster,
                ext_l2,
                dirty,
                corrupt,
                lazy,
                encryption,
                compression,
                snapshots,
                refcount_bits,
                data_file,
                backing,
            },
        )
}

fn qemu_access() -> impl Strategy<Value = QemuAccess> {
    let flag = || fact(any::<bool>());
    (flag(), fact(path()), flag(), flag()).prop_map(|(search, stopped_at, read, write)| {
        QemuAccess {
            search,
            stopped_at,
            read,
            write,
        }
    })
}

fn file() -> impl Strategy<Value = File> {
    let flag = || fact(any::<bool>());
    let kind = prop::sample::select(vec![
        FileKind::Regular,
        FileKind::Block,
        FileKind::Socket,
        FileKind::Other,
    ]);
    let inode =
        (device_number(), any::<u64>()).prop_map(|(device, number)| Inode { device, number });
    let lock = flag().prop_map(|writer| Lock { writer });
    let socket = flag().prop_map(|listening| Socket { listening });
    let names = (path(), fact(path()), fact(id()));
    let facts = (
        flag(),
        fact(kind),
        fact(inode),
        fact(device_number()),
        fact((0_u32..0o10000).prop_map(Mode)),
    );
    let sizes = (
        fact(any::<u64>()),
        fact(any::<u64>()),
        fact(any::<u64>()),
        fact(any::<u32>()),
        fact(any::<u32>()),
    );
    (
        names,
        facts,
        sizes,
        ((flag(), flag(), flag(), flag()), (flag(), flag(), flag())),
        (dio(), fact(text()), fact(qemu_access()), fact(socket)),
        fact(lock),
        fact(image()),
    )
        .prop_map(
            |(
                (path, real_path, mount),
                (present, kind, inode, device, mode),
                (size, alloc, extents, uid, gid),
                (
                    (nocow, compressed, extents_capped, shared_extents),
                    (immutable, append_only, swap),
                ),
                (dio, label, qemu_access, socket),
                lock,
                image,
            )| File {
                path,
                present,
                kind,
                real_path,
                mount,
                inode,
                device,
                mode,
                uid,
                gid,
                size,
                alloc,
                nocow,
                compressed,
                immutable,
                append_only,
                swap,
                extents,
                extents_capped,
                shared_extents,
                unwritten: Fact::Known(u64::MAX),
                label,
                qemu_access,
                socket,
                dio,
                lock,
                image,
            },
        )
}

fn directory() -> impl Strategy<Value = Directory> {
    let flag = || fact(any::<bool>());
    (
        path(),
        flag(),
        fact(path()),
        fact(id()),
        fact((0_u32..0o10000).prop_map(Mode)),
        flag(),
        flag(),
        (dio(), fact(text()), fact(qemu_access())),
    )
        .prop_map(
            |(
                path,
                present,
                real_path,
                mount,
                mode,
                nocow,
                compressed,
                (dio, label, qemu_access),
            )| Directory {
                path,
                present,
                real_path,
                mount,
                mode,
                uid: Fact::Known(0),
                gid: Fact::NotCollected,
                nocow,
                compressed,
                label,
                qemu_access,
                dio,
            },
        )
}

/// What single drivers say.
type Drivers = (
    Fact<Crypt>,
    Fact<Nvme>,
    Fact<Scsi>,
    Fact<Bcache>,
    Fact<Zvol>,
);

fn drivers() -> impl Strategy<Value = Drivers> {
    let flag = || fact(any::<bool>());
    let number = || fact(any::<u64>());
    let crypt =
        (flag(), fact(text()), words()).prop_map(|(allow_discards, cipher, options)| Crypt {
            allow_discards,
            cipher,
            options,
        });
    let format = (number(), number(), fact(any::<u32>()), flag()).prop_map(
        |(block, metadata, performance, in_use)| LbaFormat {
            block,
            metadata,
            performance,
            in_use,
        },
    );
    let nvme = (fact(text()), fact(any::<u32>()), fact(vec(format, 0..3))).prop_map(
        |(transport, namespace, formats)| Nvme {
            transport,
            namespace,
            formats,
        },
    );
    let scsi = (fact(text()), fact(text()), fact(text()), flag()).prop_map(
        |(state, host, cache_type, thin_provisioning)| Scsi {
            state,
            host,
            cache_type,
            thin_provisioning,
            provisioning_mode: Fact::Absent,
        },
    );
    let bcache = (fact(text()), fact(text())).prop_map(|(mode, state)| Bcache { mode, state });
    let zvol = (fact(text()), number()).prop_map(|(dataset, volblocksize)| Zvol {
        dataset,
        volblocksize,
        ..Zvol::default()
    });
    (
        fact(crypt),
        fact(nvme),
        fact(scsi),
        fact(bcache),
        fact(zvol),
    )
}

fn queue() -> impl Strategy<Value = Queue> {
    let number = || fact(any::<u64>());
    let flag = || fact(any::<bool>());
    (
        (number(), number(), number()),
        flag(),
        (fact(text()), fact(text())),
    )
        .prop_map(
            |((logical, discard_max, wbt_lat_usec), rotational, (scheduler, write_cache))| Queue {
                logical,
                discard_max,
                wbt_lat_usec,
                rotational,
                scheduler,
                write_cache,
                ..Queue::default()
            },
        )
}

fn block_device() -> impl Strategy<Value = BlockDevice> {
    let flag = || fact(any::<bool>());
    let ids = || fact(vec(id(), 0..3));
    let kind = prop_oneof![
        prop::sample::select(BlockKind::NAMED.to_vec()),
        text().prop_map(BlockKind::from)
    ];
    let partition =
        (fact(any::<u32>()), fact(id()), fact(any::<u64>())).prop_map(|(number, parent, start)| {
            Partition {
                number,
                parent,
                start,
                alignment_offset: Fact::Absent,
            }
        });
    let dm = fact(text()).prop_map(|name| Dm { name });
    let percent = || fact((0_u32..20_000).prop_map(Percent));
    let lvm = (
        fact(text()),
        flag(),
        percent(),
        percent(),
        fact(any::<u64>()),
    )
        .prop_map(|(vg, zero, data_percent, metadata_percent, chunk)| Lvm {
            vg,
            zero,
            data_percent,
            metadata_percent,
            chunk,
            ..Lvm::default()
        });
    let md = (fact(text()), fact(any::<u32>())).prop_map(|(level, degraded)| Md {
        level,
        degraded,
        ..Md::default()
    });
    let loop_file = (fact(path()), flag()).prop_map(|(backing_file, dio)| LoopFile {
        backing_file,
        dio,
        ..LoopFile::default()
    });
    let names = (id(), fact(device_number()), kind, vec(path(), 0..3));
    let graph = (vec(id(), 0..3), ids(), ids(), fact(partition));
    let makers = (fact(dm), fact(lvm), fact(md), fact(loop_file));
    (
        names,
        graph,
        makers,
        (words(), words(), flag(), flag()),
        (queue(), drivers()),
    )
        .prop_map(
            |(
                (id, dev, kind, paths),
                (slaves, holders, partitions, partition),
                (dm, lvm, md, loop_file),
                (by_id, mounted_at, read_only, swap),
                (queue, (crypt, nvme, scsi, bcache, zvol)),
            )| BlockDevice {
                id,
                dev,
                kind,
                paths,
                by_id,
                size: Fact::Known(u64::MAX),
                read_only,
                removable: Fact::NotCollected,
                mounted_at,
                swap,
                holders,
                partitions,
                slaves,
                partition,
                queue,
                dm,
                lvm,
                md,
                loop_file,
                crypt,
                nvme,
                scsi,
                bcache,
                zvol,
                model: Fact::Absent,
                paths_up: Fact::NotCollected,
            },
        )
}

fn mount() -> impl Strategy<Value = Mount> {
    let value = prop_oneof![
        any::<bool>().prop_map(OptionValue::Flag),
        any::<i64>().prop_map(OptionValue::Number),
        text().prop_map(OptionValue::Text)
    ];
    (
        id(),
        path(),
        fact(text()),
        fact(id()),
        btree_map(text(), fact_of_option(value), 0..4),
    )
        .prop_map(|(id, point, fstype, fs, options)| Mount {
            id,
            point,
            fstype,
            source: Fact::Absent,
            fs,
            options: options
                .into_iter()
                .filter(|(_, fact)| !fact.is_not_collected())
                .collect(),
        })
}

fn fact_of_option(
    value: impl Strategy<Value = OptionValue> + 'static,
) -> BoxedStrategy<Fact<OptionValue>> {
    fact(value)
}

fn filesystem() -> impl Strategy<Value = Filesystem> {
    let kind = prop_oneof![
        prop::sample::select(FsKind::NAMED.to_vec()),
        text().prop_map(FsKind::from)
    ];
    let btrfs = (words(), fact(text())).prop_map(|(data_profile, checksum)| Btrfs {
        data_profile,
        checksum,
        ..Btrfs::default()
    });
    let ext4 = fact(text()).prop_map(|data_mode| Ext4 { data_mode });
    let zfs = (version(), fact(text())).prop_map(|(version, direct)| Zfs {
        version,
        direct,
        ..Zfs::default()
    });
    let overlay = (fact(path()), words()).prop_map(|(upper, lower)| Overlay { upper, lower });
    (
        id(),
        kind,
        fact(vec(id(), 0..3)),
        (fact(btrfs), fact(ext4), fact(zfs), fact(overlay)),
        fact(any::<u64>()),
    )
        .prop_map(
            |(id, kind, devices, (btrfs, ext4, zfs, overlay), free_bytes)| Filesystem {
                id,
                kind,
                magic: Fact::Absent,
                free_bytes,
                total_bytes: Fact::Known(0),
                devices,
                btrfs,
                ext4,
                zfs,
                overlay,
            },
        )
}

fn cgroups() -> impl Strategy<Value = Cgroups> {
    let number = || fact(any::<u64>());
    let limits = (fact(device_number()), number(), number()).prop_map(
        |(dev, read_bytes, write_requests)| IoMax {
            dev,
            read_bytes,
            write_requests,
            ..IoMax::default()
        },
    );
    let group = move || {
        let limits = limits.clone();
        (fact(path()), fact(vec(limits, 0..3))).prop_map(|(path, io_max)| Cgroup { path, io_max })
    };
    (fact(any::<u32>()), fact(group()), fact(group())).prop_map(|(version, own, machine)| Cgroups {
        version,
        own,
        machine,
    })
}

fn libvirt() -> impl Strategy<Value = Libvirt> {
    let flag = || fact(any::<bool>());
    let conf = (fact(text()), flag(), words()).prop_map(|(user, dynamic_ownership, namespaces)| {
        QemuConf {
            user,
            dynamic_ownership,
            namespaces,
            ..QemuConf::default()
        }
    });
    let user = (
        fact(text()),
        fact(any::<u32>()),
        fact(vec(any::<u32>(), 0..3)),
    )
        .prop_map(|(name, uid, groups)| QemuUser {
            is_configured: Fact::NotCollected,
            name,
            uid,
            gid: Fact::Absent,
            groups,
        });
    (version(), fact(conf), fact(user)).prop_map(|(version, qemu_conf, qemu_user)| Libvirt {
        version,
        qemu_conf,
        qemu_user,
        ..Libvirt::default()
    })
}

fn lvm_config() -> impl Strategy<Value = LvmConfig> {
    let flag = || fact(any::<bool>());
    (flag(), fact(any::<u32>())).prop_map(|(scan_lvs, thin_pool_autoextend_threshold)| LvmConfig {
        scan_lvs,
        thin_pool_autoextend_threshold,
        ..LvmConfig::default()
    })
}

fn host_groups() -> impl Strategy<Value = Facts> {
    let flag = || fact(any::<bool>());
    let number = || fact(any::<u64>());
    let cmdline = btree_map(text(), fact(text()), 0..3).prop_map(|map| {
        map.into_iter()
            .filter(|(_, fact)| !fact.is_not_collected())
            .collect::<BTreeMap<_, _>>()
    });
    let kernel =
        (fact(text()), version(), cmdline).prop_map(|(release, version, cmdline)| Kernel {
            release,
            version,
            vendor: Fact::Known("ubuntu".to_owned()),
            cmdline,
        });
    let on_nodes = btree_map(
        any::<u64>(),
        (number(), number()).prop_map(|(nr, free)| NodePages { nr, free }),
        0..3,
    );
    let pages = (number(), number(), on_nodes).prop_map(|(nr, free, nodes)| HugePagePool {
        nr,
        free,
        reserved: Fact::Absent,
        overcommit: Fact::NotCollected,
        nodes,
    });
    let nodes = btree_map(
        any::<u64>(),
        fact(text()).prop_map(|cpus| NumaNode { cpus }),
        0..3,
    );
    let memory =
        (number(), btree_map(any::<u64>(), pages, 0..3)).prop_map(|(total_bytes, hugepages)| {
            Memory {
                total_bytes,
                available_bytes: Fact::NotCollected,
                hugepages,
            }
        });
    let qemu = (version(), words(), btree_map(text(), any::<bool>(), 0..3)).prop_map(
        |(version, aio, capabilities)| Qemu {
            version,
            aio,
            capabilities,
            ..Qemu::default()
        },
    );
    let limits =
        (fact(any::<i64>()), number()).prop_map(|(io_uring_group, memlock_bytes)| Limits {
            io_uring_group,
            memlock_bytes,
            ..Limits::default()
        });
    let errors = vec((text(), text(), text()), 0..3).prop_map(|all| {
        all.into_iter()
            .map(|(what, word, detail)| CollectError {
                what,
                reason: Reason::from(word.as_str()),
                detail,
            })
            .collect()
    });
    (
        kernel,
        memory,
        fact(vec(qemu, 0..3)),
        limits,
        errors,
        (
            (flag(), fact(text()), words()),
            nodes,
            cgroups(),
            fact(libvirt()),
            lvm_config(),
        ),
    )
        .prop_map(
            |(
                kernel,
                memory,
                qemu,
                limits,
                errors,
                ((proven, level, groups), nodes, cgroups, libvirt, lvm_config),
            )| Facts {
                collector: Collector {
                    groups,
                    ..Collector::default()
                },
                collected_at: Fact::Known("2026-11-20T05:00:00Z".to_owned()),
                host: HostName {
                    id: level.clone(),
                    ..HostName::default()
                },
                redaction: Fact::Known(Redaction {
                    level,
                    ..Redaction::default()
                }),
                kernel,
                cpu: Cpu {
                    count: Fact::Known(2),
                    nodes,
                    ..Cpu::default()
                },
                kvm: Kvm {
                    proven,
                    obstacle: Fact::Known(KvmObstacle::ProcessorOrFirmware),
                    ..Kvm::default()
                },
                security: Security {
                    selinux: Fact::Known("enforcing".to_owned()),
                    ..Security::default()
                },
                cgroups,
                lvm_config,
                limits,
                memory,
                qemu,
                libvirt,
                errors,
                ..Facts::default()
            },
        )
}

fn facts() -> impl Strategy<Value = Facts> {
    (
        host_groups(),
        vec(mount(), 0..4),
        vec(filesystem(), 0..4),
        vec(directory(), 0..4),
        vec(file(), 0..4),
        vec(block_device(), 0..5),
    )
        .prop_map(
            |(host, mounts, filesystems, dirs, files, blockdevs)| Facts {
                mounts,
                filesystems,
                dirs,
                files,
                blockdevs,
                ..host
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_facts_read_back_as_the_same_facts(facts in facts()) {
        let json = facts.to_json();
        prop_assert_eq!(&Facts::from_json(&json).expect("our own JSON is readable").facts, &facts);
        let yaml = facts.to_yaml();
        prop_assert_eq!(&Facts::from_yaml(&yaml).expect("our own YAML is readable").facts, &facts);
        prop_assert_eq!(&Facts::parse(&yaml).expect("our own YAML is recognised").facts, &facts);
        prop_assert_eq!(Facts::from_yaml(&yaml).expect("our own YAML is readable").facts.to_json(), json);
    }

    #[test]
    fn no_facts_make_a_question_panic_or_run_forever(facts in facts(), other in path()) {
        let index = HostIndex::new(&facts);
        let asked = facts.files.iter().map(|file| file.path.as_str());
        for path in asked.chain(facts.dirs.iter().map(|directory| directory.path.as_str())).chain([other.as_str()]) {
            let _ = (index.file(path), index.directory(path), index.mount_of(path), index.filesystem_of(path));
            let _ = (index.block_device(path), index.direct_io(path), index.nocow(path), index.identity(path));
            let _ = index.leaves_of(path);
        }
        for device in &facts.blockdevs {
            let walked = index.walk_down(device);
            prop_assert!(walked.len() <= facts.blockdevs.len());
            prop_assert!(std::ptr::eq(walked[0], device));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = Facts::parse(&text);
        let _ = Facts::from_json(&text);
    }

    #[test]
    fn no_damaged_file_makes_the_reader_panic(facts in facts(), at in any::<prop::sample::Index>(), with in any::<char>()) {
        for whole in [facts.to_json(), facts.to_yaml()] {
            let places: Vec<usize> = whole.char_indices().map(|(place, _)| place).collect();
            let place = places[at.index(places.len())];
            let mut damaged = whole.clone();
            let next = whole[place..].chars().next().map_or(place, |old| place + old.len_utf8());
            damaged.replace_range(place..next, with.encode_utf8(&mut [0; 4]));
            let _ = Facts::parse(&damaged);
            let _ = Facts::parse(&whole[..place]);
        }
    }
}
