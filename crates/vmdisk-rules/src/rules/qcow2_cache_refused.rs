//! `qcow2-cache-refused`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The sizes of qcow2's caches exclude each other.
    ///
    /// ## What it does
    /// Reports `l2-cache-size` or `refcount-cache-size` above `cache-size`, all three of them together, and an
    /// `l2-cache-entry-size` that is no power of two from 512.
    ///
    /// ## Why it matters
    /// QEMU does not start. `cache-size` is the sum of the other two, so at most two of the three can be said.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,cache-size=1048576,l2-cache-size=33554432 \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.qcow2 \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,cache-size=34603008,l2-cache-size=33554432 \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    pub(super) static RULE = {
        name: "qcow2-cache-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "l2-cache-size may not exceed cache-size",
                source: "block/qcow2.c, read_cache_sizes",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::Qcow2CacheRefused);
}
