//! What a reader has to say about a text it could not take as it stands.

use crate::{Edit, Span};

/// What kind of thing a reader stumbled over.
///
/// Each kind is shown to people under the name of a rule, so that it can be explained and allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// A value that is none of the known words, not a number, or out of range.
    InvalidValue,
    /// An attribute or option that is not known here; it is kept, and not checked.
    UnknownAttribute,
    /// An element that is not known here; it is kept, and not checked.
    UnknownElement,
    /// Something without which the rest means nothing, such as a missing `<source file=…>`.
    MissingValue,
    /// The same thing written twice; the first counts.
    Duplicate,
    /// A name space prefix that nobody declared: libvirt drops such elements without a word.
    UndeclaredPrefix,
    /// Discards are passed on by one node of an image and not by the next.
    DiscardOnOneNode,
    /// `cache.direct` stands on the format node and not on the one that opens the file.
    DirectOnOneNode,
    /// `read-only` stands on the format node and not on the one that opens the file.
    ReadOnlyOnOneNode,
}

/// One thing a reader stumbled over; reading went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem<P> {
    /// Kind.
    pub kind: ProblemKind,
    /// The field it belongs to, or the nearest one that encloses it.
    pub at: P,
    /// Exactly where.
    pub span: Span,
    /// What is wrong: lower case, no full stop, with the value and what was expected.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Edits that mend it, where only one thing can have been meant.
    pub fix: Vec<Edit>,
}

/// A place where the author of a file allows findings of some rules, for a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Names of the rules, each with its place.
    pub rules: Vec<(String, Span)>,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// Where the allowance itself is written.
    pub span: Span,
    /// The text it covers: a finding whose place lies within is allowed.
    pub covers: Span,
}

impl Allowance {
    /// True if it covers a place.
    pub const fn covers(&self, span: Span) -> bool {
        self.covers.start <= span.start && span.end <= self.covers.end
    }
}
