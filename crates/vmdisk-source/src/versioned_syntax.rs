//! Syntax that a program knows only since a later version.

use crate::Span;

/// The kind of a word. It decides the behaviour of a program that does not know the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WordKind {
    /// An element.
    Element,
    /// An attribute.
    Attribute,
    /// The value of an attribute.
    Value,
}

/// An element, attribute or value with the first version that supports it.
///
/// Readers record it if the text may be for an older program. The target decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedSyntax<P> {
    /// The field it belongs to, or the nearest one that encloses it.
    pub at: P,
    /// The exact place.
    pub span: Span,
    /// The kind of the word.
    pub kind: WordKind,
    /// A description: ``attribute `dpofua` of `<target>` ``.
    pub what: String,
    /// The first version that knows it: major, minor, micro.
    pub since: (u32, u32, u32),
    /// The first version that supports its parent; an older program does not read the parent.
    pub parent_since: (u32, u32, u32),
}

impl<P> VersionedSyntax<P> {
    /// True if a program of this version supports the parent, but not this word.
    ///
    /// ```
    /// use vmdisk_source::{VersionedSyntax, Span, WordKind};
    /// let word = VersionedSyntax {
    ///     at: (),
    ///     span: Span::new(8, 17),
    ///     kind: WordKind::Element,
    ///     what: "element `<latency-histogram>` of `<statistics>`".to_owned(),
    ///     since: (12, 1, 0),
    ///     parent_since: (11, 9, 0),
    /// };
    /// assert!(word.unknown_to((12, 0, 0)));
    /// assert!(!word.unknown_to((12, 1, 0)), "it knows the word");
    /// assert!(!word.unknown_to((11, 3, 0)), "it does not know the parent");
    /// ```
    pub fn unknown_to(&self, version: (u32, u32, u32)) -> bool {
        self.parent_since <= version && version < self.since
    }
}
