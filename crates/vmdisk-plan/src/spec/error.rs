//! Mistakes in a spec, with their places.

use super::SpecPath;
use crate::errors::ErrorList;

/// A place in the text of a spec; both numbers start at 1, the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecPlace {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl std::fmt::Display for SpecPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// One thing that is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The value concerned; the top if the text could not be parsed at all.
    pub at: SpecPath,
    /// True if the key is wrong, false if its value is.
    pub is_about_key: bool,
    /// Where that is written, if the spec was text.
    pub place: Option<SpecPlace>,
    /// The mistake: lower case, no full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl SpecError {
    /// An error about the value at a path.
    pub fn value(at: SpecPath, message: impl Into<String>) -> Self {
        SpecError {
            at,
            is_about_key: false,
            place: None,
            message: message.into(),
            help: None,
        }
    }

    /// An error about the key at a path.
    pub fn key(at: SpecPath, message: impl Into<String>) -> Self {
        SpecError {
            is_about_key: true,
            ..SpecError::value(at, message)
        }
    }
}

impl std::fmt::Display for SpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        if !self.at.is_top() {
            write!(f, "{}: ", self.at)?;
        }
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecError {}

/// Everything that is wrong with a spec.
pub type SpecErrors = ErrorList<SpecError>;
