//! `node-used-twice`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// Two devices use one node, or a drive that has a device already.
    ///
    /// ## What it does
    /// Reports a second `-device` on a node that the guest writes, unless both say `share-rw=on`; a second
    /// `-device` on a `-drive`; and a `-device` on a `-drive` that makes a device of its own because it lacks
    /// `if=none`.
    ///
    /// ## Why it matters
    /// QEMU does not start. Two disks of one guest on one image would write over each other's data, so it lets that
    /// pass only where both devices say that the guest knows.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda \
    ///   -device virtio-blk-pci,drive=f0,id=vdb
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,share-rw=on \
    ///   -device virtio-blk-pci,drive=f0,id=vdb,share-rw=on
    /// ```
    pub(super) static RULE = {
        name: "node-used-twice",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Permission conflict on node",
                source: "block.c, bdrv_a_allow_b; 5.2 says: Conflicts with use by",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "Did you need 'if=none' in the drive options?",
                source: "hw/core/qdev-properties-system.c, set_drive_helper",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::NodeUsedTwice);
}
