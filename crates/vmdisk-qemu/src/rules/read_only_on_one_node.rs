//! `read-only-on-one-node`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// The format node is read-only and the node below it opens the file for writing.
    ///
    /// ## What it does
    /// Reports `read-only=on` on a QEMU node whose child is a node with a name of its own that says neither
    /// `read-only=on` nor `auto-read-only=on`. Only command lines have such nodes.
    ///
    /// ## Why it matters
    /// The guest cannot write, and the file is open for writing all the same: it must be writable for QEMU, and
    /// a mistake in QEMU or a command over QMP can change what was meant to be safe.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,read-only=on \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2,auto-read-only=on \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,read-only=on \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    pub(crate) static RULE = {
        name: "read-only-on-one-node",
        group: Group::Security,
        severity: Severity::Advice,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "the file is open O_RDWR; with auto-read-only=on below it is open O_RDONLY",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1 on Linux 6.18: a disk started so",
            },
        ],
        supersedes: &[],
        check: Text,
    }
}
