//! `missing-value`, for values that a device or node requires but reading does not.

use std::collections::HashSet;

use vmdisk_rule::Report;

use super::drive_protocol_unknown::DRIVES;
use super::line::{Line, base_of, has_own_device};
use super::nodes::{Node, nodes};
use crate::members::Members;
use crate::syntax::properties::Property;

/// Formats and filters, which need a node below them.
const ABOVE_A_FILE: &[&str] = &[
    "raw",
    "qcow2",
    "qcow",
    "qed",
    "vmdk",
    "vdi",
    "vhdx",
    "vpc",
    "parallels",
    "luks",
    "bochs",
    "cloop",
    "dmg",
    "throttle",
    "copy-on-read",
    "compress",
];

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    check_names(line, report);
    let sets: HashSet<&str> = line
        .index
        .of_name("add-fd")
        .filter_map(|(_, added)| added.value("set"))
        .collect();
    for node in nodes(line) {
        check_file_below(line, report, &node);
        check_fd_set(line, report, &node, &sets);
        check_rbd_node(line, report, &node);
        node.check_object(line, report, "pr-manager", "pr-manager-helper", "path=…");
    }
    check_empty_drives(line, report);
    check_rbd_names(line, report);
    for (option, driver, device) in line.index.devices() {
        let base = base_of(driver);
        check_drive(line, report, option, base, device);
        if base == "nvme" && device.get("serial").is_none() {
            let span = line.index.span(option);
            let message = "an NVMe controller has no serial number";
            let help = "set serial to 1 to 20 characters";
            line.refuse(report, option, span, message, help);
        }
    }
}

fn check_names(line: &Line<'_>, report: &mut Report) {
    for (option, properties) in line.index.of_name("blockdev") {
        for (key, help) in [
            ("driver", "set driver=file, or the driver of the source"),
            (
                "node-name",
                "set node-name, and use it as the drive of the device",
            ),
        ] {
            if properties.get(key).is_none() && properties.iter().next().is_some() {
                let span = line.index.span(option);
                let message = format!("a -blockdev has no {key}");
                line.refuse(report, option, span, message, help);
            }
        }
    }
}

fn check_file_below(line: &Line<'_>, report: &mut Report, node: &Node<'_>) {
    let driver = node.driver();
    let has_file =
        node.get("file").is_some() || node.properties.has_within(&format!("{}file.", node.prefix));
    // A nested node is written with its members, of which `driver` is required.
    for child in ["file", "backing"] {
        let member = |key: &'static str| {
            let keys = node.properties.iter().filter_map(|it| {
                let inside = it.key.strip_prefix(node.prefix.as_str())?;
                inside.strip_prefix(child)?.strip_prefix('.')
            });
            keys.filter(move |it| key.is_empty() || *it == key)
        };
        if member("").next().is_some() && member("driver").next().is_none() {
            let path = format!("{}{child}.driver", node.prefix);
            let message = format!("the node below `{driver}` has no {path}");
            let help = format!("set {path}=file, or the driver of the image");
            line.refuse(report, node.option, node.span(), message, help);
        }
    }
    if ABOVE_A_FILE.contains(&driver) && !has_file {
        let span = node.span();
        let message = format!("the `{driver}` node has no file");
        let help = "set file to the name of a node, or set file.driver=file and file.filename";
        line.refuse(report, node.option, span, message, help);
    }
}

/// Reports an undefined set of descriptors.
/// The members that a node of Ceph needs.
fn check_rbd_node(line: &Line<'_>, report: &mut Report, node: &Node<'_>) {
    if node.driver() != "rbd" {
        return;
    }
    for key in ["pool", "image"] {
        if node.get(key).is_none() {
            let message = format!("the `rbd` node has no {key}");
            let help = format!("set {}{key}", node.prefix);
            line.refuse(report, node.option, node.span(), message, help);
        }
    }
}

/// `rbd:IMAGE`, whose pool QEMU does not guess; a slash behind a colon would count for it.
fn check_rbd_names(line: &Line<'_>, report: &mut Report) {
    for (option, drive) in DRIVES.iter().flat_map(|name| line.index.of_name(name)) {
        let Some(file) = drive.get("file").filter(|file| !file.is_open()) else {
            continue;
        };
        if let Some(image) = file.value.as_str().strip_prefix("rbd:")
            // A program fills `{…}` in.
            && !image.contains(['/', '{'])
        {
            let message = "the RBD image has no pool";
            let help =
                format!("write rbd:POOL/{image}; the pool of the tool `rbd` is `rbd` by default");
            line.refuse(report, option, file.span, message, help);
        }
    }
}

