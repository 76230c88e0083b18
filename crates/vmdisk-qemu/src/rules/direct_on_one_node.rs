//! `direct-on-one-node`

use vmdisk_rule::{Evidence, Group, Severity};

use super::line::line_rule;

line_rule! {
    /// `cache.direct=on` is set on the format node, but not on the node that opens the file.
    ///
    /// ## What it reports
    /// Reports `cache.direct=on` on a QEMU node if its child is a separate named node without it. Only command lines
    /// have such nodes; libvirt sets the option on both.
    ///
    /// ## Why it matters
    /// The node that opens the file decides about `O_DIRECT`, and a separate node does not inherit the option. QEMU
    /// starts without a message, and all I/O of the guest goes through the host's page cache.
    ///
    /// ## Use instead
    /// Set `cache.direct=on` on the child node too. To check a running guest, look for the flag `O_DIRECT` (octal
    /// 040000) in `/proc/PID/fdinfo/FD`.
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
    name: "direct-on-one-node",
    group: Group::Performance,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("the file is open without O_DIRECT", "QEMU 5.2, 7.2, 10.0 and 11.1 on Linux 6.18, started with such a disk"),
    ],
    supersedes: &["cache-implicit"],
    check: Text,
}
