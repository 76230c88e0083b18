//! A file that was not replaced.

use std::io;

/// The reason why a file was not replaced; its contents are unchanged.
#[derive(Debug)]
pub(crate) enum ReplaceError {
    /// Somebody else wrote it since it was read.
    Changed,
    /// It has other names, which would keep the old text.
    Linked(u64),
    /// Its owner, mode or extended attributes could not be kept.
    Attributes(io::Error),
    /// The output would destroy what is there.
    Refused(String),
    /// Something else.
    Io(io::Error),
}

impl From<io::Error> for ReplaceError {
    fn from(error: io::Error) -> Self {
        ReplaceError::Io(error)
    }
}

impl std::fmt::Display for ReplaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplaceError::Changed => f.write_str("it was changed by another process meanwhile"),
            ReplaceError::Linked(names) => {
                write!(
                    f,
                    "it has {names} hard links, and the others would keep the old text"
                )
            }
            ReplaceError::Attributes(error) => {
                write!(
                    f,
                    "its owner, mode and extended attributes could not be kept: {}",
                    crate::stop::plain(error)
                )
            }
            ReplaceError::Refused(why) => f.write_str(why),
            ReplaceError::Io(error) => f.write_str(&crate::stop::plain(error)),
        }
    }
}
