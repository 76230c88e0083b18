//! `cache-contradicted`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A cache mode and a switch of the cache say different things.
    ///
    /// ## What it does
    /// Reports a `-drive` with `cache=` and one of `cache.direct`, `cache.no-flush` and `cache.writeback` that is
    /// not what the mode sets.
    ///
    /// ## Why it matters
    /// QEMU takes both and lets the switch win, without a word: `cache=none,cache.direct=off` goes through the page
    /// cache.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,cache=none,cache.direct=off
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio,cache=none,cache.direct=on
    /// ```
    pub(super) static RULE = {
        name: "cache-contradicted",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "info block says `Cache mode: writeback`, and the file is opened without O_DIRECT",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::CacheContradicted);
}
