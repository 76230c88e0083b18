//! What one option more does to each kind of disk: it is refused, or other choices follow.
#![allow(clippy::disallowed_methods, reason = "a test reads its golden file")]

use std::collections::BTreeMap;

use vmdisk_facts::{Facts, Target};
use vmdisk_plan::*;

use crate::common::host::{host, spec};

/// One disk of each kind, in the notation of the command line.
const DISKS: [&str; 27] = [
    "raw:/ext4/new.img,size=10G",
    "qcow2:/ext4/new.qcow2,size=10G",
    "qcow2:/ext4/full.qcow2,size=10G,preallocation=full",
    "qcow2:/ext4/over.qcow2,backing.path=/ext4/large.qcow2,backing.format=qcow2",
    "raw:/ext4/sparse.img",
    "raw:/ext4/full.img",
    "qcow2:/ext4/large.qcow2",
    "raw:/xfs4k/new.img,size=10G",
    "raw:/btrfs/new.img,size=10G",
    "raw:/btrfs/nocow/new.img,size=10G",
    "raw:/mirror/new.img,size=10G",
    "raw:/zfs/new.img,size=10G",
    "raw:/tmp/new.img,size=10G",
    "raw:/squash/a.iso,media=cdrom",
    "raw:/ext4/a.img,media=floppy",
    "empty:cdrom",
    "device:/dev/nvme0n1",
    "lun:/dev/sda,bus=virtio-scsi",
    "lvm:fast/thin",
    "lvm:vg0/new,size=10G",
    "lvm-thin:fast/new,pool=pool0,size=10G",
    "lvm-thin:fast/new,pool=fresh,size=10G,pool-size=90G",
    "nbd://store.example/web1",
    "rbd:pool/web1",
    "https://store.example/a.iso,media=cdrom",
    "iscsi://store.example/iqn.2013-07.example:disks/1,as=lun",
    "vhost-user:/run/daemon.sock,served=none",
];

/// Values for each key: those of the most kinds, and those at limits.
const OPTIONS: [(&str, &str); 44] = [
    ("bus", "virtio virtio-scsi sata ide usb nvme floppy sd scsi"),
    ("target", "vda sdb hda fda xvda nvme0n1 vda1 a"),
    ("media", "disk cdrom floppy"),
    ("cache", "none writeback writethrough directsync unsafe"),
    ("io", "threads native io_uring"),
    ("discard", "ignore unmap"),
    ("detect-zeroes", "off on unmap"),
    ("copy-on-read", "on off"),
    ("discard-no-unref", "on off"),
    ("metadata-cache-size", "0 64K 32M"),
    ("queues", "0 1 2 1024 1025"),
    ("queue-size", "1 2 256 1000 1024 2048"),
    ("iothread", "auto 1 0"),
    ("iothread.0", "1"),
    ("logical-block-size", "256 512 1000 4096 2M 4M"),
    ("physical-block-size", "256 512 4096 64K"),
    ("discard-granularity", "0 512 4096 1000 4G"),
    ("error-policy", "stop report ignore enospace"),
    ("read-error-policy", "stop report ignore"),
    ("serial", "a 0123456789abcdefghij 0123456789abcdefghijk ä"),
    ("wwn", "5000c50015ea71aa 5000 x000c50015ea71aa"),
    ("vendor", "ACME 123456789"),
    ("product", "disk 0123456789abcdef 0123456789abcdefg"),
    ("rotation-rate", "1 2 1024 65534 65535"),
    ("removable", "on off"),
    ("boot", "0 1"),
    ("readonly", "on off"),
    ("shareable", "on"),
    ("transient", "on"),
    ("format", "raw qcow2 vmdk luks iso"),
    ("size", "0 511 1G 1000"),
    ("preallocation", "off metadata falloc full"),
    ("cluster-size", "256 512 3000 64K 2M 4M"),
    ("extended-l2", "on"),
    ("lazy-refcounts", "on"),
    ("nocow", "on off"),
    ("backing", "/ext4/sparse.img relative"),
    ("backing-format", "raw qcow2"),
    ("backing-chain", "none"),
    ("data-file", "/ext4/data.raw"),
    ("encryption.secret.usage", "key"),
    ("reservations", "managed"),
    ("iotune.total-iops-sec", "0 1 1000"),
    ("iotune.read-bytes-sec", "1M"),
];

