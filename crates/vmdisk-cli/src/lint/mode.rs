//! The action for each input.

use vmdisk::FixScope;

/// The action for each input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Say what is wrong.
    Report,
    /// Fix it, and report the remaining findings.
    Fix(FixScope),
    /// Allow it in the file.
    Allow,
    /// Show the changes of a fix.
    Diff(FixScope),
}

impl Mode {
    /// True if it changes files, and standard output receives the changed standard input.
    pub(crate) const fn changes_text(self) -> bool {
        matches!(self, Mode::Fix(_) | Mode::Allow)
    }
}
