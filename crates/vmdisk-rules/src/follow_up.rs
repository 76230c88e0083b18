//! Findings that a fix may bring with it.

/// A finding that may appear after a fix, although it was not there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowUp {
    /// The rule whose fix it is.
    pub fixed: &'static str,
    /// The rule that reports something after it.
    pub appears: &'static str,
    /// Why this is no harm.
    pub why: &'static str,
}

/// All that may follow a fix; whatever else appears makes `vmdisk::fix` undo it.
///
/// A safe fix of one file has no row here: a test holds every rule to that, and each row to its need.
pub const FOLLOW_UPS: &[FollowUp] = &[
    FollowUp {
        fixed: "discard-missing-thin",
        appears: "migration-discard-granularity-differs",
        why: "compares several hosts; before, the disk gave no space back on any of them",
    },
    FollowUp {
        fixed: "iothread-unsupported-bus",
        appears: "iothread-unused",
        why: "the disk was the only one that named the iothread; whether another disk is to use it is for a person to say",
    },
];

/// True if a finding of the rule `appears` may follow a fix of the rule `fixed`.
///
/// An allowance that a fix makes needless may follow any: the next round removes it.
pub fn may_follow(fixed: &str, appears: &str) -> bool {
    appears == "allowance-unused"
        || FOLLOW_UPS
            .iter()
            .any(|row| row.fixed == fixed && row.appears == appears)
}
