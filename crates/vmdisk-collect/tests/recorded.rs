//! Systems recorded into directories yield the expected facts.
//!
//! The systems are small, invented, and similar to real ones: fixtures/sysroots/NAME is the root, and
//! fixtures/sysroots/NAME.facts.json contains the expected facts. `VMDISK_BLESS=yes` updates the latter.

use std::fs;
use std::path::{Path, PathBuf};

use vmdisk_collect::{FactGroup, Request, collect};
use vmdisk_facts::blockdev::Percent;
use vmdisk_facts::host::KvmObstacle;
use vmdisk_facts::{
    BlockDevice, BlockKind, DirectIoEffect, Fact, Facts, FsKind, HostIndex, Reason, Target, Version,
};

fn sysroots() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sysroots")
}

/// Collects the facts of a recorded system, and compares them with the expected facts.
fn recorded(name: &str, paths: &[&str], groups: &[FactGroup]) -> Facts {
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.root = sysroots().join(name);
    request.paths = paths.iter().map(PathBuf::from).collect();
    request.groups.extend(groups);
    let mut facts = collect(&request);
    // The collector's version may differ.
    facts.collector.version = Fact::NotCollected;
    let expected = sysroots().join(format!("{name}.facts.json"));
    if std::env::var_os("VMDISK_BLESS").is_some_and(|value| value == "yes") {
        fs::write(&expected, facts.to_json()).expect("the fixtures are writable");
    }
    let text = fs::read_to_string(&expected).expect("a recorded system has its facts beside it");
    let read = Facts::parse(&text).expect("recorded facts are readable");
    assert_eq!(read.warnings, []);
    assert_eq!(facts.to_json(), text);
    facts
}

fn debian() -> Facts {
    let paths = [
        "/dev/vg0/web-1",
        "/dev/sda1",
        "/dev/vg0/gone",
        "/var/lib/libvirt/images/db.qcow2",
        "/var/lib/libvirt/images/new.img",
        "/srv/old vms/x.img",
    ];
    recorded("debian-thin-on-md", &paths, &[FactGroup::Lvm])
}

fn ids(devices: &[&BlockDevice]) -> Vec<String> {
    devices
        .iter()
        .map(|device| device.kind.to_string())
        .collect()
}

#[test]
fn a_thin_volume_is_followed_to_the_drives_below_its_mirror() {
    let facts = debian();
    let index = HostIndex::new(&facts);
    let device = index
        .block_device("/dev/vg0/web-1")
        .known()
        .expect("the volume was collected");
    assert_eq!(device.kind, BlockKind::LvmThin);
    assert_eq!(
        device.paths,
        ["/dev/vg0/web-1", "/dev/mapper/vg0-web--1", "/dev/dm-4"]
    );
    let below = ids(&index.walk_down(device));
    let expected = [
        "lvm-thin",
        "lvm-thin-pool",
        "lvm-thin-metadata",
        "lvm-thin-data",
        "md",
        "partition",
        "disk",
    ];
    assert_eq!(below, expected);
    let leaves = index.leaves(device);
    assert_eq!(leaves.len(), 1);
    assert_eq!(leaves[0].queue.rotational, Fact::Known(true));
    let md = index.walk_down(device)[4].md.value().expect("a mirror");
    assert_eq!(
        (md.level.clone(), md.degraded.clone()),
        (Fact::Known("raid1".to_owned()), Fact::Known(1))
    );
}

#[test]
fn a_volume_has_the_properties_of_its_pool_from_lvs() {
    let facts = debian();
    let index = HostIndex::new(&facts);
    let device = index
        .block_device("/dev/vg0/web-1")
        .known()
        .expect("the volume was collected");
    let lvm = device.lvm.value().expect("a logical volume");
    assert_eq!(lvm.zero, Fact::Known(false));
    assert_eq!(lvm.chunk, Fact::Known(4 << 20));
    assert_eq!(lvm.data_percent, Fact::Known(Percent(9310)));
    assert_eq!(lvm.snapshots, Fact::Known(1));
}

#[test]
fn the_chunk_size_is_known_without_lvs() {
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.root = sysroots().join("debian-thin-on-md");
    request.paths.push("/dev/mapper/vg0-web--1".into());
    let facts = collect(&request);
    let index = HostIndex::new(&facts);
    let device = index
        .block_device("/dev/vg0/web-1")
        .known()
        .expect("found by its other names too");
    let lvm = device.lvm.value().expect("a logical volume");
    assert_eq!(
        (lvm.vg.clone(), lvm.lv.clone()),
        (
            Fact::Known("vg0".to_owned()),
            Fact::Known("web-1".to_owned())
        )
    );
    assert_eq!(lvm.pool, Fact::Known("pool".to_owned()));
    assert_eq!(lvm.chunk, Fact::Known(4 << 20));
    assert_eq!(lvm.zero, Fact::NotCollected, "only root's tools tell");
}

