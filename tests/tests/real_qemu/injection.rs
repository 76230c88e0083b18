//! Thousands of made-up names: the files that QEMU opens are the files that were named, and no others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use vmdisk_model::*;
use vmdisk_qemu::{Options, write};
use vmdisk_qmp::Launch;
use vmdisk_tests::{QemuBuild, on_each_qemu};

use crate::matrix::guest;
use crate::qemu::open_files;

/// Disks of one QEMU; a virtio-scsi controller has 256 targets.
const DISKS: usize = 250;

/// Starts of each QEMU.
const STARTS: u64 = 4;

/// Pieces that mean something to some parser between here and `open(2)`.
const BAITS: &[&str] = &[
    ",",
    ",,",
    "=",
    ":",
    "::",
    "\"",
    "'",
    "\\",
    "\\n",
    "\n",
    "\r",
    "\t",
    "\u{1}",
    "\u{1b}[2J",
    "\u{7f}",
    " ",
    "  ",
    "-",
    "--",
    "-drive",
    "-device",
    "@",
    "#",
    "%",
    "%s%n",
    "%2F",
    "$",
    "${x}",
    "$(id)",
    "`id`",
    ";",
    "&",
    "|",
    ">",
    "<",
    "*",
    "?",
    "[a-z]",
    "{",
    "}",
    "{}",
    "[]",
    "~",
    "!",
    "json:",
    "json:{}",
    "json:{\"driver\":\"null-co\"}",
    "nbd:",
    "nbd://",
    "nbd:unix:",
    "fat:",
    "fat:rw:.",
    "file:",
    "http:",
    "https:",
    "ftp:",
    "ssh:",
    "rbd:",
    "iscsi:",
    "nvme:",
    "blkdebug:",
    "blkdebug::",
    "host_device:",
    "null-co:",
    ",if=none",
    ",readonly=on",
    ",snapshot=on",
    ",format=qcow2",
    ",file.driver=null-co",
    ",id=x",
    ",serial=x",
    ",driver=null-co",
    ",node-name=x",
    "off",
    "on",
    "true",
    "null",
    "0",
    "\u{e9}",
    "\u{2603}",
    "\u{1f600}",
    "\u{feff}",
    "\u{202e}",
    "\u{200b}",
    "\u{fffd}",
    "a",
    "b",
    "img",
    ".raw",
    ".qcow2",
];

/// Numbers that look random and are the same in each run (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap() % limit
    }

    /// A text of at most `longest` bytes that may be the name of a file.
    fn text(&mut self, longest: usize) -> String {
        let mut text = String::new();
        for _ in 0..=self.below(8) {
            let piece = BAITS[self.below(BAITS.len())];
            if text.len() + piece.len() <= longest && !piece.contains('/') {
                text.push_str(piece);
            }
        }
        text
    }
}

/// A folder in the folder, and a file in that; both with names that nobody else has.
fn make(numbers: &mut Numbers, folder: &Path, nth: usize) -> PathBuf {
    // A name of its own, at one end or the other: what stands at the beginning is the stronger bait.
    let name = match numbers.below(3) {
        0 => format!("{nth}{}", numbers.text(80)),
        _ => format!("{}{nth}", numbers.text(80)),
    };
    let folder = match numbers.below(4) {
        0 => folder.join(format!("{}d{nth}", numbers.text(40))),
        _ => folder.to_owned(),
    };
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::File::create(&path)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    path
}

fn try_one(build: &QemuBuild, seed: u64) {
    let mut numbers = Numbers(seed);
    let storage = tempfile::tempdir().unwrap();
    // Links on the way are followed in what the kernel shows.
    let folder = storage.path().canonicalize().unwrap();
    let mut domain = guest("q35");
    domain.name = Some(format!("vm{}", numbers.text(60)));
    domain.controllers.push(Controller::virtio_scsi(0));
    let mut named = Vec::new();
    for nth in 0..DISKS {
        let path = make(&mut numbers, &folder, nth);
        // Half of them as seen from the folder that QEMU is started in, so that the bait comes first.
        let text = if numbers.below(2) == 0 {
            path.strip_prefix(&folder)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        } else {
            path.to_str().unwrap().to_owned()
        };
        let mut disk = Disk::new(
            Frontend::new(format!("sd{nth}"), TargetBus::Scsi),
            Image::file(text.as_str(), Format::Raw),
        );
        disk.frontend.target = Some(format!("sd{}", letters(nth)));
        disk.frontend.serial = Some(numbers.text(20));
        disk.frontend.address = Some(Address::Drive(DriveAddress {
            target: u32::try_from(nth).unwrap(),
            ..DriveAddress::default()
        }));
        domain.disks.push(disk);
        named.push((path, text));
    }
    let options = Options {
        target: build.target(),
    };
    let line = write(&domain, &options).unwrap_or_else(|problems| panic!("{problems:?}"));
    let words = line.argv();
    let mut qemu = Launch::paused(build.emulator())
        .args(&words[1..])
        .in_folder(&folder)
        .start()
        .unwrap_or_else(|error| panic!("seed {seed:#x}: {error}"));

    // What QEMU says that it opened, by the disk that it was named for.
    let nodes = qemu.nodes().unwrap();
    for (disk, (_, text)) in domain.disks.iter().zip(&named) {
        let target = disk.name();
        let node = &nodes[&format!("{target}-file")];
        assert_eq!(node["file"], **text, "seed {seed:#x}: {target}");
        assert_eq!(node["drv"], "file", "seed {seed:#x}: {target}");
        let serial = qemu
            .property(&format!("/machine/peripheral/{target}"), "serial")
            .unwrap();
        assert_eq!(
            serial,
            disk.frontend.serial.as_deref().unwrap(),
            "seed {seed:#x}: {target}"
        );
    }
    // What the kernel says that it opened: these files, and no other of the folder.
    let wanted: BTreeSet<PathBuf> = named.iter().map(|(path, _)| path.clone()).collect();
    let opened: BTreeSet<PathBuf> = open_files(&qemu)
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.starts_with(&folder))
        .collect();
    assert_eq!(opened, wanted, "seed {seed:#x}");
    assert_eq!(
        nodes.len(),
        2 * DISKS,
        "seed {seed:#x}: a node that nobody asked for"
    );
    let name = qemu.ask("query-name", json!({})).unwrap();
    assert_eq!(name["name"], *domain.name.as_deref().unwrap());
}

/// `a` to `z`, then `aa` and on.
fn letters(nth: usize) -> String {
    let last = char::from(b'a' + u8::try_from(nth % 26).unwrap());
    match nth / 26 {
        0 => last.to_string(),
        above => format!("{}{last}", letters(above - 1)),
    }
}

#[test]
fn of_thousands_of_hostile_names_each_opens_its_own_file_and_no_other() {
    on_each_qemu("hostile names", |build| {
        for start in 0..STARTS {
            try_one(build, 0x9e37_79b9_7f4a_7c15 ^ (start + 1));
        }
    });
}
