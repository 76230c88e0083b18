//! Questions about paths get the answer of the right file, directory, mount or device.

use proptest::collection::btree_map;
use proptest::{option, prelude::*};
use vmdisk_facts::{DeviceNumber, Fact, Facts, HostIndex, Identity, Reason};

const HOST: &str = r#"
schema_version: "1.0"
kernel: {version: [6, 12, 77], vendor: debian}
mounts:
  - {id: m1, point: /, fstype: ext4, fs: f1, options: {data: null}}
  - {id: m2, point: /srv/images, fstype: btrfs, fs: f2, options: {nodatasum: null, nodatacow: null}}
  - {id: m3, point: /srv/images, fstype: xfs, fs: f3}
filesystems:
  - {id: f1, kind: ext4, devices: [part]}
  - {id: f2, kind: btrfs, btrfs: {data_profile: [single]}, devices: [thin]}
  - {id: f3, kind: xfs, devices: [loop]}
dirs:
  - {path: /srv, mount: m1, real_path: /srv}
  - {path: /vm, mount: m2, real_path: /srv/images/vm, nocow: true}
  - {path: /gone, present: false}
files:
  - {path: /vm/a.img, present: true, kind: regular, mount: m2, nocow: false, inode: "0:45/257"}
  - {path: /vm/b.img, present: true, kind: regular, mount: m2, inode: "0:45/257"}
  - {path: /vm/missing.img, present: false}
  - {path: /dev/disk/by-path/x, present: true, kind: block, device: "253:5", real_path: /dev/dm-5}
  - {path: /dev/vanished, present: false}
blockdevs:
  - {id: thin, kind: lvm-thin, dev: "253:5", paths: [/dev/dm-5, /dev/vg/thin1], slaves: [pool]}
  - {id: pool, kind: lvm-thin-pool, dev: "253:3", slaves: [data, meta]}
  - {id: data, kind: lvm-thin-data, slaves: [part]}
  - {id: meta, kind: lvm-thin-metadata, slaves: [part, thin]}
  - {id: part, kind: partition, dev: "8:1", paths: [/dev/sda1], partition: {parent: disk, start: 1048576}}
  - {id: disk, kind: disk, dev: "8:0", paths: [/dev/sda]}
  - {id: loop, kind: loop, dev: "7:0", paths: [/dev/loop0], loop: {backing_file: /srv/disk.img}}
"#;

fn ids(devices: &[&vmdisk_facts::BlockDevice]) -> Vec<String> {
    devices.iter().map(|device| device.id.clone()).collect()
}

#[test]
fn a_file_is_found_whatever_the_slashes() {
    let facts = Facts::parse(HOST).unwrap();
    assert_eq!(facts.warnings, []);
    let index = HostIndex::new(&facts.facts);
    for path in ["/vm/a.img", "/vm//a.img", "/vm/./a.img", "//vm/a.img"] {
        assert_eq!(
            index.file(path).map(|file| file.path.as_str()),
            Some("/vm/a.img"),
            "{path}"
        );
    }
    assert!(index.file("/vm/other.img").is_none());
    assert!(index.file("").is_none());
    assert!(index.file("vm/a.img").is_none());
}

#[test]
fn a_device_is_found_by_its_number_and_by_its_real_path() {
    let facts = Facts::parse(&format!(
        "{HOST}{}",
        "  - {id: other, kind: disk, paths: [/dev/sdb]}\n"
    ))
    .unwrap()
    .facts;
    let mut facts = facts;
    let file = |path: &str, device: Fact<DeviceNumber>, real: &str| vmdisk_facts::File {
        path: path.to_owned(),
        present: Fact::Known(true),
        device,
        real_path: Fact::Known(real.to_owned()),
        ..vmdisk_facts::File::default()
    };
    let known = |minor| Fact::Known(DeviceNumber { major: 8, minor });
    facts.files.push(file("/by-number", known(0), "/nowhere"));
    facts.files.push(file("/by-path", known(99), "/dev/sdb"));
    facts.files.push(file("/neither", known(99), "/nowhere"));
    let index = HostIndex::new(&facts);
    let id = |path: &str| {
        index
            .block_device(path)
            .known()
            .map(|device| device.id.as_str())
    };
    assert_eq!(id("/by-number"), Some("disk"));
    assert_eq!(id("/by-path"), Some("other"));
    assert_eq!(id("/neither"), None);
}

