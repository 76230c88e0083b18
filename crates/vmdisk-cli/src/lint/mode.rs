//! What to do with each input.

use vmdisk::FixScope;

/// What to do with each input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Say what is wrong.
    Report,
    /// Mend it, and say what is left.
    Fix(FixScope),
    /// Show what mending would change.
    Diff(FixScope),
}
