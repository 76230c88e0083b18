//! `force-share-writable`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use super::nodes::{Node, drives, is_read_only, nodes};
use crate::syntax::value::is_on;

line_rule! {
    /// `force-share=on` is set on a node that can be written.
    ///
    /// ## What it reports
    /// Reports `force-share=on` on a node that is not read-only.
    ///
    /// ## Why it matters
    /// `force-share` opens an image although another process writes to it, so the data read can be inconsistent. QEMU
    /// allows it only for reading, and exits at start with `force-share=on can only be used with read-only images`.
    ///
    /// ## Use instead
    /// Add `read-only=on`, or remove `force-share`. If several guests write to the image knowingly, such as a cluster,
    /// use `share-rw=on` on the devices.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,force-share=on \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,force-share=on,read-only=on \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    name: "force-share-writable",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("force-share=on can only be used with read-only images", "block.c, bdrv_open_common"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    // The words of a `-drive` that make it read-only, or leave its image so.
    let is_other = |node: &Node<'_>| {
        let is_cdrom = node
            .get("media")
            .is_some_and(|it| it.value.as_str() == "cdrom");
        is_cdrom || is_on(node.get("readonly")) || is_on(node.get("snapshot"))
    };
    let drives = drives(line).filter(|drive| !is_other(drive));
    for node in nodes(line).chain(drives).filter(|node| !is_read_only(node)) {
        if let Some(share) = node.get("force-share").filter(|it| is_on(Some(it))) {
            let message = "force-share=on lets other processes write, and QEMU accepts it only on read-only nodes";
            let help = "add read-only=on, or remove force-share";
            line.refuse(report, node.option, share.span, message, help);
        }
    }
}
