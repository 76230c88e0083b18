//! Words that the program which takes a text has known only since one of its later versions.

use crate::Span;

/// What a word is, which decides what a program does that does not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WordKind {
    /// An element.
    Element,
    /// An attribute.
    Attribute,
    /// The value of an attribute.
    Value,
}

/// A word that is written, with the version that first knew it.
///
/// Readers note it where the text can be meant for a program without the word; whether it is, the target says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaterWord<P> {
    /// The field it belongs to, or the nearest one that encloses it.
    pub at: P,
    /// Exactly where.
    pub span: Span,
    /// What it is.
    pub kind: WordKind,
    /// It in words: ``attribute `dpofua` of `<target>` ``.
    pub what: String,
    /// The version that first knew it: major, minor, micro.
    pub since: (u32, u32, u32),
    /// The version that first knew everything around it; what is older than that has not come this far.
    pub around: (u32, u32, u32),
}

impl<P> LaterWord<P> {
    /// True if a program of this version stumbles over this very word, and not over one around it.
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
