//! `memory-size-mismatch`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The memory object has another size than the guest.
    ///
    /// ## What it does
    /// Reports an object that `-machine memory-backend` names and whose size is not that of `-m`, which is 128 MiB
    /// where it is not written.
    ///
    /// ## Why it matters
    /// QEMU does not start. A disk served by another process needs such an object, so a change of the guest's
    /// memory has to be made in two places.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 \
    ///   -m 4G \
    ///   -object memory-backend-memfd,id=mem0,size=2G,share=on
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 \
    ///   -m 4G \
    ///   -object memory-backend-memfd,id=mem0,size=4G,share=on
    /// ```
    pub(super) static RULE = {
        name: "memory-size-mismatch",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Machine memory size does not match the size of the memory backend",
                source: "hw/core/machine.c; 5.2 says: Size specified by -m option must match size of explicitly specified",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::MemorySizeMismatch);
}
