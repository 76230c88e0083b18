//! `discard-on-one-node`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// Discards are passed on by the format node and not by the node that opens the file.
    ///
    /// ## What it does
    /// Reports `discard=unmap` on a QEMU node whose child is a node with a name of its own that does not say
    /// the same. Only command lines have such nodes; libvirt writes both.
    ///
    /// ## Why it matters
    /// QEMU hands options down to a child that is written inside its parent, and to no child that is named.
    /// The guest trims, QEMU's format layer accepts it, and the file keeps every byte, without a word.
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
    /// The child is written inside its parent, which turns discards on for it.
    /// ```args,not-reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=qcow2,node-name=q0,discard=unmap,file.driver=file,file.filename=/srv/a.qcow2 \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    pub(crate) static RULE = {
        name: "discard-on-one-node",
        group: Group::Space,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "16644 KiB stay 16644 KiB after the guest trims them; with discard=unmap on both nodes 260 KiB are left",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1 on Linux 6.18: qcow2 over file, du before and after",
            },
        ],
        supersedes: &["discard-missing-thin"],
        check: Text,
    }
}