#[test]
fn a_new_file_inherits_through_missing_files_and_not_through_unknown_ones() {
    let text = "schema_version: '1.0'\n\
        mounts: [{id: m1, point: /, fs: f1}]\n\
        filesystems: [{id: f1, kind: btrfs}]\n\
        dirs: [{path: /a, mount: m1, nocow: true}]\n\
        files: [{path: /a/b, present: false}, {path: /a/c, present: true}]\n";
    let facts = Facts::parse(text).unwrap().facts;
    let index = HostIndex::new(&facts);
    assert_eq!(index.nocow("/a/b/new.img"), Fact::Known(true));
    for unknown in ["/a/c/new.img", "/a/d/new.img"] {
        assert!(!index.nocow(unknown).is_known(), "{unknown}");
    }
}

#[test]
fn the_nearest_directory_predicts_until_a_mount_lies_between() {
    let read = Facts::parse(HOST).unwrap();
    let index = HostIndex::new(&read.facts);
    let directory = |path| {
        index
            .directory(path)
            .map(|directory| directory.path.as_str())
    };
    assert_eq!(directory("/vm/new/deep/x.img"), Some("/vm"));
    assert_eq!(directory("/srv/other/x.img"), Some("/srv"));
    assert_eq!(
        directory("/srv/images/x.img"),
        None,
        "the mount at /srv/images hides what /srv says"
    );
    assert_eq!(directory("/srv/images"), None);
    assert_eq!(directory("/gone/x.img"), None);
    assert_eq!(directory("relative/x.img"), None);
}

#[test]
fn a_path_is_on_the_mount_that_covers_it() {
    let read = Facts::parse(HOST).unwrap();
    let index = HostIndex::new(&read.facts);
    let mount = |path| index.mount_of(path).map(|mount| mount.id.clone());
    assert_eq!(mount("/etc/passwd"), Fact::Known("m1".to_owned()));
    assert_eq!(
        mount("/srv/images/x.img"),
        Fact::Known("m3".to_owned()),
        "the later mount covers the earlier"
    );
    assert_eq!(
        mount("/srv/imagesque"),
        Fact::Known("m1".to_owned()),
        "a name that only starts alike is elsewhere"
    );
    assert_eq!(
        mount("/vm/a.img"),
        Fact::Known("m2".to_owned()),
        "what the file names beats the mount points"
    );
    assert_eq!(
        mount("/vm/new.img"),
        Fact::Known("m2".to_owned()),
        "so does what its directory names"
    );
    assert_eq!(mount("relative"), Fact::NotCollected);
    assert_eq!(
        index.filesystem_of("/vm/new.img").map(|fs| fs.id.clone()),
        Fact::Known("f2".to_owned())
    );
}

#[test]
fn a_device_is_found_by_any_of_its_names() {
    let read = Facts::parse(HOST).unwrap();
    let index = HostIndex::new(&read.facts);
    for path in ["/dev/dm-5", "/dev/vg/thin1", "253:5", "/dev/disk/by-path/x"] {
        assert_eq!(
            index.block_device(path).map(|device| device.id.clone()),
            Fact::Known("thin".to_owned()),
            "{path}"
        );
    }
    assert_eq!(index.block_device("/vm/a.img").known(), None);
    assert!(
        index.block_device("/vm/a.img").is_absent(),
        "a file is not a device"
    );
    assert!(index.block_device("/dev/vanished").is_absent());
    assert!(index.block_device("/dev/never-asked").is_not_collected());
}

