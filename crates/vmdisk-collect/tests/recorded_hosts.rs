//! Hosts that `cargo xtask hostlab` built and recorded yield the same facts as during the recording.
//!
//! fixtures/sysroots/hostlab/STACK.KERNEL.tree is a whole recording in one file: lines `KIND PATH LENGTH`, each
//! followed by that many bytes; `a` is a requested path, `d` a folder, `l` a link and `f` a file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use vmdisk_collect::{FactGroup, Request, collect};
use vmdisk_facts::{BlockKind, Fact, Facts, HostIndex, Reason};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sysroots/hostlab")
}

/// Unpacks a recording, and returns the requested paths.
fn unpack(mut tree: &[u8], root: &Path) -> Vec<PathBuf> {
    let mut asked = Vec::new();
    while !tree.is_empty() {
        let end = tree.iter().position(|byte| *byte == b'\n').unwrap();
        let line = std::str::from_utf8(&tree[..end]).unwrap();
        let (kind, rest) = line.split_once(' ').unwrap();
        let (path, length) = rest.rsplit_once(' ').unwrap();
        let length: usize = length.parse().unwrap();
        let content = &tree[end + 1..end + 1 + length];
        tree = &tree[end + 1 + length..];
        if length > 0 {
            tree = tree.strip_prefix(b"\n").unwrap();
        }
        let inside = root.join(path.trim_start_matches('/'));
        match kind {
            "a" => asked.push(PathBuf::from(path)),
            "d" => fs::create_dir(inside).unwrap(),
            "l" => symlink(std::str::from_utf8(content).unwrap(), inside).unwrap(),
            "f" => fs::write(inside, content).unwrap(),
            _ => panic!("{line}"),
        }
    }
    asked
}

/// Collects the facts of a recorded host, and compares them with the facts from the host itself.
fn replayed(name: &str) -> Facts {
    let tree = fs::read(folder().join(format!("{name}.tree"))).unwrap();
    let root = tempfile::tempdir().unwrap();
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths = unpack(&tree, root.path());
    request.root = root.path().to_owned();
    request.groups = BTreeSet::from([
        FactGroup::Core,
        FactGroup::Lvm,
        FactGroup::Dm,
        FactGroup::Nvme,
    ]);
    let mut facts = collect(&request);
    let text = fs::read_to_string(folder().join(format!("{name}.facts.json"))).unwrap();
    let mut expected = Facts::parse(&text).unwrap().facts;
    // The collector's version may differ.
    facts.collector.version = Fact::NotCollected;
    expected.collector.version = Fact::NotCollected;
    assert_eq!(facts.to_json(), expected.to_json(), "{name}");
    facts
}

#[test]
fn every_recorded_host_yields_the_same_facts() {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".tree").map(str::to_owned)
        })
        .collect();
    names.sort_unstable();
    let stacks: BTreeSet<&str> = names
        .iter()
        .filter_map(|name| name.split('.').next())
        .collect();
    assert_eq!(
        Vec::from_iter(stacks),
        [
            "bcache",
            "btrfs-raid1",
            "cgroup-limits",
            "loop-nobarrier",
            "loop-partition",
            "loop-tmpfs",
            "luks",
            "lvm-thin-4m-nozero",
            "lvm-thin-64k-zero",
            "md-raid1",
            "md-raid1-degraded",
            "md-raid5",
            "multipath",
            "nvme-both-sectors",
            "overlay-container",
            "overlay-volatile",
            "thin-on-crypt-on-md",
            "virtiofs",
            "xfs-4kn",
            "zram",
        ]
    );
    for name in names {
        replayed(&name);
    }
}

#[test]
fn a_stack_of_many_layers_is_followed_down_to_both_disks() {
    let facts = replayed("thin-on-crypt-on-md.6.1");
    let index = HostIndex::new(&facts);
    let leaves = index.leaves_of("/srv/images/disk.img").known().unwrap();
    let kinds: Vec<&BlockKind> = leaves.iter().map(|leaf| &leaf.kind).collect();
    assert_eq!(kinds, [&BlockKind::Disk, &BlockKind::Disk]);
    let kinds: Vec<String> = facts
        .blockdevs
        .iter()
        .map(|device| device.kind.to_string())
        .collect();
    for kind in ["lvm-thin", "lvm-thin-pool", "crypt-luks2", "md"] {
        assert!(kinds.iter().any(|found| found == kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn both_paths_of_a_multipath_disk_are_counted() {
    let facts = replayed("multipath.6.1");
    let device = facts
        .blockdevs
        .iter()
        .find(|device| device.kind == BlockKind::Multipath)
        .unwrap();
    assert_eq!(device.paths_up, Fact::Known(2));
}

#[test]
fn the_upper_directory_of_a_container_is_not_looked_for_on_other_file_systems() {
    let path = "/srv/images/disk.img";
    for (name, is_here) in [
        ("overlay-container.6.12", false),
        ("overlay-volatile.6.12", true),
    ] {
        let facts = replayed(name);
        let index = HostIndex::new(&facts);
        let layer = index.file_layer(path).known().unwrap();
        let overlay = index.filesystem_of(path).known().unwrap();
        let upper = &overlay.overlay.value().unwrap().upper;
        match upper {
            Fact::Known(_) => assert!(is_here, "{name}"),
            Fact::Unknown(unknown) => {
                assert!(!is_here && *unknown.reason() == Reason::Namespace, "{name}");
            }
            _ => panic!("{name}: {upper:?}"),
        }
        let below = index.layers_under(&layer);
        assert_eq!(below.is_known(), is_here, "{name}: {below:?}");
    }
}