fn check_fd_set(line: &Line<'_>, report: &mut Report, node: &Node<'_>, sets: &HashSet<&str>) {
    let Some(name) = node.get("filename") else {
        return;
    };
    let Some(set) = name.value.as_str().strip_prefix("/dev/fdset/") else {
        return;
    };
    if !sets.contains(set) {
        let message = format!("no -add-fd defines the set {set}");
        let help = format!("add -add-fd fd=N,set={set}, or use the path of the file");
        line.refuse(report, node.option, name.span, message, help);
    }
}

/// Options of a `-drive` that QEMU applies to its image. Without an image it refuses them.
const OF_IMAGE: &[&str] = &[
    "cache",
    "cache.direct",
    "cache.no-flush",
    "discard",
    "format",
    "driver",
    "locking",
    "node-name",
    "auto-read-only",
    "force-share",
    "cache-size",
    "l2-cache-size",
    "refcount-cache-size",
];

/// Reports empty drives of devices without removable media, and options about the image of an empty drive.
fn check_empty_drives(line: &Line<'_>, report: &mut Report) {
    for (option, drive) in line.index.of_name("drive") {
        let is_open = |key: &str| drive.get(key).is_some_and(Property::is_open);
        let has_image = drive.value("file").is_some_and(|file| !file.is_empty())
            || ["file", "driver", "format"].into_iter().any(is_open)
            || drive.has_within("file.")
            || drive.iter().any(|property| property.has_open_key);
        let driver = drive.value("driver").or_else(|| drive.value("format"));
        // A driver such as null-co needs no file.
        if has_image || driver.is_some_and(|driver| !ABOVE_A_FILE.contains(&driver)) {
            continue;
        }
        let of_image = |property: &&Property| OF_IMAGE.contains(&property.key.as_str());
        if let Some(property) = drive.iter().find(of_image) {
            let key = &property.key;
            let message = format!("a drive without an image sets `{key}`");
            let help = format!("set file, or remove {key}: an empty drive starts without it");
            line.refuse(report, option, property.key_span, message, help);
        } else if let Some(user) = fixed_disk_of(line, drive) {
            let message = format!("{user} needs an image, but the drive is empty");
            let help = "set file and format";
            line.refuse(report, option, line.index.span(option), message, help);
        }
    }
}

/// The device without removable media that uses a drive, if there is one.
fn fixed_disk_of(line: &Line<'_>, drive: Members<'_>) -> Option<String> {
    if !has_own_device(line, drive) {
        let id = drive.get("id").filter(|id| !id.is_open())?;
        let mut devices = line.index.devices();
        // usb-storage makes a CD drive of such a drive.
        let may_be_cd = drive
            .get("media")
            .is_some_and(|it| it.value.as_str() != "disk");
        let (_, driver, _) = devices.find(|(_, driver, device)| {
            let is_removable = device
                .get("removable")
                .is_some_and(|it| it.value.as_str() != "off");
            let may_be_empty = is_removable || may_be_cd && base_of(driver) == "usb-storage";
            let uses = device.value("drive") == Some(id.value.as_str());
            uses && needs_image(base_of(driver)) && !may_be_empty
        })?;
        return Some(format!("`{driver}`"));
    }
    let interface = match drive.get("if") {
        Some(interface) => interface.value.as_str(),
        None => line.document.defaults.interface.word(),
    };
    let is_reported = match interface {
        "virtio" => true,
        "ide" | "scsi" => {
            let media = drive.get("media");
            media.is_none_or(|media| !media.is_open() && media.value.as_str() == "disk")
        }
        _ => false,
    };
    is_reported.then(|| format!("a disk of if={interface}"))
}

/// True for disks; only drives with removable media may be empty.
fn needs_image(base: &str) -> bool {
    matches!(
        base,
        "virtio-blk"
            | "scsi-hd"
            | "scsi-block"
            | "scsi-generic"
            | "ide-hd"
            | "usb-storage"
            | "nvme-ns"
    )
}

fn check_drive(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    base: &str,
    device: Members<'_>,
) {
    if needs_image(base) && device.get("drive").is_none() {
        let span = line.index.span(option);
        let message = format!("`{base}` has no drive");
        let help = "set drive to the name of a node";
        line.refuse(report, option, span, message, help);
    }
}