#[test]
fn walking_down_ends_although_the_facts_have_a_cycle() {
    let read = Facts::parse(HOST).unwrap();
    let index = HostIndex::new(&read.facts);
    let thin = index.device("thin").unwrap();
    assert_eq!(
        ids(&index.walk_down(thin)),
        ["thin", "pool", "data", "meta", "part", "disk"]
    );
    assert_eq!(ids(&index.leaves(thin)), ["disk"]);
}

#[test]
fn walking_down_ends_below_64_levels() {
    let device = |nth: u32| {
        format!(
            "- {{id: d{nth}, paths: [/dev/dm-{nth}], kind: linear, slaves: [d{}]}}",
            nth + 1
        )
    };
    let devices: Vec<String> = (0..100).map(device).collect();
    let text = format!(
        "schema_version: '1.0'\nblockdevs:\n{}\n",
        devices.join("\n")
    );
    let read = Facts::parse(&text).unwrap();
    let index = HostIndex::new(&read.facts);
    let top = index.device("d0").unwrap();
    assert_eq!(index.walk_down(top).len(), 65);
    let near_the_end = index.device("d90").unwrap();
    assert_eq!(index.walk_down(near_the_end).len(), 10);
}

#[test]
fn a_disk_that_is_named_twice_is_below_its_partition_once() {
    let text = HOST.replace(
        "partition: {parent: disk,",
        "slaves: [disk], partition: {parent: disk,",
    );
    let read = Facts::parse(&text).unwrap();
    let index = HostIndex::new(&read.facts);
    let part = index.device("part").unwrap();
    assert_eq!(part.slaves, ["disk"]);
    assert_eq!(ids(&index.below(part)), ["disk"]);
}

#[test]
fn a_loop_device_is_above_the_storage_of_its_file() {
    let read = Facts::parse(HOST).unwrap();
    let index = HostIndex::new(&read.facts);
    let device = index.device("loop").unwrap();
    assert_eq!(ids(&index.walk_down(device)), ["loop", "part", "disk"]);
    assert_eq!(
        index
            .leaves_of("/srv/images/x.img")
            .map(|leaves| ids(&leaves)),
        Fact::Known(vec!["disk".to_owned()])
    );
}

#[test]
fn figures_of_a_drive_are_not_those_of_a_loop_device_on_it() {
    let text = HOST.replace("kind: xfs", "kind: ext4");
    let read = Facts::parse(&text).unwrap();
    let index = HostIndex::new(&read.facts);
    let on_loop = "/srv/images/x.img";
    assert_eq!(
        index.loop_device_under(on_loop).map(|it| it.id.as_str()),
        Some("loop")
    );
    assert_eq!(index.storage_of(on_loop), None);
    assert!(index.loop_device_under("/x.img").is_none());
    let drive = index.storage_of("/x.img").unwrap();
    let facts = Facts {
        measured: vec![drive],
        ..read.facts.clone()
    };
    let index = HostIndex::new(&facts);
    assert_eq!(index.measured_on("/x.img").len(), 1);
    assert!(index.measured_on(on_loop).is_empty());
}

#[test]
fn a_missing_file_is_on_the_mount_of_its_directory() {
    let text = HOST.replace(
        "missing.img, present: false",
        "missing.img, present: false, mount: null",
    );
    let read = Facts::parse(&text).unwrap();
    let index = HostIndex::new(&read.facts);
    let mount = index
        .mount_of("/vm/missing.img")
        .map(|mount| mount.id.clone());
    assert_eq!(mount, Fact::Known("m2".to_owned()));
}

#[test]
fn a_disk_under_two_devices_of_a_file_system_is_one_leaf() {
    let text = HOST.replace(
        "kind: ext4, devices: [part]",
        "kind: ext4, devices: [part, thin]",
    );
    let read = Facts::parse(&text).unwrap();
    let index = HostIndex::new(&read.facts);
    let leaves = index.leaves_of("/x.img").map(|leaves| ids(&leaves));
    assert_eq!(leaves, Fact::Known(vec!["disk".to_owned()]));
}

