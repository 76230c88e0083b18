//! `read-only-on-one-node`

use vmdisk_rule::{Evidence, Group, Severity};

use super::line::line_rule;

line_rule! {
    /// `read-only=on` is set on only one of the two nodes of an image.
    ///
    /// ## What it reports
    /// Reports `read-only=on` on a QEMU node if its child is a separate named node with neither `read-only=on` nor
    /// `auto-read-only=on`. The opposite is an error: `read-only=on` on the node of the file below a writable format
    /// node, of a disk that is not a CD drive. Only command lines have such nodes.
    ///
    /// ## Why it matters
    /// The guest cannot write, but QEMU has the file open for writing (`O_RDWR`). The file must then be writable for
    /// QEMU, and a bug in QEMU or a QMP command can still change it. With `read-only=on` only below, QEMU does not start.
    ///
    /// ## Use instead
    /// Set `read-only=on` on the child node too, or `auto-read-only=on` as libvirt does.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,read-only=on \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    ///
    /// ```args,reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,read-only=on \
    ///   -blockdev driver=raw,node-name=r0,file=f0 \
    ///   -device virtio-blk-pci,drive=r0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2,auto-read-only=on \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,read-only=on \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    name: "read-only-on-one-node",
    group: Group::Security,
    severity: Severity::Advice,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by("QEMU 7.2", "Block node is read-only", "read-only=on only on the node of the file, raw and qcow2, -blockdev and -drive"),
        Evidence::measured("the file is open O_RDWR; with auto-read-only=on below it is open O_RDONLY", "QEMU 5.2, 7.2, 10.0 and 11.1 on Linux 6.18, started with such a disk"),
    ],
    check: Text,
}
