//! The use of baselines in a run.

/// The use of baselines in a run of the linter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BaselineTask {
    /// Uses them.
    #[default]
    Use,
    /// Writes a new one.
    Create,
    /// Removes stale entries.
    Prune,
}
