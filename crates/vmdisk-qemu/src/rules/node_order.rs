//! `node-order`

use std::collections::HashSet;
use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule, node_names};
use crate::syntax::properties::Kind;

line_rule! {
    /// A `-blockdev` refers to a node that is defined later.
    ///
    /// ## What it reports
    /// Reports a `-blockdev` that names a node whose own `-blockdev` follows later on the command line.
    ///
    /// ## Why it matters
    /// QEMU creates the nodes in the order of the command line, and the devices after all nodes. It exits at start with
    /// `Cannot find device='f0' nor node-name='f0'`, although the node is on the command line.
    ///
    /// ## Use instead
    /// Move the `-blockdev` of the child before its parent: the file node first, then the format node.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0 \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    /// Devices are created after all nodes, in any order on the command line:
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -device virtio-blk-pci,drive=f0,id=vda \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img
    /// ```
    name: "node-order",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Cannot find device='f0' nor node-name='f0'", "block.c, bdrv_lookup_bs"),
    ],
    check: Text(check),
}

/// Keys with which a node refers to another.
const CHILDREN: &[&str] = &[
    "file",
    "backing",
    "data-file",
    "header",
    "raw",
    "test",
    "image",
    "target",
    "bottom",
];

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    // QEMU creates all nodes in order, and everything else after them.
    let mut seen: HashSet<&str> = HashSet::new();
    for (option, node) in line.index.of_name("blockdev") {
        for property in node.iter() {
            let last = property.key.rsplit('.').next().unwrap_or(&property.key);
            let name = property.value.as_str();
            let is_child = CHILDREN.contains(&last) && property.kind != Kind::Null;
            if is_child && !seen.contains(name) && line.index.node(name).is_some() {
                let message = format!("the node `{name}` is defined after this one");
                let help = format!("move the -blockdev of `{name}` before this one");
                line.refuse(report, option, property.span, message, help);
            }
        }
        for name in node_names(node) {
            seen.insert(name.value.as_str());
        }
    }
}
