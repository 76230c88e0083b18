//! `node-order`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A node names a child that is only written behind it.
    ///
    /// ## What it does
    /// Reports a `-blockdev` that names a node whose own `-blockdev` stands further back on the command line.
    ///
    /// ## Why it matters
    /// QEMU makes the nodes one after the other, in the order in which they are written, and then everything else.
    /// It does not start, and says that there is no such node.
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
    /// Devices are made after all nodes, wherever they are written:
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -device virtio-blk-pci,drive=f0,id=vda \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img
    /// ```
    pub(super) static RULE = {
        name: "node-order",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Cannot find device='f0' nor node-name='f0'",
                source: "block.c, bdrv_lookup_bs",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::NodeOrder);
}
