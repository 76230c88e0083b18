//! The action for each input.

use vmdisk::FixScope;

/// The action for each input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Say what is wrong.
    Report,
    /// Fix it, and report the remaining findings.
    Fix(FixScope),
    /// Show the changes of a fix.
    Diff(FixScope),
}
