//! Parts of a facts file that were skipped.

/// A part of a facts file that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// Where in the file (`files[2].sise`).
    pub path: String,
    /// The problem.
    pub message: String,
}

impl Warning {
    /// The message of a key that nothing is similar to.
    pub const UNKNOWN_KEY: &str = "this key is not known and was not read";

    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Warning {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
