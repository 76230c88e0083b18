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

/// A word of a text, with the first version that knows it.
///
/// Readers record it where the text may be for a program without the word. The target decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaterWord<P> {
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
    /// The first version that knows everything around it; an older program does not read this far.
    pub around: (u32, u32, u32),
}

impl<P> LaterWord<P> {
    /// True if a program of this version does not know the word, and knows everything around it.
    ///
    /// ```
    /// use vmdisk_source::{LaterWord, Span, WordKind};
    /// let word = LaterWord {
    ///     at: (),
    ///     span: Span::new(8, 17),
    ///     kind: WordKind::Element,
    ///     what: "element `<latency-histogram>` of `<statistics>`".to_owned(),
    ///     since: (12, 1, 0),
    ///     around: (11, 9, 0),
    /// };
    /// assert!(word.is_new_to((12, 0, 0)));
    /// assert!(!word.is_new_to((12, 1, 0)), "it knows the word");
    /// assert!(!word.is_new_to((11, 3, 0)), "it does not know what is around the word");
    /// ```
    pub fn is_new_to(&self, version: (u32, u32, u32)) -> bool {
        self.around <= version && version < self.since
    }
}
