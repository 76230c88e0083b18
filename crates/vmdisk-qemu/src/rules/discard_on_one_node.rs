//! `discard-on-one-node`

use vmdisk_rule::{Evidence, Group, Severity};

use super::line::line_rule;

line_rule! {
    /// `discard=unmap` is set on the format node, but not on the node that opens the file.
    ///
    /// ## What it reports
    /// Reports `discard=unmap` on a QEMU node if its child is a separate named node without it. Only command lines have
    /// such nodes; libvirt sets the option on both.
    ///
    /// ## Why it matters
    /// A child that is written inside its parent inherits the option; a separate node does not. The guest trims without
    /// an error and QEMU's format layer accepts it, but the file keeps its size: a file of 16644 KiB did not shrink.
    /// With the option on both nodes it shrank to 260 KiB.
    ///
    /// ## Use instead
    /// Set `discard=unmap` on the child node too.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,discard=unmap \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    /// ```args,fixed
    /// qemu-system-x86_64 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2,discard=unmap \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,discard=unmap \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// The child is written inside its parent and inherits the option:
    /// ```args,not-reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=qcow2,node-name=q0,discard=unmap,file.driver=file,file.filename=/srv/a.qcow2 \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    name: "discard-on-one-node",
    group: Group::Space,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("16644 KiB stay 16644 KiB after the guest trims them; with discard=unmap on both nodes 260 KiB are left", "QEMU 5.2, 7.2, 10.0 and 11.1 on Linux 6.18: qcow2 over file, du before and after"),
    ],
    supersedes: &["discard-missing-thin"],
    check: Text,
}