#[test]
fn the_mount_of_an_image_on_btrfs_is_found_without_a_kernel() {
    let facts = debian();
    let index = HostIndex::new(&facts);
    let path = "/var/lib/libvirt/images/db.qcow2";
    let filesystem = index
        .filesystem_of(path)
        .known()
        .expect("the filesystem was collected");
    assert_eq!(filesystem.kind, FsKind::Btrfs);
    assert_eq!(ids(&index.devices_of(filesystem).known().unwrap()), ["lvm"]);
    assert_eq!(
        filesystem.btrfs.value().expect("btrfs").checksum,
        Fact::Known("crc32c".to_owned())
    );
    let image = index
        .file(path)
        .and_then(|file| file.image.value())
        .expect("a header");
    assert_eq!(image.virtual_size, Fact::Known(20 << 30));
    let backing = image.backing.value().expect("a backing file");
    assert_eq!(
        (backing.path.as_str(), backing.format.clone()),
        ("base.raw", Fact::Known("raw".to_owned()))
    );
    // A recorded file has no flags, so they are unknown.
    assert!(index.nocow(path).is_not_collected());
    assert!(index.direct_io(path).is_not_collected());
    assert!(
        index
            .file("/var/lib/libvirt/images/new.img")
            .expect("looked for")
            .is_missing()
    );
    assert!(
        index
            .file("/dev/vg0/gone")
            .expect("looked for")
            .is_missing()
    );
}

#[test]
fn the_host_is_read_from_its_small_files() {
    let facts = debian();
    // The release is 6.1.0-28.
    assert_eq!(facts.kernel.version, Fact::Known(Version(6, 1, 119)));
    assert_eq!(facts.kernel.vendor, Fact::Known("debian".to_owned()));
    assert_eq!(facts.cpu.virt, Fact::Known(vec!["svm".to_owned()]));
    assert_eq!(facts.memory.hugepages[&1_048_576].free, Fact::Known(2));
    assert_eq!(facts.limits.io_uring_disabled, Fact::Absent);
    let target = Target::from_facts(&facts);
    assert_eq!(
        (target.qemu, target.libvirt),
        (Some(Version(7, 2, 0)), Some(Version(9, 0, 0)))
    );
    assert!(
        !facts.to_json().contains("hunter2"),
        "a boot parameter nobody asked for stays on the host"
    );
}

fn rhel() -> Facts {
    recorded(
        "rhel-multipath",
        &[
            "/dev/mapper/luks-data",
            "/dev/sdb",
            "/mnt/nfs/guests/a.qcow2",
        ],
        &[],
    )
}

#[test]
fn paths_of_a_multipath_device_are_counted_and_have_holders() {
    let facts = rhel();
    let index = HostIndex::new(&facts);
    let crypt = index
        .block_device("/dev/mapper/luks-data")
        .known()
        .expect("the device was collected");
    assert_eq!(crypt.kind, BlockKind::CryptLuks2);
    assert_eq!(crypt.queue.discard_max, Fact::Known(0));
    let multipath = index.walk_down(crypt)[1];
    assert_eq!(
        (multipath.kind.clone(), multipath.paths_up.clone()),
        (BlockKind::Multipath, Fact::Known(1))
    );
    assert_eq!(index.leaves(crypt).len(), 2);
    let path = index
        .block_device("/dev/sdb")
        .known()
        .expect("the device was collected");
    assert_eq!(path.holders, Fact::Known(vec![multipath.id.clone()]));
    assert_eq!(path.queue.logical, Fact::Known(4096));
}

#[test]
fn a_network_mount_shows_its_dangerous_options() {
    let facts = rhel();
    let index = HostIndex::new(&facts);
    let mount = index
        .mount_of("/mnt/nfs/guests/a.qcow2")
        .known()
        .expect("the mount was collected");
    assert!(mount.has_option("soft").is_true());
    assert!(mount.has_option("hard").is_false());
    let direct = index
        .direct_io("/mnt/nfs/guests/a.qcow2")
        .known()
        .expect("NFS does direct I/O");
    assert_eq!(direct.verdict, DirectIoEffect::Direct);
    assert_eq!(
        index.leaves_of("/mnt/nfs/guests/a.qcow2"),
        Fact::Absent,
        "it is on no device of this host"
    );
}

#[test]
fn an_rpm_database_makes_the_version_of_qemu_unknown() {
    let facts = rhel();
    let qemu = facts.qemu.value().expect("the program is there");
    let reason = qemu[0]
        .version
        .clone()
        .settled()
        .map_err(|unknown| unknown.reason().clone());
    assert_eq!(reason, Err(Reason::ToolMissing));
    assert_eq!(Target::from_facts(&facts).libvirt, Some(Version(10, 10, 0)));
    assert_eq!(facts.limits.io_uring_disabled, Fact::Known(2));
    assert_eq!(facts.limits.memlock_bytes, Fact::Absent, "no limit");
    assert!(facts.memory.total_bytes.is_unknown());
}

