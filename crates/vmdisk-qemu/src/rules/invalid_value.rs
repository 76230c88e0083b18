//! `invalid-value`, for numbers and words that reading keeps unchanged.

use vmdisk_facts::{MemberTable, Owner};
use vmdisk_model::Format;
use vmdisk_rule::Report;
use vmdisk_source::nearest;

use super::drive_protocol_unknown::DRIVES;
use super::line::{Line, base_of};
use super::nodes::nodes;
use crate::device::driver::disk_driver;
use crate::members::Members;
use crate::syntax::value::number_of;

/// The range of a number: device, property, minimum and maximum.
const RANGES: &[(&str, &str, u64, u64)] = &[
    ("virtio-blk", "max-discard-sectors", 1, 4_194_303),
    ("virtio-blk", "max-write-zeroes-sectors", 1, 4_194_303),
    ("virtio-blk", "cyls", 0, 65_535),
    ("virtio-blk", "heads", 0, 255),
    ("virtio-blk", "secs", 0, 255),
    ("scsi-hd", "cyls", 0, 65_535),
    ("scsi-hd", "heads", 0, 255),
    ("scsi-hd", "secs", 0, 255),
    ("nvme", "aerl", 0, 255),
    ("nvme", "max_ioqpairs", 1, 65_535),
    ("nvme", "mdts", 0, 255),
    ("nvme", "msix_qsize", 1, 2048),
    ("ide-hd", "cyls", 1, 65_535),
    ("ide-hd", "heads", 1, 16),
    ("ide-hd", "secs", 1, 255),
];

/// The values of `if`.
const INTERFACES: &[&str] = &[
    "floppy", "ide", "mtd", "none", "pflash", "scsi", "sd", "virtio", "xen",
];

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    check_ranges(line, report);
    check_polling(line, report);
    check_interfaces(line, report);
    check_units(line, report);
    check_options(line, report);
    check_device_names(line, report);
    check_driver_names(line, report);
}

/// Options that are a misspelt option about disks. Other unknown options are not reported: vendors add their own.
const OPTIONS: &[&str] = &[
    "blockdev",
    "cdrom",
    "device",
    "drive",
    "global",
    "machine",
    "object",
    "readconfig",
    "snapshot",
];

/// Disk devices and their controllers.
const DEVICES: &[&str] = &[
    "ahci",
    "ich9-ahci",
    "ide-cd",
    "ide-hd",
    "nvme-ns",
    "scsi-block",
    "scsi-cd",
    "scsi-generic",
    "scsi-hd",
    "usb-storage",
    "vhost-user-blk-pci",
    "virtio-blk",
    "virtio-blk-ccw",
    "virtio-blk-device",
    "virtio-blk-pci",
    "virtio-scsi",
    "virtio-scsi-ccw",
    "virtio-scsi-pci",
];

/// True if one letter is wrong, missing or superfluous, or two are swapped. Most unknown names are devices that are
/// not about disks, such as `virtio-gpu-pci`, which `nearest` alone would call misspelt.
fn is_misspelt(word: &str, meant: &str) -> bool {
    let (word, meant) = (word.as_bytes(), meant.as_bytes());
    let shorter = word.len().min(meant.len());
    let is_same = |(a, b): &(&u8, &u8)| a == b;
    let start = word.iter().zip(meant).take_while(is_same).count();
    let tail = word.iter().rev().zip(meant.iter().rev());
    let end = tail.take_while(is_same).count().min(shorter - start);
    let (wrong, right) = (
        &word[start..word.len() - end],
        &meant[start..meant.len() - end],
    );
    match (wrong, right) {
        ([_], [_]) | ([_], []) | ([], [_]) => true,
        ([a, b], [c, d]) => (a, b) == (d, c),
        _ => false,
    }
}

fn check_options(line: &Line<'_>, report: &mut Report) {
    for (option, written) in line.document.options.iter().enumerate() {
        let name = written.name.as_str();
        // Distances to all names cost much more than this.
        if OPTIONS.contains(&name) {
            continue;
        }
        let near = nearest(name, OPTIONS.iter().copied());
        if let Some(near) = near.filter(|near| is_misspelt(name, near)) {
            let message = format!("QEMU has no option `-{name}`");
            let help = format!("did you mean `-{near}`?");
            line.refuse(report, option, written.span, message, help);
        }
    }
}

fn check_device_names(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        // `ide-cf` is a device of QEMU.
        if disk_driver(driver).is_some() || driver == "ide-cf" {
            continue;
        }
        let near = nearest(driver, DEVICES.iter().copied());
        if let Some(near) = near.filter(|near| is_misspelt(driver, near))
            && let Some(written) = device.get("driver")
        {
            let message = format!("QEMU has no device `{driver}`");
            let help = format!("did you mean `{near}`?");
            line.refuse(report, option, written.span, message, help);
        }
    }
}

