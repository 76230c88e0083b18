//! What is chosen for which backend on which host: cache, AIO, discard and sizes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use crate::common;
use crate::common::host::{choice, host, planned, planned_on};
use vmdisk_facts::{Facts, Target};
use vmdisk_model::*;
use vmdisk_plan::*;

#[test]
fn the_cache_mode_follows_what_direct_io_does_there() {
    for (disk, cache, rule) in [
        ("raw:/ext4/a.img,size=1G", "none", None),
        ("qcow2:/xfs4k/a.qcow2,size=1G", "none", None),
        ("raw:/btrfs/a.img", "writeback", Some("btrfs-dio-buffered")),
        ("raw:/btrfs/nocow/a.img,size=1G", "none", None),
        (
            "raw:/mirror/a.img,size=1G",
            "writeback",
            Some("btrfs-dio-buffered"),
        ),
        ("raw:/zfs/a.img,size=1G", "writeback", None),
        (
            "raw:/tmp/a.img,size=1G",
            "writeback",
            Some("odirect-silently-buffered"),
        ),
        (
            "raw:/squash/a.iso,media=cdrom",
            "writeback",
            Some("odirect-unsupported"),
        ),
        ("raw:/elsewhere/a.img,size=1G", "writeback", None),
        (
            "raw:/btrfs/a.img,shareable=on",
            "none",
            Some("shareable-cached"),
        ),
        (
            "raw:/btrfs/a.img,io=native",
            "none",
            Some("native-without-direct"),
        ),
        ("raw:/btrfs/a.img,cache=unsafe", "unsafe", None),
        ("lvm:vg0/old", "none", None),
        ("device:/dev/disk/by-id/unknown", "none", None),
    ] {
        let plan = planned(&[disk]);
        let (value, decided, reason) = choice(&plan, "cache");
        assert_eq!((value, decided), (cache, rule), "{disk}: {reason}");
        assert_eq!(
            plan.domain.disks[0].backend.cache,
            CacheMode::from_word(cache)
        );
    }
    let plan = planned(&["raw:/elsewhere/a.img,size=1G"]);
    assert!(choice(&plan, "cache").2.contains("not known"));
}

#[test]
fn new_files_are_written_in_place_where_the_mount_says_so() {
    for (option, expected, is_mounted_so) in [("null", "false", false), ("true", "true", true)] {
        let text = crate::common::host::HOST;
        let text = text.replace("nodatacow: null", &format!("nodatacow: {option}"));
        let facts = Facts::from_yaml(&text).unwrap().facts;
        let plan = planned_on(&facts, &Target::default(), &["raw:/mirror/a.img,size=1G"]);
        let (value, _, reason) = choice(&plan, "nocow");
        assert_eq!(value, expected, "{reason}");
        assert_eq!(reason.contains("already written in place"), is_mounted_so);
    }
}

#[test]
fn a_backing_image_that_refuses_direct_io_decides_for_the_whole_chain() {
    let disk = "qcow2:/ext4/a.qcow2,backing.path=/squash/base.img,backing.format=raw";
    let plan = planned(&[disk]);
    let (value, rule, reason) = choice(&plan, "cache");
    assert_eq!((value, rule), ("writeback", Some("odirect-unsupported")));
    assert!(reason.contains("backing image"), "{reason}");
}

#[test]
fn kernels_that_store_wrong_checksums_get_no_direct_io() {
    let mut facts = host();
    facts.kernel.version = vmdisk_facts::Version(6, 1, 192).into();
    let target = Target::from_facts(&facts);
    for (disk, rule) in [
        ("raw:/btrfs/a.img", "btrfs-dio-csum-corruption"),
        ("raw:/mirror/a.img,size=1G", "btrfs-dio-csum-corruption"),
    ] {
        let plan = planned_on(&facts, &target, &[disk]);
        assert_eq!(choice(&plan, "cache").1, Some(rule), "{disk}");
        assert_eq!(
            plan.domain.disks[0].backend.cache,
            Some(CacheMode::Writeback)
        );
    }
}

