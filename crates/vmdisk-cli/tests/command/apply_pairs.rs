//! One spec and then another, drawn at random: the guest is that of the other one, or what keeps it is said and nothing changed.

use std::fs;

use crate::apply_changes::{command, text_of, write_spec};
use crate::{Place, real_libvirt};

/// Pairs that are tried; more by the variable `VMDISK_PAIRS`.
const PAIRS: u64 = 12;

/// A key, the values that are drawn, and the buses that have it; none if all have.
type DrawnKey = (
    &'static str,
    &'static [&'static str],
    Option<&'static [&'static str]>,
);

const OPTIONS: [DrawnKey; 16] = [
    ("cache", &["none", "writeback", "directsync"], None),
    ("discard", &["unmap", "ignore"], None),
    ("detect-zeroes", &["off", "on"], None),
    ("serial", &["a", "b", "c"], None),
    (
        "iotune",
        &[
            "{total-iops-sec: 100}",
            "{read-iops-sec: 200, write-iops-sec: 300}",
            "{total-bytes-sec: 1M}",
        ],
        None,
    ),
    ("error-policy", &["stop", "report", "enospace"], None),
    ("read-error-policy", &["stop", "report"], None),
    ("copy-on-read", &["on", "off"], None),
    ("shareable", &["false"], None),
    ("transient", &["false"], None),
    (
        "readonly",
        &["true", "false"],
        Some(&["virtio-blk", "virtio-scsi", "usb"]),
    ),
    (
        "removable",
        &["true", "false"],
        Some(&["virtio-scsi", "usb"]),
    ),
    ("queues", &["1", "2"], Some(&["virtio-blk"])),
    ("queue-size", &["128", "256"], Some(&["virtio-blk"])),
    ("iothread", &["1", "2"], Some(&["virtio-blk"])),
    ("vendor", &["a", "b"], Some(&["virtio-scsi"])),
];

const BUSES: [&str; 4] = ["virtio-blk", "virtio-scsi", "sata", "usb"];

const GUEST: &str = "version: 1\nguest: {name: web1, type: qemu, machine: q35, os: linux, memory: 256M, vcpus: 2, iothreads: 2}\ndisks:\n";

/// Numbers that a seed decides (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % count as u64).unwrap()
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// Two specs that set the same keys: what one leaves open keeps the value of the other.
fn pair(seed: u64) -> [String; 2] {
    let mut numbers = Numbers(seed);
    let keys: Vec<&DrawnKey> = OPTIONS.iter().filter(|_| numbers.below(2) == 0).collect();
    let disks: Vec<(usize, &str)> = (0..=numbers.below(3))
        .map(|_| (1 + numbers.below(8), numbers.one_of(&["raw", "qcow2"])))
        .collect();
    [0, 4].map(|growth| {
        let mut spec = GUEST.to_owned();
        for (nth, (size, format)) in disks.iter().enumerate() {
            if nth > 0 && numbers.below(5) == 0 {
                continue;
            }
            let other = ["raw", "qcow2"][usize::from(*format == "raw")];
            let format = numbers.one_of(&[format, format, format, other]);
            let size = size + numbers.below(growth + 1);
            let bus = numbers.one_of(&BUSES);
            spec +=
                &format!("- {format}: {{path: D/{nth}.{format}, size: {size}M}}\n  bus: {bus}\n");
            for (key, values, buses) in &keys {
                if buses.is_none_or(|buses| buses.contains(&bus)) {
                    spec += &format!("  {key}: {}\n", numbers.one_of(values));
                }
            }
        }
        spec
    })
}

/// A libvirt, and a place for the images of one guest.
struct Host {
    place: Place,
    uri: String,
}