fn check_driver_names(line: &Line<'_>, report: &mut Report) {
    let table = MemberTable::recorded();
    for node in nodes(line) {
        let driver = node.driver();
        if node.driver_property().is_open() || table.members(Owner::Node(driver)).is_some() {
            continue;
        }
        let known = table.owners().filter_map(|(owner, _)| match owner {
            Owner::Node(name) => Some(name),
            Owner::Device(_) | Owner::Object(_) => None,
        });
        // `img` is one letter from `dmg`.
        let common = Format::of_common_word(driver).and_then(Format::qemu_driver);
        let near: Vec<String> = known
            .filter(|known| common.map_or_else(|| is_misspelt(driver, known), |it| it == *known))
            .map(|known| format!("`{known}`"))
            .collect();
        if !near.is_empty() {
            let message = format!("QEMU has no block driver `{driver}`");
            let help = format!("did you mean {}?", near.join(" or "));
            line.refuse(report, node.option, node.span(), message, help);
        }
    }
}

fn check_ranges(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        let base = base_of(driver);
        for (owner, key, least, most) in RANGES.iter().filter(|(owner, ..)| *owner == base) {
            let Some(property) = device.get(key) else {
                continue;
            };
            if let Some(number) = number_of(property.value.as_str())
                && !(*least..=*most).contains(&number)
            {
                let message =
                    format!("{owner} supports {key} from {least} to {most}, not {number}");
                let help = format!("remove {key} to use the default");
                line.refuse(report, option, property.span, message, help);
            }
        }
    }
}

fn check_polling(line: &Line<'_>, report: &mut Report) {
    for (option, object) in line.index.objects("iothread") {
        for key in ["poll-max-ns", "poll-grow", "poll-shrink", "aio-max-batch"] {
            if let Some(property) = object.get(key)
                && property.value.as_str().starts_with('-')
            {
                let message = format!(
                    "`{key}` is {}, but must not be negative",
                    property.value.as_str()
                );
                let help = format!("remove {key} to use the default");
                line.refuse(report, option, property.span, message, help);
            }
        }
    }
}

/// URLs of iSCSI without the number of a logical unit: libiscsi has no default.
fn check_units(line: &Line<'_>, report: &mut Report) {
    let drives = DRIVES.iter().flat_map(|name| line.index.of_name(name));
    for (option, drive) in drives {
        let Some(file) = drive.get("file").filter(|file| !file.is_open()) else {
            continue;
        };
        let url = file.value.as_str();
        let Some((_, target)) = url
            .strip_prefix("iscsi://")
            .and_then(|rest| rest.split_once('/'))
        else {
            continue;
        };
        let target = target.split('?').next().unwrap_or(target);
        let unit = target.rsplit_once('/').map_or("", |(_, unit)| unit);
        if unit.is_empty() || !unit.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = "the URL has no number of a logical unit, and QEMU cannot parse it";
            let help = "add it: iscsi://HOST/TARGET/0";
            line.refuse(report, option, file.span, message, help);
        }
    }
}

fn check_interfaces(line: &Line<'_>, report: &mut Report) {
    for (option, drive) in line.index.of_name("drive") {
        if let Some(media) = drive.get("media")
            && !matches!(media.value.as_str(), "cdrom" | "disk")
            && !media.is_open()
        {
            let message = format!("media={}: expected cdrom or disk", media.value.as_str());
            let help = "use media=cdrom for a CD drive, or remove media";
            line.refuse(report, option, media.span, message, help);
        }
        check_index(line, report, option, drive);
        let Some(interface) = drive.get("if") else {
            continue;
        };
        let word = interface.value.as_str();
        if !INTERFACES.contains(&word) && !interface.is_open() {
            let message = format!("if={word}: expected one of {}", INTERFACES.join(", "));
            let help = match nearest(word, INTERFACES.iter().copied()) {
                Some(near) => format!("did you mean `if={near}`?"),
                None => "use if=virtio, or if=none and a -device".to_owned(),
            };
            line.refuse(report, option, interface.span, message, help);
        }
    }
}

/// Reports an index together with a bus or a unit.
fn check_index(line: &Line<'_>, report: &mut Report, option: usize, drive: Members<'_>) {
    let Some(index) = drive.get("index") else {
        return;
    };
    let is_elsewhere = drive
        .get("bus")
        .is_some_and(|bus| number_of(bus.value.as_str()).is_some_and(|bus| bus > 0));
    if drive.get("unit").is_some() || is_elsewhere {
        let message = "index cannot be used together with bus and unit";
        let help = "remove index, or bus and unit";
        line.refuse(report, option, index.span, message, help);
    }
}
