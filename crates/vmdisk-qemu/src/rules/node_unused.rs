//! `node-unused`

use std::collections::HashSet;
use vmdisk_rule::{Evidence, Group, Report, Severity, declare_rule};
use vmdisk_source::Span;

use super::line::{Line, node_names};
use crate::syntax::properties::{Properties, Property};
use crate::syntax::value::is_open;

declare_rule! {
    /// A drive or block node is not attached to a device.
    ///
    /// ## What it reports
    /// Reports a `-blockdev` and a `-drive if=none` that nothing on the command line uses. Command lines with a monitor
    /// (`-qmp`, `-mon`, `-monitor`) are not checked, because the disk can be attached later.
    ///
    /// ## Why it matters
    /// QEMU opens the image without a message, but the guest does not see the disk. Usually the node name is misspelled
    /// or the `-device` is missing.
    ///
    /// ## Use instead
    /// Attach the node: `-device virtio-blk-pci,drive=NODE`. Otherwise remove it.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/data.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
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
    pub(crate) static RULE = {
        name: "node-unused",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        applies_to_foreign_guests: true,
        evidence: &[
            Evidence::Measured {
                figures: "accepted silently; query-block has no such drive",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: Text,
    }
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
    for option in line.index.options() {
        for property in option.properties.iter().flat_map(Properties::iter) {
            let is_own_name = property.key == "id" || property.key.ends_with("node-name");
            if !is_own_name {
                used.insert(property.value.as_str());
            }
        }
    }
    if used.iter().any(|value| is_open(value)) {
        return;
    }
    let mut unused: Vec<(usize, String, Span)> = Vec::new();
    for (option, node) in line.index.of_name("blockdev") {
        let names: Vec<&Property> = node_names(node).collect();
        if let Some(own) = node.peek("node-name")
            && !names.iter().any(|name| used.contains(name.value.as_str()))
        {
            unused.push((option, own.value.as_str().to_owned(), own.span));
        }
    }
    for (option, drive) in line.index.of_name("drive") {
        let is_loose = drive
            .peek("if")
            .is_some_and(|it| it.value.as_str() == "none");
        if let Some(id) = drive.peek("id").filter(|_| is_loose)
            && !used.contains(id.value.as_str())
        {
            unused.push((option, id.value.as_str().to_owned(), id.span));
        }
    }
    for (option, name, span) in unused {
        let message = format!("no device uses `{name}`, so the guest does not have this disk");
        let help = format!("add a -device with drive={name}, or remove it");
        line.refuse(report, option, span, message, help);
    }
}
