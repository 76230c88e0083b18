//! `drive-protocol-unknown`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A file name with a colon is taken for a protocol that does not exist.
    ///
    /// ## What it does
    /// Reports a `-drive` whose `file` has a colon in front of its first slash and no protocol of QEMU before it.
    ///
    /// ## Why it matters
    /// `-drive` reads what stands before the colon as the name of a protocol, and does not start with one it does
    /// not know. `-blockdev` takes a file name as it is.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=backup:2026.img,format=raw,if=virtio
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=./backup:2026.img,format=raw,if=virtio
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=backup:2026.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    pub(super) static RULE = {
        name: "drive-protocol-unknown",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Unknown protocol 'backup'",
                source: "block.c, bdrv_find_protocol",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::ProtocolUnknown);
}