impl Host {
    /// Applies a spec with all changes, and with facts by which direct I/O works if there are any.
    fn apply(&self, spec: &str, has_facts: bool) -> (Option<i32>, String, String) {
        write_spec(&self.place, spec);
        let change = ["--change", "grow,add,remove,options,bus,move"];
        let facts = ["--facts", "facts.yaml", "--target", "qemu=11.1.3"];
        let facts = facts.into_iter().filter(|_| has_facts);
        let words: Vec<&str> = change.into_iter().chain(facts).collect();
        let mut apply = command(&self.place, &words);
        text_of(
            &apply
                .env("LIBVIRT_DEFAULT_URI", &self.uri)
                .output()
                .unwrap(),
        )
    }

    fn virsh(&self, words: &[&str]) -> Result<String, String> {
        vmdisk_testing::run("virsh", &[&["--connect", &self.uri], words].concat())
    }

    fn definition(&self) -> String {
        self.virsh(&["dumpxml", "--inactive", "web1"]).unwrap()
    }

    fn fresh(&self) {
        let _ = self.virsh(&["undefine", "web1"]);
        let _ = fs::remove_dir_all(self.place.path("images"));
        fs::create_dir(self.place.path("images")).unwrap();
    }
}

/// The disks of a definition without what a plan chooses around them: places, and iothreads unless the spec names them.
fn disks(xml: &str, names_threads: bool) -> Vec<String> {
    let inside = |part: &str| part.split_once("</disk>").map(|(disk, _)| disk.to_owned());
    let mut disks: Vec<String> = xml.split("<disk ").skip(1).filter_map(inside).collect();
    for disk in &mut disks {
        let mut lines: Vec<String> = disk
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.starts_with("<address "))
            .collect();
        for line in lines.iter_mut().filter(|_| !names_threads) {
            *line = line
                .replace(" iothread='1'", "")
                .replace(" iothread='2'", "");
        }
        // An element that is added may stand elsewhere than in a new definition.
        lines.sort_unstable();
        *disk = lines.join("\n");
    }
    disks.sort_unstable();
    disks
}

#[test]
fn a_spec_after_any_other_is_that_spec_or_nothing_changed() {
    let Some((_root, uri)) = real_libvirt() else {
        return;
    };
    let host = Host {
        place: Place::with(&[]),
        uri,
    };
    let folder = host.place.path("images").display().to_string();
    let facts = format!(
        "schema_version: '1.0'\nmounts: [{{id: m, point: {folder}, fs: f}}]\nfilesystems: [{{id: f, kind: xfs}}]\n"
    );
    host.place.write("facts.yaml", facts.as_bytes());
    let pairs = std::env::var("VMDISK_PAIRS");
    let pairs = pairs.ok().and_then(|it| it.parse().ok()).unwrap_or(PAIRS);
    let (mut equal, mut tried) = (0, 0);
    for seed in 0..pairs {
        let [from, to] = pair(seed);
        let has_facts = seed % 2 == 1;
        host.fresh();
        if host.apply(&to, has_facts).0 != Some(0) {
            continue;
        }
        let wanted = host.definition();
        host.fresh();
        if host.apply(&from, has_facts).0 != Some(0) {
            continue;
        }
        tried += 1;
        let before = host.definition();
        let (code, said, errors) = host.apply(&to, has_facts);
        let at = format!("seed {seed}\n{from}\n{to}\n{said}{errors}");
        if code != Some(0) {
            assert_eq!(code, Some(1), "{at}");
            assert!(
                said.ends_with("refused\n") || said.ends_with("incomplete\n") || said.is_empty(),
                "{at}"
            );
            if !said.ends_with("incomplete\n") {
                assert_eq!(host.definition(), before, "{at}");
            }
            continue;
        }
        let names_threads = to.contains("  iothread: ");
        let [now, wanted] = [host.definition(), wanted].map(|xml| disks(&xml, names_threads));
        assert_eq!(now, wanted, "{at}");
        // Without facts, nothing is known better.
        let (code, said, errors) = host.apply(&to, false);
        assert_eq!(code, Some(0), "{at}{said}{errors}");
        assert!(said.ends_with("nothing-to-do\n"), "{at}{said}");
        equal += 1;
    }
    println!("{equal} of {tried} are equal");
    assert!(3 * equal >= tried, "{equal} of {tried}");
}