/// The beginning of a fault, without its column.
fn short(fault: &str) -> String {
    let text = fault
        .split_once(", column ")
        .map_or(fault, |(_, rest)| rest);
    let text = text.split_once(": ").map_or(text, |(_, rest)| rest);
    text.split([';', ',']).next().unwrap_or_default().to_owned()
}

/// What comes of a disk: the first fault, or the choices with the number of steps and of what a spec of it lacks.
fn outcome(line: &str, facts: &Facts, target: &Target) -> Result<BTreeMap<String, String>, String> {
    let disk = DiskSpec::from_one_liner(line).map_err(|faults| short(&faults[0].to_string()))?;
    let mut all = spec(&[]);
    all.disks.push(disk);
    let again = Spec::from_yaml(&all.to_yaml()).map_err(|faults| short(&faults[0].to_string()))?;
    assert_eq!(again, all, "{line}");
    let plan = plan(&all, facts, target).map_err(|errors| short(&errors[0].to_string()))?;
    let (_, not_carried) = Spec::of_domain(&plan.domain);
    let choices = plan.choices.iter();
    let mut choices: BTreeMap<String, String> = choices
        .map(|choice| (choice.option.to_owned(), choice.value.clone()))
        .collect();
    choices.insert("steps".to_owned(), plan.steps.len().to_string());
    for lacks in not_carried {
        choices.insert(lacks.what, "not carried".to_owned());
    }
    Ok(choices)
}

/// The choices that differ from the usual ones.
fn shown(line: &str, usual: &BTreeMap<String, String>, facts: &Facts, target: &Target) -> String {
    match outcome(line, facts, target) {
        Err(fault) => format!("refused: {fault}"),
        Ok(choices) => {
            let new = choices
                .iter()
                .filter(|(key, value)| usual.get(*key) != Some(*value));
            let changed = new.map(|(key, value)| format!("{key} {value}"));
            let gone = usual.keys().filter(|key| !choices.contains_key(*key));
            let all = changed.chain(gone.map(|key| format!("{key} undecided")));
            all.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Options, those of one key joined.
fn joined(options: &[String]) -> String {
    let mut text = String::new();
    let mut last = "";
    for option in options {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        let (mark, shown) = if key == last {
            ("|", value)
        } else {
            (" ", option.as_str())
        };
        text.push_str(mark);
        text.push_str(shown);
        last = key;
    }
    text.trim_start().to_owned()
}

#[test]
fn what_follows_from_one_option_more_is_recorded() {
    let facts = host();
    let target = Target::from_facts(&facts);
    let mut text = String::new();
    for disk in DISKS {
        let usual = outcome(disk, &facts, &target);
        text.push_str(&format!("{disk}\n"));
        for (option, value) in usual.iter().flatten() {
            text.push_str(&format!("    {option}: {value}\n"));
        }
        let usual = usual.unwrap_or_default();
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, values) in OPTIONS {
            for value in values.split(' ') {
                let option = format!("{key}={value}");
                let mut shown = shown(&format!("{disk},{option}"), &usual, &facts, &target);
                if shown
                    .split_once(' ')
                    .is_some_and(|(first, rest)| first == key && !rest.contains(", "))
                {
                    shown = "as asked".to_owned();
                }
                found.entry(shown).or_default().push(option);
            }
        }
        for words in [
            "qemu=5.2,libvirt=9.0",
            "qemu=7.2,libvirt=9.0",
            "qemu=11.1,libvirt=12.5",
        ] {
            let target: Target = words.parse().expect("it is a target");
            found
                .entry(shown(disk, &usual, &facts, &target))
                .or_default()
                .push(words.to_owned());
        }
        let nothing = Facts::default();
        found
            .entry(shown(disk, &usual, &nothing, &target))
            .or_default()
            .push("no facts".to_owned());
        for (shown, options) in found {
            text.push_str(&format!("  {}: {shown}\n", joined(&options)));
        }
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grid.txt");
    if std::env::var_os("VMDISK_BLESS").is_some_and(|value| value == "yes") {
        std::fs::write(&path, &text).expect("the golden file is written");
    }
    let expected = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(text, expected, "VMDISK_BLESS=yes writes the file");
}
