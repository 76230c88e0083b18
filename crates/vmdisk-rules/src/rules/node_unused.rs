//! `node-unused`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A node or drive is opened, and no device shows it to the guest.
    ///
    /// ## What it does
    /// Reports a `-blockdev` and a `-drive if=none` that nothing on the command line names. Command lines with a
    /// monitor (`-qmp`, `-mon`, `-monitor`) are left alone: somebody may plug the disk in later.
    ///
    /// ## Why it matters
    /// QEMU opens the image, says nothing, and the guest has one disk less than its author thinks. Mostly it is a
    /// misspelt name or a forgotten `-device`.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/data.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/data.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda \
    ///   -device virtio-blk-pci,drive=f1,id=vdb
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -qmp unix:/run/web1.qmp,server=on,wait=off \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/data.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    pub(super) static RULE = {
        name: "node-unused",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "accepted without a word; query-block has no such drive",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::NodeUnused);
}
