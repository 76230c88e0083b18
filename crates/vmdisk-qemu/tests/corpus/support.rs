//! Files of the corpus, and what of a command line both sides can be held to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use vmdisk_qemu::{Options, Style};

/// A directory of the corpus, or nothing and a line that says so.
pub(crate) fn corpus(directory: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("VMDISK_CORPUS") else {
        eprintln!("skipped: VMDISK_CORPUS is not set");
        return None;
    };
    let path = PathBuf::from(root).join(directory);
    assert!(path.is_dir(), "VMDISK_CORPUS has no {directory}");
    Some(path)
}

pub(crate) fn options(target: &str) -> Options {
    Options {
        target: target.parse().unwrap(),
        style: Style::Libvirt,
    }
}

/// Files of a directory by name, those that end so.
pub(crate) fn files(directory: &PathBuf, end: &str) -> BTreeMap<String, PathBuf> {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(end)?.to_owned();
            Some((name, path))
        })
        .collect()
}

/// The words of a file that is written for a shell.
pub(crate) fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut is_quoted, mut has_word) = (false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                is_quoted = !is_quoted;
                has_word = true;
            }
            _ if is_quoted => word.push(character),
            '\\' if characters.peek() == Some(&'\n') => {
                characters.next();
            }
            '\\' => word.extend(characters.next()),
            ' ' | '\n' => {
                if has_word {
                    words.push(std::mem::take(&mut word));
                }
                has_word = false;
            }
            other => {
                word.push(other);
                has_word = true;
            }
        }
    }
    words
}

/// Drivers of the devices that this crate writes.
pub(crate) const DRIVERS: &[&str] = &[
    "virtio-blk-pci",
    "virtio-blk-pci-transitional",
    "virtio-blk-pci-non-transitional",
    "vhost-user-blk-pci",
    "scsi-hd",
    "scsi-cd",
    "scsi-block",
    "ide-hd",
    "ide-cd",
    "usb-storage",
    "floppy",
    "virtio-scsi-pci",
    "virtio-scsi-pci-transitional",
    "virtio-scsi-pci-non-transitional",
    "lsi",
    "megasas",
    "mptsas1068",
    "pvscsi",
    "am53c974",
    "dc390",
    "ahci",
    "isa-fdc",
    "piix3-usb-uhci",
    "qemu-xhci",
    "nec-usb-xhci",
    "ich9-usb-ehci1",
    "ich9-usb-uhci1",
    "ich9-usb-uhci2",
    "ich9-usb-uhci3",
    "usb-ehci",
    "pci-ohci",
    "piix4-usb-uhci",
    "vt82c686b-usb-uhci",
];

/// One option with what both sides can be held to, without the members that are ignored.
fn comparable(option: &str, value: &str, ignored: &[&str]) -> Option<String> {
    if option == "-blockdev" {
        // Host devices and firmware have nodes too.
        let is_of_disk = !value.contains("-backend\"") && !value.contains("libvirt-pflash");
        return is_of_disk.then(|| format!("{option} {value}"));
    }
    if option == "-chardev" {
        return value
            .contains("chr-vu-virtio-disk")
            .then(|| format!("{option} {value}"));
    }
    if option == "-object" {
        let kinds = ["iothread", "main-loop", "throttle-group"];
        return kinds
            .iter()
            .any(|kind| value.contains(&format!("\"qom-type\":\"{kind}\"")))
            .then(|| format!("{option} {value}"));
    }
    if option == "-global" {
        return value
            .contains("isa-fdc")
            .then(|| format!("{option} {value}"));
    }
    if option != "-device" {
        return None;
    }
    let driver = value.split("\"driver\":\"").nth(1)?.split('"').next()?;
    if !DRIVERS.contains(&driver) {
        return None;
    }
    let is_pci = !(driver.starts_with("scsi-") || driver.starts_with("ide-") || driver == "floppy");
    let members = value.trim_start_matches('{').trim_end_matches('}');
    let kept: Vec<&str> = split_members(members)
        .into_iter()
        .filter(|member| {
            let is_place = |key: &str| PLACES.contains(&key);
            !ignored
                .iter()
                .any(|key| member.starts_with(key) && (is_pci || !is_place(key)))
        })
        .collect();
    Some(format!("-device {{{}}}", kept.join(",")))
}

/// The members of a JSON object, as text.
pub(crate) fn split_members(text: &str) -> Vec<&str> {
    let (mut depth, mut is_string, mut is_escaped, mut start) = (0, false, false, 0);
    let mut members = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                members.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(&text[start..]);
    members
}

/// The options of a command line that both sides can be held to.
pub(crate) fn options_of(words: &[String], ignored: &[&str]) -> Vec<String> {
    words
        .windows(2)
        .filter_map(|pair| comparable(&pair[0], &pair[1], ignored))
        .collect()
}

/// Where a device sits on PCI or USB, which libvirt chooses where it is not written.
pub(crate) const PLACES: &[&str] = &["\"bus\":", "\"addr\":", "\"multifunction\":", "\"port\":"];

/// The options of a command line without the places on PCI and without `bootindex`.
pub(crate) fn comparable_line(words: &[String]) -> Vec<String> {
    let ignored: Vec<&str> = PLACES.iter().copied().chain(["\"bootindex"]).collect();
    options_of(words, &ignored)
        .into_iter()
        .filter(|option| !option.starts_with("-global"))
        .collect()
}
