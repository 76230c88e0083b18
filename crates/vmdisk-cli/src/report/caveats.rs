//! Limits of a run: unchecked rules and old facts.

use crate::age::OldFacts;

/// Limits of a run that a report states beside its findings.
#[derive(Clone, Debug)]
pub(crate) struct Caveats<'a> {
    /// The number of rules that could not be checked, with the reason.
    pub(crate) not_checked: Option<String>,
    /// True if that fails the run.
    pub(crate) unchecked_fails: bool,
    pub(crate) old_facts: &'a [OldFacts],
    /// True if facts that are older than was allowed fail the run.
    pub(crate) old_facts_fail: bool,
}
