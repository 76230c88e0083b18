//! What becomes of `O_DIRECT`, Linux AIO and io_uring.

use vmdisk::rules::{Confidence, Policy};
use vmdisk_facts::Facts;
use vmdisk_model::{AioMode, CacheMode, Change, DiskField, FieldPath};

use super::support::{DIRECT, disk, finding, in_words, missed, on, recorded, run, said, written};

const NONE: &str = "type='raw' cache='none'";
const NATIVE: &str = "type='raw' cache='none' io='native'";

/// The rules about direct I/O say this of a disk on this host, and looked at everything.
fn expect(host: &str, path: &str, driver: &str, expected: &[&str]) {
    let outcome = on(&recorded(host), &disk("disk", driver, path, ""));
    assert_eq!(said(&outcome, &DIRECT), expected, "{host} {path} {driver}");
    let missed = missed(&outcome, &DIRECT);
    assert!(missed.is_empty(), "{host} {path} {driver}: {missed:?}");
}

#[test]
fn where_direct_io_is_done_nothing_is_said() {
    expect("xfs-nvme", "/srv/img/web2.img", NATIVE, &[]);
    expect("lvm-thin-64k", "/dev/vg0/web1", NATIVE, &[]);
    expect("btrfs-checksums-6.1", "/srv/nocow/db1.img", NATIVE, &[]);
    expect("btrfs-nocow-6.18", "/srv/nocow/db1.img", NATIVE, &[]);
}

#[test]
fn refused_and_ignored_are_told_apart() {
    let (build, web) = ("/run/build/build1.img", "/srv/img/web1.img");
    expect("ramfs", build, NONE, &["odirect-unsupported error"]);
    expect("tmpfs", build, NONE, &["odirect-silently-buffered warning"]);
    let journal = "ext4-data-journal";
    expect(journal, web, NONE, &["odirect-silently-buffered warning"]);
    let directsync = "type='raw' cache='directsync'";
    expect(
        journal,
        web,
        directsync,
        &["odirect-silently-buffered warning"],
    );
    // Linux AIO is one question, and O_DIRECT itself another.
    expect(
        "tmpfs",
        build,
        NATIVE,
        &[
            "io-native-on-buffered-dio warning",
            "odirect-silently-buffered warning",
        ],
    );
}

#[test]
fn btrfs_answers_by_its_kernel() {
    let web = "/srv/img/web1.img";
    let corrupts = ["btrfs-cow-image warning", "btrfs-dio-csum-corruption error"];
    expect("btrfs-checksums-6.1", web, NONE, &corrupts);
    expect("btrfs-checksums-6.1", web, NATIVE, &corrupts);
    let buffers = ["btrfs-cow-image warning", "btrfs-dio-buffered warning"];
    expect("btrfs-checksums-6.18", web, NONE, &buffers);
    let blocks = [
        "btrfs-cow-image warning",
        "btrfs-dio-buffered warning",
        "io-native-on-buffered-dio warning",
    ];
    expect("btrfs-checksums-6.18", web, NATIVE, &blocks);
    let writeback = "type='raw' cache='writeback'";
    expect(
        "btrfs-checksums-6.18",
        web,
        writeback,
        &["btrfs-cow-image warning"],
    );
    // Without checksums, but with two copies that have to agree.
    let raid1 = "btrfs-raid1-nocow-6.18";
    expect(
        raid1,
        "/srv/nocow/db1.img",
        NONE,
        &["btrfs-dio-buffered warning"],
    );
    let raid1 = "btrfs-raid1-nocow-6.1";
    let differ = ["btrfs-dio-raid-mirror-divergence warning"];
    expect(raid1, "/srv/nocow/db1.img", NONE, &differ);
    expect(raid1, "/srv/nocow/new.img", NONE, &differ);
    expect(raid1, "/srv/nocow/db1.img", writeback, &[]);
}

#[test]
fn a_file_that_is_yet_to_be_made_is_as_its_directory() {
    let buffers = ["btrfs-cow-image warning", "btrfs-dio-buffered warning"];
    expect("btrfs-checksums-6.18", "/srv/img/new.img", NONE, &buffers);
    expect("btrfs-nocow-6.18", "/srv/nocow/new.img", NONE, &[]);
}

