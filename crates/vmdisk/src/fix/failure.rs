//! Why a fix was undone.

use crate::rules::Rule;
use vmdisk_model::FieldPath;

/// A fix that was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedFix {
    /// The rule whose fix it is.
    pub rule: &'static Rule,
    /// The field that the finding is about.
    pub at: FieldPath,
    /// Title of the finding.
    pub title: String,
    /// Why.
    pub why: FixFailure,
}

/// Why a fix was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixFailure {
    /// The finding is reported all the same.
    StillReported,
    /// The result cannot be read; the reader's message.
    Unreadable(String),
    /// A finding appears that was not there before.
    NewFinding {
        /// The rule that reports it.
        rule: &'static Rule,
        /// Its title.
        title: String,
    },
}

impl std::fmt::Display for FixFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FixFailure::StillReported => f.write_str("the finding is still reported after the fix"),
            FixFailure::Unreadable(why) => write!(f, "the result cannot be read: {why}"),
            FixFailure::NewFinding { rule, title } => {
                write!(f, "{} would be reported after it: {title}", rule.name)
            }
        }
    }
}

impl std::error::Error for FixFailure {}

impl std::fmt::Display for FailedFix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the fix of {} was undone: {}", self.rule.name, self.why)
    }
}

impl std::error::Error for FailedFix {}