fn limited() -> Facts {
    recorded(
        "rhel-zfs-limits",
        &["/srv/vms/web1.img", "/dev/zvol/tank/vm1"],
        &[FactGroup::Zfs],
    )
}

#[test]
fn libvirts_settings_determine_qemus_user() {
    let facts = limited();
    let libvirt = facts.libvirt.value().expect("its library is there");
    let conf = libvirt.qemu_conf.value().expect("its settings are there");
    assert_eq!(conf.dynamic_ownership, Fact::Known(false));
    assert_eq!(conf.namespaces, Fact::Known(Vec::new()));
    let user = libvirt.qemu_user.value().expect("the account is there");
    assert_eq!(user.is_configured, Fact::Known(true));
    assert_eq!(user.name, Fact::Known("vms".to_owned()));
    assert_eq!(user.groups, Fact::Known(vec![36, 993, 1200]));
    assert_eq!(user.is_in(993), Fact::Known(true));
    assert_eq!(facts.limits.memlock_bytes, Fact::Known(8 << 20));
    assert_eq!(facts.security.selinux, Fact::Known("enforcing".to_owned()));
}

#[test]
fn cgroup_limits_and_huge_pages_of_each_node_are_collected() {
    let facts = limited();
    let machine = facts.cgroups.machine.value().expect("systemd made it");
    let limits = machine.io_max.value().expect("the controller is on");
    assert_eq!(limits[0].write_requests, Fact::Known(5000));
    assert_eq!(limits[0].read_bytes, Fact::Absent);
    let own = facts.cgroups.own.value().expect("the collector is in one");
    assert_eq!(own.io_max, Fact::Known(Vec::new()), "nothing is limited");
    assert_eq!(facts.cpu.nodes.len(), 2);
    assert_eq!(facts.cpu.nodes[&1].cpus, Fact::Known("8-15".to_owned()));
    let pages = &facts.memory.hugepages[&1_048_576];
    assert_eq!(pages.nodes[&0].free, Fact::Known(6));
    assert_eq!(pages.nodes[&1].nr, Fact::Known(0));
    assert_eq!(pages.overcommit, Fact::Known(2));
    assert_eq!(
        facts.kernel.cmdline["kvm_intel.nested"],
        Fact::Known("1".to_owned())
    );
    assert!(!facts.to_json().contains("hunter2"));
}

#[test]
fn a_host_with_kvm_but_without_its_device_node_is_reported() {
    let facts = limited();
    assert_eq!(facts.kvm.dev_kvm, Fact::Known(false));
    assert_eq!(facts.kvm.module, Fact::Known("kvm_intel".to_owned()));
    assert_eq!(facts.kvm.obstacle, Fact::Known(KvmObstacle::Node));
    assert!(facts.kvm.proven.is_not_collected());
}

#[test]
fn zfs_reports_properties_of_datasets_and_volumes() {
    let facts = limited();
    let index = HostIndex::new(&facts);
    let image = "/srv/vms/web1.img";
    let filesystem = index
        .filesystem_of(image)
        .known()
        .expect("the filesystem was collected");
    let zfs = filesystem.zfs.value().expect("it is ZFS");
    assert_eq!(zfs.dataset, Fact::Known("tank/vms".to_owned()));
    assert_eq!(zfs.recordsize, Fact::Known(128 << 10));
    assert_eq!(zfs.version, Fact::Known(Version(2, 3, 4)));
    let direct = index.direct_io(image).known().expect("both are known");
    assert_eq!(direct.verdict, DirectIoEffect::Direct);
    let device = index
        .block_device("/dev/zvol/tank/vm1")
        .known()
        .expect("the volume was collected");
    let zvol = device.zvol.value().expect("it is a volume of ZFS");
    assert_eq!(zvol.volblocksize, Fact::Known(16 << 10));
    // Without a request it is not collected, and no program is started.
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.root = sysroots().join("rhel-zfs-limits");
    request.paths.push("/dev/zvol/tank/vm1".into());
    let facts = collect(&request);
    assert!(facts.blockdevs[0].zvol.is_not_collected());
}

#[test]
fn an_empty_directory_yields_unknown_facts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.root = directory.path().to_owned();
    request.groups.insert(FactGroup::Lvm);
    request.paths = ["/a/b", "/", "relative", "/dev/sda"]
        .map(PathBuf::from)
        .to_vec();
    let facts = collect(&request);
    assert_eq!(facts.libvirt, Fact::Absent);
    assert_eq!(facts.qemu, Fact::Known(Vec::new()));
    assert_eq!(facts.blockdevs, []);
    assert!(facts.errors.iter().any(|error| error.what == "relative"));
    assert!(
        facts
            .errors
            .iter()
            .any(|error| error.what == "/proc/self/mountinfo")
    );
    assert_eq!(
        Facts::parse(&facts.to_json()).expect("readable").facts,
        facts
    );
}
