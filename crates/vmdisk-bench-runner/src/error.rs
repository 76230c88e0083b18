//! What can go wrong, in words for people.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why something was not measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Somebody asked to stop.
    #[error("stopped on request")]
    Cancelled,
    /// A program or a file that a cell needs is not there.
    #[error("{what} is missing, which {needed_for} needs; {help}")]
    Missing {
        /// Program or file.
        what: String,
        /// What needs it.
        needed_for: String,
        /// How to provide it.
        help: String,
    },
    /// The machine does something else that would be measured too.
    #[error("this machine is not quiet: {}", disturbances.join("; "))]
    NotQuiet {
        /// What disturbs.
        disturbances: Vec<String>,
    },
    /// Continuing could harm data, or would measure something else than requested.
    #[error("refused {what}: {why}")]
    Refused {
        /// The operation.
        what: String,
        /// The check that refused, and what it saw.
        why: String,
    },
    /// Storage that a run was to use cannot be used.
    #[error("{}", refusals.join("; "))]
    Unusable {
        /// Each refusal once.
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
    #[error("not what was to be measured: {0}")]
    Semantics(String),
    /// Two runs differ in more than one thing, so that nobody can say what made the difference.
    #[error("not comparable: {}", differences.join("; "))]
    Incomparable {
        /// Everything in which they differ.
        differences: Vec<String>,
    },
    /// A limit of time or space was reached.
    #[error("{0}")]
    Budget(String),
    /// A text that does not mean what it should: a plan, a journal, a result.
    #[error("{place}: {message}")]
    Malformed {
        /// Where.
        place: Place,
        /// The mistake.
        message: String,
    },
    /// The operating system refused something.
    #[error("could not {doing} {}: {}", path.display(), plain(source))]
    Io {
        /// The operation, such as `create`.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// The operating system's message, without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

impl Error {
    /// The operating system refused something.
    pub fn io(doing: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io {
            doing,
            path: path.as_ref().to_owned(),
            source,
        }
    }

    /// The directory for the results of a run exists already.
    pub fn output_exists(directory: &Path) -> Self {
        Error::Refused {
            what: format!("to measure into {}", directory.display()),
            why: "it exists already".to_owned(),
        }
    }

    /// A program failed.
    pub fn program(program: impl Into<String>, detail: impl fmt::Display) -> Self {
        Error::Program {
            program: program.into(),
            detail: detail.to_string(),
        }
    }
}

/// Where in a text something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File, or what the text is.
    pub text: String,
    /// Line from 1, where known.
    pub line: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.text),
            None => f.write_str(&self.text),
        }
    }
}
