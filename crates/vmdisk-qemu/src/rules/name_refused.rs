//! `name-refused`

use std::collections::HashMap;
use vmdisk_rule::{Evidence, Group, Report, Severity};
use vmdisk_source::Span;

use super::line::{Line, line_rule, node_names};
use crate::empty_drives::reserved_names;
use crate::names::is_identifier;
use crate::syntax::properties::Property;

line_rule! {
    /// A node name or device id is not valid in QEMU.
    ///
    /// ## What it reports
    /// Reports node names with more than 31 characters, names and ids that do not begin with a letter or contain other
    /// characters than letters, digits, `-`, `.` and `_`, and names and ids that are used twice. Without `-nodefaults`, QEMU
    /// uses the ids of the empty CD drive and floppy drive of the machine, such as `ide1-cd0` and `floppy0`.
    ///
    /// ## Why it matters
    /// QEMU exits at start with `Node name too long` or `Parameter 'id' expects an identifier`. Names that scripts
    /// derive from a disk's path or a guest's name can exceed 31 characters on some hosts only. libvirt generates its
    /// own names, so only command lines are affected.
    ///
    /// ## Use instead
    /// Use short names with a number, such as `disk0-file` and `disk0-fmt`, and do not derive them from paths.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=customer-database-primary-volume,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=customer-database-primary-volume,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=customer-database-primary-disk1,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=customer-database-primary-disk1,id=vda
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -machine pc -drive file=/srv/a.img,format=raw,if=none,id=ide1-cd0 \
    ///   -device virtio-blk-pci,drive=ide1-cd0
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -machine pc -drive file=/srv/a.img,format=raw,if=none,id=ide1-cd0 \
    ///   -device ide-cd,drive=ide1-cd0
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -machine pc -drive file=/srv/a.img,format=raw,if=none,id=floppy0 \
    ///   -device floppy,drive=floppy0
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -machine pc -drive file=/srv/a.img,format=raw,index=2,id=ide1-cd0
    /// ```
    name: "name-refused",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Node name too long", "block.c, bdrv_assign_node_name"),
        Evidence::refused_by_qemu("Device with id 'ide1-cd0' already exists", "block/block-backend.c, monitor_add_blk"),
        Evidence::refused_by_qemu("Parameter 'id' expects an identifier", "util/qemu-option.c, qemu_opts_create"),
    ],
    check: Text(check),
}

/// The maximum length of a node's name (`BDS_NODE_NAME_SIZE` without the terminating zero).
const NODE_NAME: usize = 31;

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let mut nodes: HashMap<&str, Span> = HashMap::new();
    for name in ["blockdev", "drive"] {
        for (option, properties) in line.index.of_name(name) {
            // Of a key that is set twice in one option, the last value counts.
            let is_last = |name: &&Property| {
                let last = properties.get(&name.key);
                last.is_some_and(|last| last.key_span == name.key_span)
            };
            for name in node_names(properties).filter(is_last) {
                check_node_name(line, report, option, name, &mut nodes);
            }
        }
    }
    let own = reserved_names(line.document, &line.index);
    for name in ["device", "object", "chardev", "drive"] {
        let mut ids: HashMap<&str, Span> = HashMap::new();
        for (option, properties) in line.index.of_name(name) {
            let Some(id) = properties.get("id") else {
                continue;
            };
            let text = id.value.as_str();
            if id.is_open() {
                continue;
            }
            if !is_identifier(text) {
                let message = format!("`{text}` is not a valid id");
                let help =
                    "start the id with a letter, and use only letters, digits, `-`, `.` and `_`";
                line.refuse(report, option, id.span, message, help);
            } else if ids.insert(text, id.span).is_some() {
                let message = format!("two -{name} have the id `{text}`");
                let help = "use a different id for each";
                line.refuse(report, option, id.span, message, help);
            } else if name == "drive" && own.contains(&text) {
                let message =
                    format!("QEMU adds an empty drive with the id `{text}` to the machine");
                let help = "use a different id, or add -nodefaults";
                line.refuse(report, option, id.span, message, help);
            } else if name == "drive" && nodes.contains_key(text) {
                let message = format!("a -drive and a node have the same name `{text}`");
                let help = "use a different name for each";
                line.refuse(report, option, id.span, message, help);
            }
        }
    }
}

fn check_node_name<'a>(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    written: &'a Property,
    nodes: &mut HashMap<&'a str, Span>,
) {
    if written.is_open() {
        return;
    }
    let (name, span) = (written.value.as_str(), written.span);
    let (message, help) = if name.len() > NODE_NAME {
        (
            format!(
                "the node name has {} characters; at most {NODE_NAME} are allowed",
                name.len()
            ),
            "shorten it",
        )
    } else if !is_identifier(name) {
        (
            format!("`{name}` is not a valid node name"),
            "start the name with a letter, and use only letters, digits, `-`, `.` and `_`",
        )
    } else if nodes.insert(name, span).is_some() {
        (
            format!("two nodes have the name `{name}`"),
            "use a different name for each",
        )
    } else {
        return;
    };
    line.refuse(report, option, span, message, help);
}
