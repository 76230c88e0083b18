//! Findings that may appear because of a fix.

use vmdisk_rule::Rule;

/// A finding that may be new after a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowUp {
    /// The rule that the fix belongs to.
    pub fixed: &'static str,
    /// The rule that reports the new finding.
    pub appears: &'static str,
    /// The reason why the new finding is acceptable.
    pub why: &'static str,
}

/// All findings that may follow a fix; after any other new finding, `vmdisk::fix` reverts the fix.
///
/// Safe fixes of a single file need no row: a test checks this for each rule, and that each row is necessary.
pub const FOLLOW_UPS: &[FollowUp] = &[
    FollowUp {
        fixed: "discard-missing-thin",
        appears: "migration-discard-granularity-differs",
        why: "compares several hosts; before, the disk gave no space back on any of them",
    },
    FollowUp {
        fixed: "iothread-unsupported-bus",
        appears: "iothread-unused",
        why: "the disk was the only one that named the iothread; the user decides whether another disk should use it",
    },
];

/// True if a finding of the rule `appears` may follow a fix of the rule `fixed`.
///
/// Any fix may make an allowance unnecessary; the next round removes it. A superseded finding was true before.
pub fn may_follow(fixed: &Rule, appears: &str) -> bool {
    appears == "allowance-unused"
        || fixed.supersedes.contains(&appears)
        || FOLLOW_UPS
            .iter()
            .any(|row| row.fixed == fixed.name && row.appears == appears)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> &'static Rule {
        let mut rules = crate::RULES.iter().copied();
        rules.find(|rule| rule.name == name).unwrap()
    }

    #[test]
    fn a_fix_may_bring_its_follow_ups_what_it_superseded_and_an_unused_allowance() {
        assert!(
            FOLLOW_UPS
                .iter()
                .all(|row| may_follow(rule(row.fixed), row.appears))
        );
        let unsafe_cache = rule("cache-unsafe");
        assert!(may_follow(unsafe_cache, "allowance-unused"));
        assert!(!may_follow(unsafe_cache, "cache-writethrough"));
        let unmap = rule("detect-zeroes-unmap-no-discard");
        assert!(may_follow(unmap, "discard-missing-thin"));
    }
}