#[test]
fn the_compression_flag_is_that_of_the_file_if_there_is_one() {
    let text = HOST
        .replace("nocow: true}", "nocow: true, compressed: true}")
        .replace(
            "nocow: false, inode",
            "nocow: false, compressed: false, inode",
        );
    let read = Facts::parse(&text).unwrap();
    let index = HostIndex::new(&read.facts);
    assert_eq!(index.compressed("/vm/a.img"), Fact::Known(false));
    assert_eq!(index.compressed("/vm/missing.img"), Fact::Known(true));
}

#[test]
fn observations_of_a_directory_hold_for_new_files() {
    let read = Facts::parse(HOST).unwrap();
    let index = HostIndex::new(&read.facts);
    assert_eq!(index.nocow("/vm/a.img"), Fact::Known(false));
    assert_eq!(
        index.nocow("/vm/b.img"),
        Fact::NotCollected,
        "an old file need not have its directory's flag"
    );
    assert_eq!(index.nocow("/vm/missing.img"), Fact::Known(true));
    assert_eq!(index.nocow("/vm/new.img"), Fact::Known(true));
    assert_eq!(index.nocow("/elsewhere/x"), Fact::NotCollected);
}

/// A host with one btrfs at `/`, and these directories, each with its flag; `None` for one that is known to be missing.
fn directories(flags: &[(String, Option<bool>)]) -> Facts {
    let directory = |(path, flag): &(String, Option<bool>)| match flag {
        Some(flag) => format!(
            "  - {{path: {path}, present: true, mount: m1, nocow: {flag}, compressed: {flag}, \
             dio: {{open: ok, dioalign: unset, nowait_overwrite: ok, verdict: direct}}}}\n"
        ),
        None => format!("  - {{path: {path}, present: false}}\n"),
    };
    let directories: String = flags.iter().map(directory).collect();
    let text = format!(
        "schema_version: '1.0'\nkernel: {{version: [6, 18, 44]}}\n\
         mounts: [{{id: m1, point: /, fstype: btrfs, fs: f1}}]\n\
         filesystems: [{{id: f1, kind: btrfs, btrfs: {{data_profile: [single]}}}}]\ndirs:\n{directories}"
    );
    Facts::parse(&text)
        .expect("the facts are well-formed")
        .facts
}

#[test]
fn a_flag_of_a_directory_passes_through_missing_directories_only() {
    let missing = directories(&[
        ("/srv".to_owned(), Some(true)),
        ("/srv/vm".to_owned(), None),
    ]);
    let index = HostIndex::new(&missing);
    assert_eq!(index.nocow("/srv/vm/a.img"), Fact::Known(true));
    assert_eq!(index.compressed("/srv/vm/a.img"), Fact::Known(true));
    assert_eq!(index.nocow("/srv/vm/new/a.img"), Fact::NotCollected);
    assert!(index.direct_io("/srv/vm/a.img").is_known());
    assert!(!index.direct_io("/srv/other/a.img").is_known());

    let no_flags = "schema_version: '1.0'\ndirs: [{path: /srv, nocow: null, compressed: null}]\n";
    let read = Facts::parse(no_flags).unwrap();
    let index = HostIndex::new(&read.facts);
    assert_eq!(
        index.nocow("/srv/vm/a.img"),
        Fact::Absent,
        "a filesystem without flags has none anywhere"
    );
}

proptest! {
    #[test]
    fn flags_of_ancestors_say_nothing_about_deeper_paths(
        flags in btree_map("/[ab](/[ab]){0,4}", option::of(any::<bool>()), 1..8),
        path in "/[ab](/[ab]){0,5}",
    ) {
        let flags: Vec<_> = flags.into_iter().collect();
        let facts = directories(&flags);
        let index = HostIndex::new(&facts);
        let image = format!("{path}/x.img");
        // The nearest directory above the image that is not known to be missing.
        let flag_of = |path: &str| flags.iter().find(|(known, _)| known == path).map(|(_, flag)| *flag);
        let mut parent = path.as_str();
        while flag_of(parent) == Some(None) && parent.rfind('/').is_some_and(|slash| slash > 0) {
            parent = &parent[..parent.rfind('/').unwrap_or_default()];
        }
        let expected = match flag_of(parent) {
            Some(Some(flag)) => Fact::Known(flag),
            Some(None) | None => Fact::NotCollected,
        };
        prop_assert_eq!(index.nocow(&image), expected.clone(), "{}: {:?}", image, flags);
        prop_assert_eq!(index.compressed(&image), expected.clone());
        prop_assert_eq!(index.direct_io(&image).is_known(), expected.is_known());
    }
}

