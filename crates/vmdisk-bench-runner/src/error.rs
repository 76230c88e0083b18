//! Errors of a run.

use std::fmt;
use std::path::{Path, PathBuf};

use vmdisk_collect::Refused;

/// Why something was not measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A program or file that a cell needs is missing.
    #[error("{what} is missing, but {needed_for} needs it; {help}")]
    Missing {
        /// Program or file.
        what: String,
        /// What needs it.
        needed_for: String,
        /// How to provide it.
        help: String,
    },
    /// Other activity on the machine would disturb the measurement.
    #[error("this machine is not quiet: {}", disturbances.join("; "))]
    NotQuiet {
        /// The disturbances.
        disturbances: Vec<String>,
    },
    /// Continuing could harm data, or would not measure what was requested.
    #[error("refused {what}: {why}")]
    Refused {
        /// The operation.
        what: String,
        /// The check that refused, and its finding.
        why: String,
    },
    /// The device of a run must not be written any more; the run ends.
    #[error("{0}")]
    Endangered(Refused),
    /// The storage of a run cannot be used.
    #[error("{}", refusals.join("; "))]
    Unusable {
        /// The refusals, without duplicates.
        refusals: Vec<String>,
    },
    /// A program failed.
    #[error("{program} failed: {detail}")]
    Program {
        /// Its name.
        program: String,
        /// Its message, or its exit status.
        detail: String,
    },
    /// The measurement is not what the cell means, such as flushes that never arrived.
    #[error("the measurement is invalid: {0}")]
    Semantics(String),
    /// Two runs differ in more than one thing, so the cause of a change is unknown.
    #[error("not comparable: {}", differences.join("; "))]
    Incomparable {
        /// Everything in which they differ.
        differences: Vec<String>,
    },
    /// A limit of time or space was reached.
    #[error("{0}")]
    Budget(String),
    /// A plan, journal or result is malformed.
    #[error("{place}: {message}")]
    Malformed {
        /// The location.
        place: TextLocation,
        /// The mistake.
        message: String,
    },
    /// The operating system refused something.
    #[error("could not {doing} {}: {}", path.display(), plain(source))]
    Io {
        /// The operation, such as `create`.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// Returns the operating system's message without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

impl Error {
    /// Returns true if no other cell of the run may be measured.
    pub(crate) fn ends_run(&self) -> bool {
        matches!(self, Error::Cancelled | Error::Endangered(_))
    }

    /// Creates an error of the operating system.
    pub fn io(doing: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io {
            doing,
            path: path.as_ref().to_owned(),
            source,
        }
    }

    /// Creates an error for an existing results directory.
    pub fn output_exists(directory: &Path) -> Self {
        Error::refused(
            format!("to measure into {}", directory.display()),
            "it already exists",
        )
    }

    /// Creates an error for an operation that could harm data, or would not measure what was requested.
    pub(crate) fn refused(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Error::Refused {
            what: what.into(),
            why: why.to_string(),
        }
    }

    /// Creates an error for a missing program or file.
    pub(crate) fn missing(
        what: impl Into<String>,
        needed_for: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Error::Missing {
            what: what.into(),
            needed_for: needed_for.into(),
            help: help.into(),
        }
    }

    /// Creates an error for a text that is malformed, with the line where it is known.
    pub(crate) fn malformed(
        text: impl Into<String>,
        line: Option<usize>,
        message: impl fmt::Display,
    ) -> Self {
        Error::Malformed {
            place: TextLocation {
                text: text.into(),
                line,
            },
            message: message.to_string(),
        }
    }

    /// Creates an error of a program.
    pub fn program(program: impl Into<String>, detail: impl fmt::Display) -> Self {
        Error::Program {
            program: program.into(),
            detail: detail.to_string(),
        }
    }
}

/// A location in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLocation {
    /// The file, or a name for the text.
    pub text: String,
    /// Line from 1, where known.
    pub line: Option<usize>,
}

impl fmt::Display for TextLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.text),
            None => f.write_str(&self.text),
        }
    }
}
