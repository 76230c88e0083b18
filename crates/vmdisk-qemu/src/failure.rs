//! The reason why a text cannot be read as a command line.

use vmdisk_source::Span;

/// The reason why a text cannot be read as a command line, with its span.
///
/// Mistakes in the values of a command line are not failures but
/// [`problems`](crate::Document::problems).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReadFailure {
    /// The span.
    pub span: Span,
    /// The mistake: lower case, no full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl ReadFailure {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        ReadFailure {
            span,
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
