//! `direct-on-one-node`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// O_DIRECT is asked for on the format node and not on the node that opens the file.
    ///
    /// ## What it does
    /// Reports `cache.direct=on` on a QEMU node whose child is a node with a name of its own that does not say
    /// the same. Only command lines have such nodes; libvirt writes both.
    ///
    /// ## Why it matters
    /// The node that opens the file decides how it is opened. Without the switch there, all of the guest's I/O
    /// goes through the host's page cache, which is what somebody wanted to avoid.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,cache.direct=on \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2,cache.direct=on \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,cache.direct=on \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    pub(crate) static RULE = {
        name: "direct-on-one-node",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "the file is open without O_DIRECT",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1 on Linux 6.18: a disk started so",
            },
        ],
        supersedes: &["cache-implicit"],
        check: Text,
    }
}
