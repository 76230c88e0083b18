//! `vmdisk generate --live --to script` on real file systems: the command looks at the mount, the script
//! is run, and `qemu-img` reads back what it made. What LVM makes of scripts, `vmdisk-plan` tests.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use vmdisk_tests::{Run, has_program, real, run};

const MIB: u64 = 1 << 20;

/// A file system in a file, mounted while this lives.
struct Mounted {
    folder: tempfile::TempDir,
}

impl Mounted {
    /// A new one, if this process may mount it.
    fn new(kind: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Mounted { folder };
        let image = mounted.folder.path().join("fs.img");
        std::fs::File::create(&image)
            .unwrap()
            .set_len(512 * MIB)
            .unwrap();
        let image = image.to_str().unwrap();
        let made = run(&format!("mkfs.{kind}"), &["-q", image], "");
        assert_eq!(made.code, 0, "{made:?}");
        std::fs::create_dir(mounted.root()).unwrap();
        let root = mounted.root();
        let said = run("mount", &["-o", "loop", image, root.to_str().unwrap()], "");
        (said.code == 0).then_some(mounted)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Before the folder goes away; if it was never mounted this fails, which does not matter.
        run("umount", &[self.root().to_str().unwrap()], "");
    }
}

/// An image that is asked for, and what it is to be like.
struct Asked {
    name: String,
    format: &'static str,
    preallocation: &'static str,
    /// Whether each byte has its place in the file.
    is_mapped: bool,
    /// Whether each byte has its blocks on the disk.
    is_reserved: bool,
}

/// Names that a shell, a command or an option list could each misread.
const HOSTILE: [&str; 7] = [
    "two words",
    "quotes ' and \"",
    "line\nend",
    "-rf",
    "$(touch made) `touch made`",
    "comma,size=9T",
    "é … * ? [a] \\ # %s",
];

fn asked() -> Vec<Asked> {
    let mut all = Vec::new();
    for (format, preallocation, is_mapped, is_reserved) in [
        ("raw", "off", false, false),
        ("raw", "falloc", true, true),
        ("raw", "full", true, true),
        ("qcow2", "off", false, false),
        ("qcow2", "metadata", true, false),
        ("qcow2", "falloc", true, true),
        ("qcow2", "full", true, true),
    ] {
        all.push(Asked {
            name: format!("{preallocation}.{format}"),
            format,
            preallocation,
            is_mapped,
            is_reserved,
        });
    }
    all.extend(HOSTILE.iter().map(|name| Asked {
        name: (*name).to_owned(),
        format: "qcow2",
        preallocation: "off",
        is_mapped: false,
        is_reserved: false,
    }));
    all
}

/// The script for images in a folder, made for the host as it is now.
fn script(folder: &Path, asked: &[Asked]) -> Run {
    let disks: Vec<String> = asked
        .iter()
        .map(|asked| {
            let Asked {
                name,
                format,
                preallocation,
                ..
            } = asked;
            let path = folder.join(name).to_str().unwrap().replace(',', ",,");
            format!("{format}:{path},size=16M,preallocation={preallocation}")
        })
        .collect();
    let mut arguments = vec!["generate", "--live", "--to", "script"];
    for disk in &disks {
        arguments.extend(["--disk", disk]);
    }
    run(crate::VMDISK, &arguments, "")
}

/// Everything in a folder: length, blocks, and when it was last changed.
fn state(folder: &Path) -> BTreeMap<PathBuf, (u64, u64, i64, i64)> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let meta = std::fs::metadata(&path).unwrap();
            (
                path,
                (meta.len(), meta.blocks(), meta.ctime(), meta.ctime_nsec()),
            )
        })
        .collect()
}

fn qemu_img(arguments: &[&str], path: &Path) -> Value {
    let path = path.to_str().unwrap();
    let said = run(
        "qemu-img",
        &[arguments, &["--output=json", "--", path]].concat(),
        "",
    );
    assert_eq!(said.code, 0, "{said:?}");
    serde_json::from_str(&said.stdout).unwrap()
}

fn assert_made(kind: &str, path: &Path, asked: &Asked) {
    let info = qemu_img(&["info"], path);
    assert_eq!(info["format"], asked.format, "{kind}: {info}");
    assert_eq!(info["virtual-size"], 16 * MIB, "{kind}: {info}");
    let map = qemu_img(&["map", "-f", asked.format], path);
    let parts = map.as_array().unwrap();
    let mapped: u64 = parts
        .iter()
        .filter(|part| part["offset"].is_u64())
        .map(|part| part["length"].as_u64().unwrap())
        .sum();
    // A byte of a raw file is where it is, whether there are blocks for it or not.
    let is_mapped = asked.is_mapped || asked.format == "raw";
    let expected = if is_mapped { 16 * MIB } else { 0 };
    assert_eq!(mapped, expected, "{kind}: {}: {map}", asked.name);
    let blocks = std::fs::metadata(path).unwrap().blocks() * 512;
    let is_reserved = blocks >= 16 * MIB;
    assert_eq!(
        is_reserved, asked.is_reserved,
        "{kind}: {} takes {blocks}",
        asked.name
    );
    if asked.is_reserved && asked.preallocation == "full" {
        let is_data = parts.iter().all(|part| part["data"] == true);
        assert!(is_data, "{kind}: {}: {map}", asked.name);
    }
}

