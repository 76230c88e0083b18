//! `cache-contradicted`

use vmdisk_model::CacheMode;
use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use crate::members::Members;
use crate::syntax::value::switch_of;

line_rule! {
    /// A cache mode is contradicted by a `cache.*` option.
    ///
    /// ## What it reports
    /// Reports a `-drive` with `cache=` and one of `cache.direct`, `cache.no-flush` and `cache.writeback` that differs
    /// from what the mode sets.
    ///
    /// ## Why it matters
    /// QEMU accepts both without a message, and the single option wins. `cache=none,cache.direct=off` goes through the
    /// host's page cache: `info block` shows `Cache mode: writeback`, and the file is opened without `O_DIRECT`.
    ///
    /// ## Use instead
    /// Remove the single option, or use the mode that sets it. `none` sets `cache.direct=on`, `writeback` sets
    /// `cache.direct=off`, and only `unsafe` sets `cache.no-flush=on`.
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
    name: "cache-contradicted",
    group: Group::Clarity,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("info block says `Cache mode: writeback`, and the file is opened without O_DIRECT", "QEMU 5.2, 7.2, 10.0 and 11.1"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for (option, drive) in line.index.of_name("drive") {
        check_cache(line, report, option, drive);
    }
}

fn check_cache(line: &Line<'_>, report: &mut Report, option: usize, drive: Members<'_>) {
    let Some(mode) = drive
        .get("cache")
        .and_then(|it| CacheMode::from_word(it.value.as_str()))
    else {
        return;
    };
    let switches = mode.switches();
    for (key, is_set) in [
        ("cache.direct", switches.direct),
        ("cache.no-flush", switches.no_flush),
        ("cache.writeback", switches.write_cache),
    ] {
        let Some(property) = drive.get(key) else {
            continue;
        };
        let Some(switch) = switch_of(property.value.as_str()) else {
            continue;
        };
        if (switch == vmdisk_model::Switch::On) != is_set {
            let word = property.value.as_str();
            let message = format!("cache={mode} and {key}={word}: the switch overrides the mode");
            let help = format!("remove {key}, or use the mode that sets it");
            line.refuse(report, option, property.span, message, help);
        }
    }
}