#[test]
fn what_cannot_be_meant_is_neither_reported_nor_missing() {
    for xml in [
        disk("disk", "type='raw' cache='writeback'", "/dev/vg0/web1", ""),
        disk("cdrom", "type='raw'", "", "<readonly/>"),
        "<disk type='vhostuser' device='disk'><source type='unix' path='/run/v.sock'/>\
         <target dev='vda' bus='virtio'/></disk>"
            .to_owned(),
        "<disk type='network' device='disk'><driver name='qemu' type='raw' cache='none' io='native'/>\
         <source protocol='nbd' name='x'><host name='nbd.example'/></source>\
         <target dev='vda' bus='virtio'/></disk>"
            .to_owned(),
    ] {
        let outcome = run(&xml, None, "", Policy::default());
        assert!(said(&outcome, &DIRECT).is_empty(), "{xml}");
        assert!(missed(&outcome, &DIRECT).is_empty(), "{xml}");
    }
}

#[test]
fn a_device_nobody_collected_is_not_judged_by_the_file_system_of_its_node() {
    let facts = written(
        "mounts:\n- {id: m1, point: /dev, fstype: devtmpfs, fs: f1}\n\
         filesystems:\n- {id: f1, kind: devtmpfs}\n",
    );
    for source in ["/dev/vg0/web1", "/dev/sdq"] {
        let outcome = on(&facts, &disk("disk", NONE, source, ""));
        assert!(said(&outcome, &DIRECT).is_empty(), "{source}");
        let missed = missed(&outcome, &DIRECT);
        assert!(missed.contains(&"odirect-unsupported"), "{source}");
    }
}

#[test]
fn an_image_below_is_opened_with_the_same_mode() {
    let xml = "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none'/>\
        <source file='/top.qcow2'/>\
        <backingStore type='file'><format type='raw'/><source file='/run/build/build1.img'/></backingStore>\
        <target dev='vda' bus='virtio'/></disk>";
    let outcome = on(&recorded("ramfs"), xml);
    let found = finding(&outcome, "odirect-unsupported");
    assert!(
        in_words(&found.title).contains("/run/build/build1.img"),
        "{:?}",
        found.title
    );
    assert_eq!(found.details().related.len(), 1);
}

#[test]
fn giving_up_o_direct_gives_up_linux_aio_with_it_and_never_touches_a_shared_disk() {
    let facts = recorded("ramfs");
    let changes = |driver: &str, rest: &str| {
        let outcome = on(&facts, &disk("disk", driver, "/run/build/build1.img", rest));
        let fix = finding(&outcome, "odirect-unsupported").fix.clone();
        fix.map(|fix| fix.changes)
    };
    let cache = |mode| Change::set(FieldPath::Disk(0, DiskField::Cache), mode);
    let threads = Change::set(FieldPath::Disk(0, DiskField::Aio), AioMode::Threads);
    let directsync = "type='raw' cache='directsync'";
    assert_eq!(changes(NONE, ""), Some(vec![cache(CacheMode::Writeback)]));
    assert_eq!(
        changes(directsync, ""),
        Some(vec![cache(CacheMode::Writethrough)])
    );
    assert_eq!(
        changes(NATIVE, ""),
        Some(vec![cache(CacheMode::Writeback), threads])
    );
    assert_eq!(changes("type='raw'", "<shareable/>"), None);
    assert_eq!(changes(NONE, "<shareable/>"), None);
}

#[test]
fn a_verdict_from_a_version_is_less_sure_than_one_that_was_seen() {
    let (build, web) = ("/run/build/build1.img", "/srv/img/web1.img");
    let ignored = "odirect-silently-buffered";
    for (host, path, rule, expected) in [
        ("ramfs", build, "odirect-unsupported", Confidence::Certain),
        ("ext4-data-journal", web, ignored, Confidence::Certain),
        ("tmpfs", build, ignored, Confidence::Assumed),
        (
            "btrfs-checksums-6.1",
            web,
            "btrfs-dio-csum-corruption",
            Confidence::Assumed,
        ),
    ] {
        let outcome = on(&recorded(host), &disk("disk", NONE, path, ""));
        let found = finding(&outcome, rule);
        assert_eq!(found.confidence, expected, "{host}");
    }
}