/// Whether `lsattr` shows that a file or directory is written in place.
fn is_nocow(path: &Path) -> bool {
    let said = run("lsattr", &["-d", "--", path.to_str().unwrap()], "");
    assert_eq!(said.code, 0, "{said:?}");
    said.stdout.split_whitespace().next().unwrap().contains('C')
}

/// A script whose second command fails leaves nothing, and makes everything when it is run again; one that has no room
/// begins nothing.
fn assert_undone_and_done_again(kind: &str, folder: &Path) {
    let disk = |name: &str, options: &str| {
        let path = folder.join(name);
        format!("raw:{},{options}", path.to_str().unwrap())
    };
    let script_of = |disks: &[String]| {
        let mut arguments = vec!["generate", "--live", "--to", "script"];
        for disk in disks {
            arguments.extend(["--disk", disk]);
        }
        let said = run(crate::VMDISK, &arguments, "");
        assert_eq!(said.code, 0, "{said:?}");
        said
    };
    let before = state(folder);
    let script = script_of(&[disk("small it's", "size=4M"), disk("large", "size=64M")]).stdout;
    // Files above 10 or 20 MB, by the shell's unit, cannot be written.
    let limited = format!("ulimit -f 20000\n{script}");
    let said = run("sh", &["-c", &limited], "");
    assert_ne!(said.code, 0, "{kind}: {said:?}");
    assert_eq!(state(folder), before, "{kind}: {said:?}");
    let said = run("sh", &["-s"], &script);
    assert_eq!(said.code, 0, "{kind}: {said:?}");
    assert_eq!(state(folder).len(), before.len() + 2, "{kind}");
    for name in ["small it's", "large"] {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    // Each has room alone.
    let full = "size=300M,preallocation=falloc";
    let said = script_of(&[disk("one", full), disk("two", full)]);
    assert!(
        said.stderr.contains("need 600 MiB at once"),
        "{kind}: {said:?}"
    );
    let refused = run("sh", &["-s"], &said.stdout);
    assert_eq!(refused.code, 1, "{kind}: {refused:?}");
    assert!(
        refused.stderr.contains("has too little space for 600 MiB"),
        "{kind}: {refused:?}"
    );
    assert_eq!(state(folder), before, "{kind}");
}

fn on(kind: &str) {
    let test = format!("the script on {kind}");
    let maker = format!("mkfs.{kind}");
    let programs = ["qemu-img", "lsattr", "mount", "umount", maker.as_str()];
    let is_there = programs.iter().all(|program| has_program(program));
    if !real(is_there, &test, &programs.join(", ")) {
        return;
    }
    let mounted = Mounted::new(kind);
    if !real(mounted.is_some(), &test, "the right to mount a file system") {
        return;
    }
    let root = mounted.as_ref().unwrap().root();
    let folder = root.join("images");
    let is_btrfs = kind == "btrfs";
    std::fs::create_dir(&folder).unwrap();
    let asked = asked();
    let script = script(&folder, &asked);
    assert_eq!(script.code, 0, "{script:?}");
    let said = run("sh", &["-s"], &script.stdout);
    assert_eq!(said.code, 0, "{kind}: {said:?}\n{}", script.stdout);

    for asked in &asked {
        let path = folder.join(&asked.name);
        assert_made(kind, &path, asked);
        if is_btrfs {
            assert!(is_nocow(&path), "{}", asked.name);
        }
    }
    if is_btrfs {
        assert!(
            !is_nocow(&folder) && !is_nocow(&root),
            "no directory is changed"
        );
    }
    let made = state(&folder);
    assert_eq!(
        made.len(),
        asked.len(),
        "{kind}: nothing else was made: {made:?}"
    );

    let again = run("sh", &["-s"], &script.stdout);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(
        again.stdout.matches("done already: ").count(),
        asked.len(),
        "{again:?}"
    );
    assert_eq!(
        state(&folder),
        made,
        "{kind}: the second run changed something"
    );
    assert_undone_and_done_again(kind, &folder);
    // One image that is in the way is enough: nothing else is made beside it either.
    for asked in &asked[1..] {
        std::fs::remove_file(folder.join(&asked.name)).unwrap();
    }
    std::fs::write(folder.join(&asked[0].name), "precious").unwrap();
    let before = state(&folder);
    let again = run("sh", &["-s"], &script.stdout);
    assert_eq!(again.code, 1, "{again:?}");
    assert_eq!(
        state(&folder),
        before,
        "{kind}: the third run changed something"
    );
}

#[test]
fn the_script_makes_its_images_on_ext4_and_nothing_the_second_time() {
    on("ext4");
}

#[test]
fn the_script_makes_its_images_on_xfs_and_nothing_the_second_time() {
    on("xfs");
}

#[test]
fn the_script_turns_copy_on_write_off_on_btrfs_before_it_makes_its_images() {
    on("btrfs");
}
