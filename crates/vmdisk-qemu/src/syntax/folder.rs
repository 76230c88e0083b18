//! Where a command runs.

/// The folder in which a script runs a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Folder {
    /// The one in which the script was started.
    #[default]
    Unchanged,
    /// The one to which the script changed; a relative path begins where the script was started.
    Known(String),
    /// The script changed to one that its text does not tell.
    Unknown,
}
