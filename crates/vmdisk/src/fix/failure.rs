//! Why a fix was undone.

use crate::rules::Rule;
use vmdisk_model::FieldPath;

/// A fix that was undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the fix of {} was undone: {why}", rule.name)]
#[non_exhaustive]
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FixFailure {
    /// The finding is reported all the same.
    #[error("the finding is still reported after the fix")]
    StillReported,
    /// The result cannot be read; the reader's message.
    #[error("the result cannot be read: {0}")]
    Unreadable(String),
    /// A finding appears that was not there before.
    #[error("{} would be reported after it: {title}", rule.name)]
    NewFinding {
        /// The rule that reports it.
        rule: &'static Rule,
        /// Its title.
        title: String,
    },
}
