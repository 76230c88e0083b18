//! `node-unused`

use std::collections::HashSet;
use vmdisk_rule::{Evidence, Group, Report, Severity};
use vmdisk_source::Span;

use crate::interface::DefaultInterface;

use super::line::{Line, is_loose, line_rule, node_names};
use crate::syntax::properties::{Properties, Property};

line_rule! {
    /// A drive or block node is not attached to a device.
    ///
    /// ## What it reports
    /// Reports a `-blockdev` and a `-drive if=none` that nothing on the command line uses. On the machine `microvm`, which
    /// creates no device for a drive without `if=`, it reports `-drive` without `if=`, and `-hda` and similar options.
    /// Command lines with a monitor (`-qmp`, `-mon`, `-monitor`) are not checked, because the disk can be attached
    /// later.
    ///
    /// ## Why it matters
    /// QEMU opens the image without a message, but the guest does not see the disk. Usually the node name is misspelled
    /// or the `-device` is missing.
    ///
    /// ## Use instead
    /// Attach the node: `-device virtio-blk-pci,drive=NODE`, or on `microvm`
    /// `-drive if=none,id=d0,…` with `-device virtio-blk-device,drive=d0`. Otherwise remove it.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/data.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine microvm -hda /srv/a.img
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/data.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda \
    ///   -device virtio-blk-pci,drive=f1,id=vdb
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -qmp unix:/run/web1.qmp,server=on,wait=off \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/data.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    name: "node-unused",
    group: Group::Clarity,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("accepted silently; query-block has no such drive", "QEMU 5.2, 7.2, 10.0 and 11.1"),
    ],
    check: Text(check),
}

/// Options that allow disks to be attached later.
const MONITORS: &[&str] = &["qmp", "qmp-pretty", "mon", "monitor"];

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let is_monitored = line
        .index
        .options()
        .iter()
        .any(|option| MONITORS.contains(&option.name.as_str()));
    // Without a machine, other options may use the disks.
    if is_monitored || line.domain().scope == vmdisk_model::Scope::DisksOnly {
        return;
    }
    let mut used: HashSet<&str> = HashSet::new();
    let mut has_open = !line.document.open_words.is_empty();
    for option in line.index.options() {
        for property in option.properties.iter().flat_map(Properties::iter) {
            let is_own_name = property.key == "id" || property.key.ends_with("node-name");
            if !is_own_name {
                used.insert(property.value.as_str());
                has_open |= property.is_open();
            }
        }
    }
    if has_open {
        return;
    }
    let mut unused: Vec<(usize, String, Span)> = Vec::new();
    for (option, node) in line.index.of_name("blockdev") {
        let names: Vec<&Property> = node_names(node).collect();
        if let Some(own) = node.get("node-name")
            && !names.iter().any(|name| used.contains(name.value.as_str()))
        {
            unused.push((option, own.value.as_str().to_owned(), own.span));
        }
    }
    for (option, drive) in line.index.of_name("drive") {
        if !is_loose(line, drive) {
            continue;
        }
        match drive.get("id") {
            Some(id) if used.contains(id.value.as_str()) => {}
            Some(id) => unused.push((option, id.value.as_str().to_owned(), id.span)),
            // QEMU calls it `none0`, `none1`, …
            None if used.iter().any(|value| is_given_name(value)) => {}
            None => report_unnamed(line, report, option),
        }
    }
    if line.document.defaults.interface == DefaultInterface::None {
        for name in SHORT {
            for (option, _) in line.index.of_name(name) {
                report_unnamed(line, report, option);
            }
        }
    }
    for (option, name, span) in unused {
        let message = format!("no device uses `{name}`, so the guest does not have this disk");
        let help = format!("add a -device with drive={name}, or remove it");
        line.refuse(report, option, span, message, help);
    }
}

/// The options that are a `-drive` for the default interface of the machine.
const SHORT: [&str; 6] = ["", "hda", "hdb", "hdc", "hdd", "cdrom"];

/// True for the names that QEMU gives to drives of `if=none` without an id.
fn is_given_name(value: &str) -> bool {
    let number = value.strip_prefix("none").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// Reports a drive without an id that no device uses.
fn report_unnamed(line: &Line<'_>, report: &mut Report, option: usize) {
    let message = "no device uses this drive, so the guest does not have this disk";
    let help = "use -drive if=none,id=d0 with file and format, and add a -device with drive=d0";
    line.refuse(report, option, line.index.span(option), message, help);
}
