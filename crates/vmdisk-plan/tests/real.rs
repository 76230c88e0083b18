//! What the real tools make of the script.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the library starts nothing; these tests run what it writes"
)]

use std::fs;
use std::path::Path;

use crate::common::real::{has_programs, is_given, run, run_script, try_run};
use serde_json::{Value, json};
use vmdisk_facts::{Facts, Target};
use vmdisk_plan::*;
use vmdisk_testing::LoopDevice;

fn script_of(lines: &[String], facts: &Facts) -> String {
    let disks = lines
        .iter()
        .map(|line| DiskSpec::from_one_liner(line).unwrap())
        .collect();
    let plan = plan(&Spec::new(disks), facts, &Target::default()).unwrap();
    script(&plan)
}

/// Runs the script for some disks; what it said if it failed.
fn make(lines: &[String]) -> Result<(), String> {
    let output = run_script(&script_of(lines, &Facts::default()), &[]);
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

fn info(path: &Path) -> Value {
    let path = path.to_str().unwrap();
    serde_json::from_str(&run("qemu-img", &["info", "--output=json", "--", path])).unwrap()
}

/// Bytes of an image that are there, and of those the ones that hold data.
fn mapped(path: &Path, format: &str) -> (u64, u64) {
    let path = path.to_str().unwrap();
    let map = run(
        "qemu-img",
        &["map", "-f", format, "--output=json", "--", path],
    );
    let map: Vec<Value> = serde_json::from_str(&map).unwrap();
    let sum = |wanted: &dyn Fn(&Value) -> bool| {
        map.iter()
            .filter(|part| wanted(part))
            .map(|part| part["length"].as_u64().unwrap())
            .sum()
    };
    let has_offset = |part: &Value| part["offset"].is_u64();
    (sum(&has_offset), sum(&|part| part["data"] == json!(true)))
}

/// Bytes that a file takes on its file system.
fn allocated(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(&fs::metadata(path).unwrap()) * 512
}

const MIB: u64 = 1 << 20;

#[test]
fn each_preallocation_of_a_raw_file_is_what_was_asked_for() {
    if !has_programs("raw preallocation", &["qemu-img"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (mode, is_reserved) in [("off", false), ("falloc", true), ("full", true)] {
        let path = folder.path().join(format!("{mode}.img"));
        let line = format!("raw:{},size=16M,preallocation={mode}", path.display());
        make(std::slice::from_ref(&line)).unwrap();
        let info = info(&path);
        assert_eq!(info["format"], "raw");
        assert_eq!(info["virtual-size"], 16 * MIB);
        assert_eq!(allocated(&path) >= 16 * MIB, is_reserved, "{mode}");
        // Once more changes nothing.
        fs::write(&path, "precious").unwrap();
        let refusal = make(&[line]).unwrap_err();
        assert!(
            refusal.contains("exists, and nothing is overwritten"),
            "{refusal}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }
}

#[test]
fn each_preallocation_of_a_qcow2_image_is_what_was_asked_for() {
    if !has_programs("qcow2 preallocation", &["qemu-img"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (mode, offsets, is_reserved) in [
        ("off", 0, false),
        ("metadata", 16 * MIB, false),
        ("falloc", 16 * MIB, true),
        ("full", 16 * MIB, true),
    ] {
        let path = folder.path().join(format!("{mode}.qcow2"));
        let line = format!("qcow2:{},size=16M,preallocation={mode}", path.display());
        make(std::slice::from_ref(&line)).unwrap();
        let info = info(&path);
        assert_eq!(info["format"], "qcow2");
        assert_eq!(info["virtual-size"], 16 * MIB);
        assert_eq!(mapped(&path, "qcow2").0, offsets, "{mode}");
        assert_eq!(allocated(&path) >= 16 * MIB, is_reserved, "{mode}");
        // Once more is done already, and changes nothing.
        let before = fs::read(&path).unwrap();
        make(&[line]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn every_option_of_a_qcow2_image_reaches_its_header() {
    if !has_programs("qcow2 options", &["qemu-img"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let whole = format!(
        "qcow2:{},size=1G,cluster-size=128K,extended-l2=on,lazy-refcounts=on",
        at("whole").display()
    );
    let plain = format!(
        "qcow2:{},size=1G,cluster-size=2M,extended-l2=off,lazy-refcounts=off",
        at("plain").display()
    );
    make(&[whole, plain]).unwrap();
    let data = |path: &str| info(&at(path))["format-specific"]["data"].clone();
    assert_eq!(info(&at("whole"))["cluster-size"], 128 << 10);
    assert_eq!(data("whole")["extended-l2"], true);
    assert_eq!(data("whole")["lazy-refcounts"], true);
    assert_eq!(info(&at("plain"))["cluster-size"], 2 << 20);
    assert_eq!(data("plain")["extended-l2"], false);
    assert_eq!(data("plain")["lazy-refcounts"], false);
}

#[test]
fn an_overlay_names_its_backing_image_and_format_whatever_the_path() {
    if !has_programs("overlays", &["qemu-img"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (number, name) in [
        "plain",
        "comma,size=1T,b",
        "colon:nbd:localhost",
        "json:{\"driver\":\"null-co\"}",
        "quote'\"$(touch x)`id`",
        "line\nfeed -rf",
        "-f",
        "é …",
        "% * ? [a] \\ #",
    ]
    .into_iter()
    .enumerate()
    {
        // Odd folder, odd name.
        let folder = folder
            .path()
            .join(format!("{number} {}", name.replace('/', "")));
        fs::create_dir(&folder).unwrap();
        let base = folder.join(format!("{name}.base"));
        let top = folder.join(format!("{name}.top"));
        let written = |path: &Path| path.to_str().unwrap().replace(',', ",,");
        make(&[format!("raw:{},size=8M", written(&base))]).unwrap();
        make(&[format!(
            "qcow2:{},backing.path={},backing.format=raw",
            written(&top),
            written(&base)
        )])
        .unwrap();
        let info = info(&top);
        assert_eq!(info["backing-filename"], base.to_str().unwrap());
        assert_eq!(info["backing-filename-format"], "raw");
        assert_eq!(info["virtual-size"], 8 * MIB, "as large as what lies below");
        let mut found: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        found.sort();
        assert_eq!(found, [base, top], "nothing else was made");
    }
}

#[test]
fn a_preallocated_overlay_needs_subclusters_and_gets_them() {
    if !has_programs("preallocated overlays", &["qemu-img"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    make(&[format!("raw:{},size=8M", at("base"))]).unwrap();
    let overlay = format!(
        "qcow2:{},size=8M,preallocation=metadata,extended-l2=on,backing.path={},backing.format=raw",
        at("top"),
        at("base")
    );
    make(&[overlay]).unwrap();
    // What the spec refuses, qemu-img refuses too.
    let output = try_run(
        "qemu-img",
        &[
            "create",
            "-f",
            "qcow2",
            "-o",
            "preallocation=metadata",
            "-b",
            &at("base"),
            "-F",
            "raw",
            &at("no"),
        ],
    );
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("extended_l2"), "{message}");
}

#[test]
fn what_a_spec_refuses_of_an_image_qemu_img_refuses_too() {
    if !has_programs("limits of qemu-img", &["qemu-img"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.qcow2");
    let path = path.to_str().unwrap();
    for (option, key) in [
        ("cluster_size=256", "cluster-size=256"),
        ("cluster_size=4M", "cluster-size=4M"),
        ("cluster_size=96K", "cluster-size=96K"),
        (
            "cluster_size=8K,extended_l2=on",
            "cluster-size=8K,extended-l2=on",
        ),
    ] {
        let output = try_run(
            "qemu-img",
            &["create", "-f", "qcow2", "-o", option, path, "1G"],
        );
        assert!(!output.status.success(), "{option}");
        let line = format!("qcow2:{path},size=1G,{key}");
        assert!(DiskSpec::from_one_liner(&line).is_err(), "{line}");
    }
    for key in [
        "cluster-size=512",
        "cluster-size=2M",
        "cluster-size=16K,extended-l2=on",
    ] {
        let _ = fs::remove_file(path);
        make(&[format!("qcow2:{path},size=1M,{key}")]).unwrap();
    }
}

#[test]
fn images_belong_to_their_maker_alone() {
    if !has_programs("permissions", &["qemu-img"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.img");
    make(&[format!("raw:{},size=1M", path.display())]).unwrap();
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap());
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

/// A file system in a file, mounted while this lives.
struct Mounted {
    folder: tempfile::TempDir,
}

impl Mounted {
    /// A new btrfs, if this process may mount one.
    fn btrfs() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("fs.img");
        fs::File::create(&image)
            .unwrap()
            .set_len(256 * MIB)
            .unwrap();
        run("mkfs.btrfs", &["-q", image.to_str().unwrap()]);
        let mounted = Mounted { folder };
        fs::create_dir(mounted.root()).unwrap();
        let root = mounted.root();
        let output = try_run(
            "mount",
            &[
                "-o",
                "loop",
                image.to_str().unwrap(),
                root.to_str().unwrap(),
            ],
        );
        output.status.success().then_some(mounted)
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("root")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Before the folder goes away; if it was never mounted this fails, which does not matter.
        let _ = try_run("umount", &[self.root().to_str().unwrap()]);
    }
}

#[test]
fn on_btrfs_the_image_is_written_in_place() {
    let test = "nocow=on on btrfs";
    let programs = ["qemu-img", "lsattr", "mkfs.btrfs", "mount", "umount"];
    if !has_programs(test, &programs) {
        return;
    }
    let mounted = Mounted::btrfs();
    if !is_given(mounted.is_some(), test, "right to mount a btrfs") {
        return;
    }
    let root = mounted.as_ref().unwrap().root();
    let facts = Facts::from_yaml(&format!(
        "
schema_version: '1.0'
kernel: {{version: [6, 18, 44]}}
mounts: [{{id: m1, point: '{root}', fs: f1, options: {{nodatacow: null}}}}]
filesystems: [{{id: f1, kind: btrfs, btrfs: {{data_profile: [single]}}}}]
dirs: [{{path: '{root}', present: true, mount: m1, nocow: false}}]
",
        root = root.display()
    ))
    .unwrap()
    .facts;
    let raw = root.join("vm/a.img");
    let qcow2 = root.join("vm/b.qcow2");
    let cow = root.join("cow.img");
    let lines = [
        format!("raw:{},size=1M", raw.display()),
        format!("qcow2:{},size=1M", qcow2.display()),
        format!("raw:{},size=1M,nocow=off", cow.display()),
    ];
    let text = script_of(&lines, &facts);
    std::fs::create_dir(root.join("vm")).unwrap();
    let output = run_script(&text, &[]);
    assert!(output.status.success(), "{text}\n{output:?}");
    let is_nocow = |path: &Path| {
        let flags = run("lsattr", &["-d", "--", path.to_str().unwrap()]);
        flags.split_whitespace().next().unwrap().contains('C')
    };
    assert!(is_nocow(&raw) && is_nocow(&qcow2));
    assert!(!is_nocow(&cow));
    for directory in [&root, &root.join("vm")] {
        assert!(!is_nocow(directory), "no directory is changed");
    }
}

/// A volume group on a loop device, while this lives, with its own configuration of LVM.
struct Group {
    device: LoopDevice,
    folder: tempfile::TempDir,
    name: String,
}

impl Group {
    fn new(has_device_mapper: bool) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("pv.img");
        let device = LoopDevice::new(&image, 1024 * MIB, &[]).ok()?;
        let activation = if has_device_mapper { 1 } else { 0 };
        // Only this device, and nothing of what the machine has.
        let configuration = format!(
            "devices {{ use_devicesfile=0 global_filter=[\"a|^{}$|\",\"r|.*|\"] }}\n\
             global {{ activation={activation} }}\n\
             backup {{ backup=0 archive=0 }}\n",
            device.path()
        );
        fs::write(folder.path().join("lvm.conf"), configuration).unwrap();
        let name = format!("vmdisk{}", std::process::id());
        let group = Group {
            device,
            folder,
            name,
        };
        group.lvm(&format!("pvcreate {}", group.device.path()));
        group.lvm(&format!("vgcreate {} {}", group.name, group.device.path()));
        Some(group)
    }

    fn run(&self, text: &str) -> std::process::Output {
        let folder = self.folder.path().to_str().unwrap();
        let variables = [
            ("LVM_SYSTEM_DIR", folder),
            ("LVM_SUPPRESS_FD_WARNINGS", "1"),
        ];
        run_script(text, &variables)
    }

    /// Runs one of LVM's commands.
    fn lvm(&self, command: &str) -> String {
        let output = self.run(&format!("PATH=$PATH:/usr/sbin:/sbin\n{command}\n"));
        assert!(output.status.success(), "{command}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.run(&format!(
            "PATH=$PATH:/usr/sbin:/sbin\nvgremove --force --yes {}\n",
            self.name
        ));
    }
}

#[test]
fn the_real_lvm_makes_the_volumes_or_as_much_as_this_kernel_lets_it() {
    let test = "LVM volumes";
    let programs = ["lvcreate", "vgcreate", "pvcreate", "losetup", "dmsetup"];
    if !has_programs(test, &programs) {
        return;
    }
    let has_device_mapper = try_run("dmsetup", &["version"]).status.success();
    let group = Group::new(has_device_mapper);
    if !is_given(group.is_some(), test, "right to make loop devices") {
        return;
    }
    let group = group.unwrap();
    let name = &group.name;
    let thick = script_of(&[format!("lvm:{name}/data,size=99M")], &Facts::default());
    let output = group.run(&thick);
    assert!(output.status.success(), "{thick}\n{output:?}");
    // Rounded up to whole extents of 4 MiB.
    let sizes = group.lvm(&format!(
        "lvs --noheadings --units m -o lv_name,lv_size {name}"
    ));
    let words: Vec<&str> = sizes.split_whitespace().collect();
    assert_eq!(words, ["data", "100.00m"]);
    let output = group.run(&thick);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("done already: "), "{said}");
    let other = script_of(&[format!("lvm:{name}/data,size=103M")], &Facts::default());
    let refusal = String::from_utf8(group.run(&other).stderr).unwrap();
    assert!(
        refusal.ends_with("exists, and nothing is overwritten: it is not as planned\n"),
        "{refusal}"
    );
    let missing = script_of(
        &["lvm:vmdisk-no-such-group/data,size=99M".to_owned()],
        &Facts::default(),
    );
    let refusal = String::from_utf8(group.run(&missing).stderr).unwrap();
    assert!(refusal.contains("refused: volume group"), "{refusal}");

    let thin = script_of(
        &[format!(
            "lvm-thin:{name}/t,pool=p,size=2G,pool-size=200M,chunk-size=128K"
        )],
        &Facts::default(),
    );
    let output = group.run(&thin);
    let said =
        String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
    if has_device_mapper {
        assert!(output.status.success(), "{thin}\n{said}");
        let columns = "lv_name,lv_size,pool_lv,chunk_size,zero";
        let rows = group.lvm(&format!("lvs --noheadings --units m -o {columns} {name}"));
        let pool = rows
            .lines()
            .find(|row| row.trim_start().starts_with("p "))
            .unwrap();
        let pool: Vec<&str> = pool.split_whitespace().collect();
        assert_eq!(pool, ["p", "200.00m", "0.12m", "zero"], "{rows}");
        assert!(rows.contains("2048.00m p"), "{rows}");
        let again = group.run(&thin);
        assert!(again.status.success(), "{again:?}");
    } else {
        // LVM has understood every argument when it says what the pool can address.
        assert!(
            said.contains("Thin pool volume with chunk size 128.00 KiB"),
            "{said}"
        );
        assert!(
            said.contains("without using device-mapper kernel driver"),
            "{said}"
        );
        vmdisk_testing::skipped_even_if_required(
            "making thin volumes needs device-mapper in the kernel",
        );
    }
}