#[test]
fn the_way_to_the_kernel_follows_the_cache_mode_and_the_storage() {
    for (disk, io, rule) in [
        ("lvm:vg0/old", "native", None),
        ("device:/dev/nvme0n1", "native", None),
        (
            "raw:/ext4/a.img,size=1G,preallocation=falloc",
            "native",
            None,
        ),
        (
            "qcow2:/ext4/a.img,size=1G,preallocation=full",
            "native",
            None,
        ),
        ("raw:/ext4/full.img", "native", None),
        ("raw:/ext4/sparse.img", "io_uring", None),
        ("raw:/ext4/a.img,size=1G", "io_uring", None),
        (
            "qcow2:/ext4/a.img,size=1G,preallocation=metadata",
            "io_uring",
            None,
        ),
        (
            "raw:/ext4/full.img,cache=writeback",
            "threads",
            Some("native-without-direct"),
        ),
        ("raw:/btrfs/a.img", "threads", Some("native-without-direct")),
        (
            "raw:/btrfs/a.img,cache=none",
            "threads",
            Some("io-native-on-buffered-dio"),
        ),
    ] {
        let plan = planned(&[disk]);
        let (value, decided, reason) = choice(&plan, "io");
        assert_eq!((value, decided), (io, rule), "{disk}: {reason}");
        assert_eq!(plan.domain.disks[0].backend.aio, AioMode::from_word(io));
    }
}

