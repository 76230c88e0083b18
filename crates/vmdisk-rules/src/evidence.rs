//! What a rule stands on.

/// One piece of evidence, of a kind that a reader can check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A program refuses the configuration; a test in this repository starts it and is refused.
    Refused {
        /// Program and versions, such as `libvirt 9.0`.
        by: &'static str,
        /// Its text.
        text: &'static str,
        /// Where the text comes from: file and function.
        source: &'static str,
    },
    /// Somebody measured it; the figures and how they were come by.
    Measured {
        /// The figures.
        figures: &'static str,
        /// How: kernel, program, command, or a file in `fixtures/measurements/`.
        how: &'static str,
    },
    /// A document or a commit.
    Source(&'static str),
    /// A vulnerability by its number.
    Cve(&'static str),
    /// A claim about speed that has no measurement in this repository yet, and what it rests on meanwhile.
    NotMeasuredHere(&'static str),
}

impl std::fmt::Display for Evidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Evidence::Refused { by, text, source } => {
                write!(f, "refused by {by}: `{text}` ({source})")
            }
            Evidence::Measured { figures, how } => write!(f, "measured: {figures} ({how})"),
            Evidence::Source(source) => write!(f, "source: {source}"),
            Evidence::Cve(number) => f.write_str(number),
            Evidence::NotMeasuredHere(source) => {
                write!(f, "not measured by this project yet; rests on: {source}")
            }
        }
    }
}
