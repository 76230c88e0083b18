//! From what was found to text: for people, for programs, for code scanning.

pub(crate) mod block;
pub(crate) mod concise;
pub(crate) mod github;
pub(crate) mod human;
pub(crate) mod json;
pub(crate) mod message;
pub(crate) mod sarif;
pub(crate) mod summary;
#[cfg(test)]
mod tests;
pub(crate) mod uri;
pub(crate) mod window;

use vmdisk::Severity;

/// What of a report is shown, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// The least severity that is shown.
    pub(crate) least_shown: Severity,
    /// Also what is allowed.
    pub(crate) show_allowed: bool,
    /// Also advice in full.
    pub(crate) verbose: bool,
    /// With colour.
    pub(crate) colored: bool,
}

impl View {
    /// Everything that counts, without colour.
    pub(crate) const fn plain() -> Self {
        View {
            least_shown: Severity::Advice,
            show_allowed: false,
            verbose: false,
            colored: false,
        }
    }
}