#[test]
fn a_file_of_an_overlay_is_the_file_in_its_upper_directory() {
    let facts = |number: u64| {
        let read = Facts::parse(&format!(
            "schema_version: '1.0'\nfilesystems:\n- {{id: f1, kind: ext4}}\n- {{id: f2, kind: overlay, overlay: {{upper: /srv/up}}}}\n\
             mounts:\n- {{id: m1, point: /srv, fs: f1}}\n- {{id: m2, point: /ov, fs: f2}}\n\
             files:\n- {{path: /ov/c/a.raw, present: true, inode: '0:44/7'}}\n\
             - {{path: /srv/up/c/a.raw, present: true, inode: '8:1/{number}'}}\n"
        ));
        read.unwrap().facts
    };
    // A lower file that was copied up later has another number.
    for (number, is_one) in [(7, true), (8, false)] {
        let facts = facts(number);
        let index = HostIndex::new(&facts);
        let [shown, upper] = ["/ov/c/a.raw", "/srv/up/c/a.raw"].map(|path| index.identity(path));
        assert_eq!(shown == upper, is_one, "{shown:?} {upper:?}");
    }
}

#[test]
fn two_names_of_one_thing_have_one_identity() {
    let read = Facts::parse(HOST).unwrap();
    let index = HostIndex::new(&read.facts);
    assert_eq!(index.identity("/vm/a.img"), index.identity("/vm/b.img"));
    assert!(index.identity("/vm/a.img").is_known());
    let thin = Identity::Device(DeviceNumber {
        major: 253,
        minor: 5,
    });
    assert_eq!(index.identity("/dev/vg/thin1"), Fact::Known(thin.clone()));
    assert_eq!(index.identity("/dev/disk/by-path/x"), Fact::Known(thin));
    assert_eq!(index.identity("/vm/missing.img"), Fact::Absent);
    assert_eq!(index.identity("/vm/new.img"), Fact::NotCollected);
}

#[test]
fn a_mount_without_a_description_is_a_reason_and_not_a_guess() {
    let read = Facts::parse(
        r#"{"schema_version":"1.0","mounts":[{"id":"m1","point":"/"}],"files":[{"path":"/a","mount":"m9"}]}"#,
    );
    let read = read.unwrap();
    let index = HostIndex::new(&read.facts);
    assert!(
        matches!(index.mount_of("/a"), Fact::Unknown(unknown) if *unknown.reason() == Reason::Parse)
    );
}

#[test]
fn guests_run_on_the_newest_qemu_that_is_for_no_special_machine() {
    let facts = vmdisk_facts::Facts::from_json(
        r#"{"schema_version": "1.0", "cpu": {"arch": "x86_64"}, "qemu": [
            {"path": "/usr/bin/qemu-system-aarch64", "arch": "aarch64", "version": [11, 0, 0]},
            {"path": "/usr/bin/qemu-system-x86_64", "arch": "x86_64", "version": [7, 2, 22]},
            {"path": "/usr/bin/qemu-system-x86_64-microvm", "arch": "x86_64", "version": [7, 2, 22]},
            {"path": "/opt/old/qemu-system-x86_64", "arch": "x86_64", "version": [5, 2, 0]}]}"#,
    )
    .unwrap()
    .facts;
    let path = facts.newest_qemu().and_then(|qemu| qemu.path.clone());
    assert_eq!(
        path,
        vmdisk_facts::Fact::Known("/usr/bin/qemu-system-x86_64".to_owned())
    );
}
