//! The reason why a text cannot be read.

use vmdisk_source::Span;

use crate::RootKind;

/// The reason why a text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFailureKind {
    /// The bytes are not text in a supported encoding.
    Encoding,
    /// Not well-formed XML.
    Malformed,
    /// Well-formed, but beyond a limit (size, depth).
    TooLarge,
    /// It has a document type declaration, which is refused for the entities it may define.
    DocumentType,
    /// Well-formed XML that is neither a domain nor disks; a walk over a directory skips these.
    NotADomainOrDisk(RootKind),
}

/// The reason why a text cannot be read, with its span.
///
/// Mistakes in the values of a readable document are not failures but
/// [`problems`](crate::Document::problems).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReadFailure {
    /// The kind of failure.
    pub kind: ReadFailureKind,
    /// The span; empty and at the start if the bytes could not be decoded.
    pub span: Span,
    /// The mistake: lower case, no full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// Related spans, each with an explanation.
    pub related: Vec<(Span, String)>,
}

impl ReadFailure {
    pub(crate) fn new(kind: ReadFailureKind, span: Span, message: impl Into<String>) -> Self {
        ReadFailure {
            kind,
            span,
            message: message.into(),
            help: None,
            related: Vec::new(),
        }
    }

    pub(crate) fn malformed(span: Span, message: impl Into<String>) -> Self {
        ReadFailure::new(ReadFailureKind::Malformed, span, message)
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }
}
