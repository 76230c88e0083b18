//! `slice-unaligned`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The part of a file that is the disk begins or ends inside a sector.
    ///
    /// ## What it does
    /// Reports `offset` and `size` of a raw node that are no multiples of 512 bytes.
    ///
    /// ## Why it matters
    /// A `size` inside a sector is refused. An `offset` inside a sector is taken: every request of the guest then
    /// lies across two sectors of the host, and with direct I/O none of them is aligned.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/all.img \
    ///   -blockdev driver=raw,node-name=r0,file=f0,offset=1048576,size=1000000 \
    ///   -device virtio-blk-pci,drive=r0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/all.img \
    ///   -blockdev driver=raw,node-name=r0,file=f0,offset=1048576,size=1048576 \
    ///   -device virtio-blk-pci,drive=r0,id=vda
    /// ```
    pub(super) static RULE = {
        name: "slice-unaligned",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Specified size is not multiple of 512",
                source: "block/raw-format.c, raw_apply_options",
            },
            Evidence::Measured {
                figures: "offset=100 is accepted without a word",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::WindowUnaligned);
}