#[test]
fn io_uring_needs_leave_from_kernel_qemu_and_libvirt() {
    let sparse = "raw:/ext4/sparse.img";
    let on = |change: &dyn Fn(&mut Facts), target: &str| {
        let mut facts = host();
        change(&mut facts);
        let asked = target.parse().unwrap_or_default();
        let target = Target::or(asked, Target::from_facts(&facts));
        let plan = planned_on(&facts, &target, &[sparse]);
        let (value, _, reason) = choice(&plan, "io");
        (value.to_owned(), reason.to_owned())
    };
    assert_eq!(on(&|_| {}, "").0, "io_uring");
    type Change<'a> = &'a dyn Fn(&mut Facts);
    let changes: [(Change<'_>, &str, &str); 6] = [
        (
            &|facts| facts.limits.io_uring_disabled = 2.into(),
            "",
            "kernel.io_uring_disabled is 2: no process gets io_uring",
        ),
        (
            &|facts| facts.limits = Default::default(),
            "",
            "not known whether io_uring is allowed",
        ),
        (
            &|facts| facts.limits.memlock_bytes = 0.into(),
            "",
            "RLIMIT_MEMLOCK",
        ),
        (
            &|facts| facts.qemu = vmdisk_facts::Fact::NotCollected,
            "",
            "not known that this QEMU",
        ),
        (&|_| {}, "libvirt=6.0", "lacks libvirt-io-uring"),
        (&|_| {}, "qemu=7.1", "hangs in QEMU 7.1"),
    ];
    for (change, target, why) in changes {
        let (value, reason) = on(change, target);
        assert_eq!(value, "threads", "{why}");
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn native_aio_stops_where_the_kernel_has_no_requests_left() {
    let mut facts = host();
    facts.limits.aio_nr = (65536 - 1024).into();
    let target = Target::from_facts(&facts);
    let plan = planned_on(&facts, &target, &["lvm:vg0/a", "lvm:vg0/b"]);
    let modes: Vec<_> = plan
        .domain
        .disks
        .iter()
        .map(|disk| disk.backend.aio)
        .collect();
    assert_eq!(modes, [Some(AioMode::Native), Some(AioMode::Threads)]);
}

#[test]
fn discards_pass_where_they_give_space_back() {
    for (disk, discard, rule) in [
        (
            "qcow2:/ext4/a.qcow2,size=1G",
            "unmap",
            Some("discard-missing-thin"),
        ),
        ("qcow2:/ext4/a.qcow2", "unmap", Some("discard-missing-thin")),
        (
            "raw:/ext4/a.img,size=1G",
            "unmap",
            Some("discard-missing-thin"),
        ),
        (
            "raw:/ext4/sparse.img",
            "unmap",
            Some("discard-missing-thin"),
        ),
        ("raw:/ext4/full.img", "ignore", None),
        ("raw:/ext4/a.img,size=1G,preallocation=full", "ignore", None),
        ("raw:/elsewhere/a.img", "ignore", None),
        (
            "lvm-thin:fast/new,pool=pool0,size=1G",
            "unmap",
            Some("discard-missing-thin"),
        ),
        ("lvm:fast/thin", "unmap", Some("discard-missing-thin")),
        ("lvm-thin:other/thin", "unmap", Some("discard-missing-thin")),
        ("lvm:fast/old", "unmap", None),
        ("lvm:vg0/old", "ignore", Some("discard-dropped")),
        ("lvm:other/new,size=1G", "ignore", None),
        (
            "raw:/ext4/full.img,detect-zeroes=unmap",
            "unmap",
            Some("detect-zeroes-unmap-no-discard"),
        ),
    ] {
        let plan = planned(&[disk]);
        let (value, decided, reason) = choice(&plan, "discard");
        assert_eq!((value, decided), (discard, rule), "{disk}: {reason}");
        assert_eq!(
            plan.domain.disks[0].backend.discard,
            Discard::from_word(discard)
        );
    }
    for disk in [
        "raw:/ext4/a.img,readonly=on",
        "raw:/ext4/a.iso,media=cdrom",
        "lun:/dev/disk/by-id/x",
    ] {
        assert_eq!(
            planned(&[disk]).domain.disks[0].backend.discard,
            None,
            "{disk}"
        );
    }
}

#[test]
fn the_guest_is_told_how_much_a_discard_must_cover() {
    for (disk, granularity) in [
        ("lvm:fast/thin", Some(262_144)),
        ("lvm-thin:fast/new,pool=pool0,size=1G", Some(262_144)),
        (
            "lvm-thin:fast/new,pool=fresh,size=1G,pool-size=9G,chunk-size=128K",
            Some(131_072),
        ),
        (
            "lvm-thin:fast/new,pool=fresh,size=1G,pool-size=9G",
            Some(65_536),
        ),
        ("lvm:fast/thin,discard=ignore", None),
        ("lvm:fast/thin,bus=sata", None),
        ("lvm:fast/old", None),
        ("raw:/ext4/a.img,size=1G", None),
    ] {
        let frontend = &planned(&[disk]).domain.disks[0].frontend;
        assert_eq!(frontend.discard_granularity, granularity, "{disk}");
    }
    let older = "libvirt=9.0"
        .parse::<Target>()
        .unwrap()
        .or(Target::from_facts(&host()));
    let plan = planned_on(&host(), &older, &["lvm:fast/thin"]);
    assert_eq!(plan.domain.disks[0].frontend.discard_granularity, None);
}

#[test]
fn a_preallocated_qcow2_image_keeps_its_clusters() {
    let disk = "qcow2:/ext4/a.qcow2,size=1G,preallocation=falloc";
    let plan = planned(&[disk]);
    assert_eq!(
        plan.domain.disks[0].backend.discard_no_unref,
        Some(Switch::On)
    );
    let (_, _, reason) = choice(&plan, "discard-no-unref");
    assert!(reason.starts_with("the image is preallocated"), "{reason}");
    let older = "qemu=7.2"
        .parse::<Target>()
        .unwrap()
        .or(Target::from_facts(&host()));
    let plan = planned_on(&host(), &older, &[disk]);
    assert_eq!(plan.domain.disks[0].backend.discard_no_unref, None);
}

#[test]
fn sector_sizes_are_those_of_the_storage_as_far_as_that_does_no_harm() {
    let sizes = |disks: &[&str]| {
        let plan = planned(disks);
        let frontend = &plan.domain.disks.last().unwrap().frontend;
        (frontend.logical_block_size, frontend.physical_block_size)
    };
    let first = "raw:/elsewhere/boot.img";
    for (disk, found) in [
        // New disks beside the one that is booted.
        ("raw:/xfs4k/a.img,size=1G", (Some(4096), Some(4096))),
        (
            "raw:/xfs4k/a.img,size=1G,cache=writeback",
            (Some(4096), Some(4096)),
        ),
        (
            "qcow2:/xfs4k/a.img,size=1G,bus=scsi",
            (Some(4096), Some(4096)),
        ),
        ("lvm:vg0/new,size=1G", (Some(4096), Some(4096))),
        ("raw:/xfs4k/a.img,size=1G,bus=sata", (None, Some(4096))),
        ("raw:/btrfs/a.img,size=1G", (None, Some(4096))),
        ("raw:/ext4/a.img,size=1G", (None, None)),
        ("lvm:fast/new,size=1G", (None, None)),
        // Disks with a partition table.
        ("raw:/xfs4k/a.img", (None, Some(4096))),
        ("lvm:vg0/old", (None, Some(4096))),
        ("raw:/btrfs/a.img", (None, None)),
        ("raw:/xfs4k/a.img,bus=sata", (None, None)),
        (
            "qcow2:/xfs4k/a.img,backing.path=/xfs4k/b.img,backing.format=raw",
            (None, Some(4096)),
        ),
        ("raw:/xfs4k/a.iso,media=cdrom", (None, None)),
        // As asked.
        (
            "raw:/ext4/a.img,logical-block-size=4096",
            (Some(4096), Some(4096)),
        ),
        (
            "raw:/ext4/a.img,physical-block-size=4096",
            (None, Some(4096)),
        ),
        (
            "raw:/xfs4k/a.img,size=1G,logical-block-size=512",
            (Some(512), Some(4096)),
        ),
    ] {
        assert_eq!(sizes(&[first, disk]), found, "{disk}");
    }
}

#[test]
fn a_pc_can_boot_from_the_disk_that_it_boots_from() {
    let sizes = |disks: &[&str], arch: Option<Architecture>| {
        let mut spec = common::host::spec(disks);
        spec.guest.as_mut().unwrap().arch = arch;
        let plan = plan(&spec, &host(), &Target::from_facts(&host())).unwrap();
        let sizes = |disk: &Disk| disk.frontend.logical_block_size;
        plan.domain.disks.iter().map(sizes).collect::<Vec<_>>()
    };
    let new = "raw:/xfs4k/a.img,size=1G";
    let other = "raw:/xfs4k/b.img,size=1G";
    assert_eq!(sizes(&[new, other], None), [Some(512), Some(4096)]);
    let booted = "raw:/xfs4k/b.img,size=1G,boot=1";
    assert_eq!(sizes(&[new, booted], None), [Some(4096), Some(512)]);
    let cdrom = "raw:/elsewhere/a.iso,media=cdrom";
    assert_eq!(sizes(&[cdrom, new], None), [None, Some(512)]);
    // UEFI drives such disks, and so does the firmware of other machines.
    let mut with_uefi = common::host::spec(&[new, other]);
    with_uefi.guest.as_mut().unwrap().firmware = Some(Firmware::Efi);
    let plan_of_uefi = plan(&with_uefi, &host(), &Target::from_facts(&host())).unwrap();
    let first = &plan_of_uefi.domain.disks[0].frontend;
    assert_eq!(first.logical_block_size, Some(4096));
    let aarch64 = Some(Architecture::Aarch64);
    assert_eq!(sizes(&[new, other], aarch64), [Some(4096), Some(4096)]);
}

#[test]
fn large_qcow2_images_keep_their_tables_in_memory() {
    for (disk, size) in [
        ("qcow2:/ext4/a.qcow2,size=256G", None),
        // Larger clusters have smaller tables; 2 MiB is the most.
        ("qcow2:/ext4/a.qcow2,size=1T", None),
        ("qcow2:/ext4/a.qcow2,size=16T", Some(Bytes(72 << 20))),
        (
            "qcow2:/ext4/a.qcow2,size=1T,cluster-size=64K",
            Some(Bytes(129 << 20)),
        ),
        ("qcow2:/ext4/a.qcow2,size=1T,cluster-size=2M", None),
        (
            "qcow2:/ext4/a.qcow2,size=256G,extended-l2=on",
            Some(Bytes(65 << 20)),
        ),
        ("qcow2:/ext4/large.qcow2", Some(Bytes(129 << 20))),
        ("qcow2:/elsewhere/large.qcow2", None),
        (
            "qcow2:/ext4/large.qcow2,metadata-cache-size=1M",
            Some(Bytes(1 << 20)),
        ),
    ] {
        let plan = planned(&[disk]);
        assert_eq!(
            plan.domain.disks[0].backend.metadata_cache_size, size,
            "{disk}"
        );
    }
}

#[test]
fn large_new_qcow2_images_have_large_clusters() {
    for (options, cluster) in [
        ("size=256G", None),
        ("size=257G", Some(128)),
        ("size=1T", Some(256)),
        ("size=4T", Some(1024)),
        ("size=16T", Some(2048)),
        ("size=4T,cluster-size=64K", Some(64)),
        ("size=4T,extended-l2=on", None),
        (
            "size=4T,backing.path=/ext4/base.raw,backing.format=raw",
            None,
        ),
    ] {
        let plan = planned(&[&format!("qcow2:/ext4/a.qcow2,{options}")]);
        let image = plan.domain.disks[0].backend.image().unwrap();
        let Some(Creation::Qcow2(creation)) = &image.creation else {
            panic!("{options}: {image:?}");
        };
        let kib = cluster.map(|kib: u64| Bytes(kib << 10));
        assert_eq!(creation.cluster_size, kib, "{options}");
    }
}

#[test]
fn new_files_on_btrfs_lose_copy_on_write_where_that_costs_no_mirror() {
    let nocow = |disk: &str| {
        let plan = planned(&[disk]);
        let is_set = plan.steps.iter().any(|step| {
            let options = step.argv.iter().flat_map(|word| word.split(','));
            options.into_iter().any(|option| option == "nocow=on")
        });
        (is_set, plan)
    };
    let (is_set, plan) = nocow("raw:/btrfs/vm/a.img,size=1G");
    assert!(is_set);
    assert_eq!(choice(&plan, "nocow").1, Some("btrfs-cow-image"));
    assert_eq!(
        plan.steps[0].argv.join(" "),
        "qemu-img create -f raw -o preallocation=off,nocow=on -- /btrfs/vm/a.img 1G"
    );
    assert_eq!(plan.steps.len(), 1, "no directory is changed");

    for (disk, is_set) in [
        ("raw:/btrfs/a.img,size=1G,nocow=off", false),
        ("raw:/btrfs/a.img", false),
        ("raw:/btrfs/nocow/a.img,size=1G", false),
        ("qcow2:/btrfs/a.qcow2,size=1G", true),
        ("raw:/mirror/a.img,size=1G", false),
        ("raw:/mirror/a.img,size=1G,cache=none", true),
        ("raw:/mirror/a.img,size=1G,io=native", true),
        ("raw:/mirror/a.img,size=1G,nocow=on", true),
        ("raw:/ext4/a.img,size=1G,nocow=on", false),
        ("raw:/elsewhere/a.img,size=1G,nocow=on", true),
        ("raw:/elsewhere/a.img,size=1G", false),
    ] {
        assert_eq!(nocow(disk).0, is_set, "{disk}");
    }
}

#[test]
fn the_cache_mode_is_that_of_the_file_as_it_will_be() {
    for (disk, cache) in [
        ("raw:/btrfs/a.img,size=1G", CacheMode::None),
        ("raw:/btrfs/a.img,size=1G,nocow=off", CacheMode::Writeback),
        ("raw:/btrfs/a.img", CacheMode::Writeback),
        ("raw:/mirror/a.img,size=1G", CacheMode::Writeback),
    ] {
        let plan = planned(&[disk]);
        assert_eq!(plan.domain.disks[0].backend.cache, Some(cache), "{disk}");
        let order = |option: &str| plan.choices.iter().position(|one| one.option == option);
        if let Some(nocow) = order("nocow") {
            assert!(Some(nocow) < order("cache"), "{disk}");
        }
    }
}

#[test]
fn the_format_is_always_said_and_a_new_image_has_nothing_below() {
    for disk in [
        "raw:/a",
        "qcow2:/a",
        "lvm:v/a",
        "lvm-thin:v/a",
        "device:/dev/sda",
        "lun:/dev/sda",
    ] {
        let plan = planned(&[disk]);
        let image = plan.domain.disks[0].backend.image().unwrap().clone();
        assert!(image.format.is_some(), "{disk}");
        assert_eq!(image.creation, None, "{disk}");
        assert_eq!(image.backing, Backing::Unspecified, "{disk}");
        assert!(plan.steps.is_empty(), "{disk}");
    }
    let plan = planned(&["qcow2:/a,size=1G"]);
    assert_eq!(
        plan.domain.disks[0].backend.image().unwrap().backing,
        Backing::Terminated
    );
    let plan = planned(&["qcow2:/a,backing.path=/dev/vg0/base,backing.format=raw"]);
    let chain: Vec<Option<&str>> = plan.domain.disks[0]
        .backend
        .image()
        .unwrap()
        .chain()
        .map(Image::host_path)
        .collect();
    assert_eq!(chain, [Some("/a"), Some("/dev/vg0/base")]);
}
