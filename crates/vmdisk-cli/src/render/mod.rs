//! From what was found to text: for people, for programs, for code scanning.

pub(crate) mod block;
pub(crate) mod concise;
pub(crate) mod github;
pub(crate) mod human;
pub(crate) mod json;
pub(crate) mod message;
pub(crate) mod sarif;
mod secrets;
pub(crate) mod statistics;
pub(crate) mod summary;
#[cfg(test)]
mod tests;
pub(crate) mod uri;
pub(crate) mod window;

use vmdisk::{Diagnostic, Severity};

use crate::lint::classes::Classes;

/// What of a report is shown, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The least severity that is shown.
    pub(crate) least_shown: Severity,
    /// Also what is allowed.
    pub(crate) show_allowed: bool,
    /// Also advice in full.
    pub(crate) verbose: bool,
    /// With colour.
    pub(crate) colored: bool,
    /// The hosts, where there are several.
    pub(crate) classes: Option<&'a Classes<'a>>,
}

impl View<'_> {
    /// Everything that counts, without colour.
    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        View {
            least_shown: Severity::Advice,
            show_allowed: false,
            verbose: false,
            colored: false,
            classes: None,
        }
    }

    /// On which of several hosts something was found, in words.
    pub(crate) fn hosts_note(&self, finding: &Diagnostic) -> Option<String> {
        self.classes?.note(finding.hosts.as_ref()?)
    }
}