fn limits(disabled: &str, group: &str) -> Facts {
    written(&format!(
        "limits: {{io_uring_disabled: {disabled}, io_uring_group: {group}}}\n"
    ))
}

#[test]
fn io_uring_is_denied_to_nobody_to_everybody_or_to_those_outside_a_group() {
    let rule = ["io-uring-disabled"];
    let (error, warning) = (
        &["io-uring-disabled error"][..],
        &["io-uring-disabled warning"][..],
    );
    let xml = disk(
        "disk",
        "type='raw' cache='none' io='io_uring'",
        "/srv/img/a.img",
        "",
    );
    for (disabled, group, target, expected, is_missed) in [
        ("0", "-1", "", &[][..], false),
        ("null", "null", "", &[], false),
        ("2", "-1", "", error, false),
        ("2", "107", "", error, false),
        ("1", "-1", "", error, false),
        ("1", "107", "", &[], true),
        ("{unknown: permission}", "-1", "", &[], true),
        ("2", "-1", "qemu=7.2", error, false),
        ("2", "-1", "qemu=10.0.13", warning, false),
        ("2", "-1", "qemu=11.1", error, false),
    ] {
        let outcome = run(
            &xml,
            Some(&limits(disabled, group)),
            target,
            Policy::default(),
        );
        assert_eq!(
            said(&outcome, &rule),
            expected,
            "{disabled} {group} {target}"
        );
        assert_eq!(
            !missed(&outcome, &rule).is_empty(),
            is_missed,
            "{disabled} {group}"
        );
    }
}

#[test]
fn the_group_that_gets_io_uring_is_held_against_those_of_qemus_user() {
    let rule = ["io-uring-disabled"];
    let xml = disk(
        "disk",
        "type='raw' cache='none' io='io_uring'",
        "/srv/img/a.img",
        "",
    );
    for (user, is_reported, is_missed) in [
        (
            "{is_configured: true, name: qemu, groups: [36, 107]}",
            false,
            false,
        ),
        (
            "{is_configured: true, name: qemu, groups: [36]}",
            true,
            false,
        ),
        (
            "{is_configured: false, name: qemu, groups: []}",
            true,
            false,
        ),
        // An account of that name may not be QEMU's.
        (
            "{is_configured: {unknown: permission}, name: qemu, groups: [36]}",
            false,
            true,
        ),
        (
            "{is_configured: true, name: qemu, groups: {unknown: undecided}}",
            false,
            true,
        ),
        ("null", false, true),
    ] {
        let facts = written(&format!(
            "limits: {{io_uring_disabled: 1, io_uring_group: 107}}\nlibvirt: {{qemu_user: {user}}}\n"
        ));
        let outcome = on(&facts, &xml);
        assert_eq!(!said(&outcome, &rule).is_empty(), is_reported, "{user}");
        assert_eq!(!missed(&outcome, &rule).is_empty(), is_missed, "{user}");
    }
}

#[test]
fn instead_of_io_uring_a_device_past_the_page_cache_takes_linux_aio() {
    let (direct, cached) = (
        "type='raw' cache='none' io='io_uring'",
        "type='raw' cache='writeback' io='io_uring'",
    );
    for (driver, source, better) in [
        (direct, "/dev/vg0/a", AioMode::Native),
        (cached, "/dev/vg0/a", AioMode::Threads),
        (direct, "/srv/img/a.img", AioMode::Threads),
    ] {
        let outcome = on(&limits("2", "-1"), &disk("disk", driver, source, ""));
        let fix = finding(&outcome, "io-uring-disabled").fix.clone().unwrap();
        let expected = Change::set(FieldPath::Disk(0, DiskField::Aio), better);
        assert_eq!(fix.changes, [expected], "{driver} {source}");
    }
}
