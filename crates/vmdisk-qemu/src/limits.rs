//! Limits on reading a command line: far above any guest, far below the resources of a host.
//!
//! Linux passes at most 6 MiB of arguments to a program, so no larger text was ever started as a command line. Reading
//! one would cost memory for each of its words, and time for each unknown name.

use vmdisk_source::{Span, nearest};

use crate::failure::ReadFailure;

/// Words of a text: a script of a megabyte has about as many.
pub(crate) const MAX_WORDS: usize = 200_000;

/// Options of a command line, including those of its `-readconfig` files.
pub(crate) const MAX_OPTIONS: usize = 50_000;

/// Properties of one option. A device can have 1024 queues, each a separate property.
pub(crate) const MAX_PROPERTIES_OF_OPTION: usize = 4096;

/// Bytes of a property's name, including those of the enclosing nodes.
pub(crate) const MAX_NAME: usize = 1024;

/// Properties of all options.
pub(crate) const MAX_PROPERTIES: usize = 300_000;

/// Nodes of all disks. A chain that several disks use counts for each of them.
pub(crate) const MAX_NODES: usize = 100_000;

/// Comparisons of unknown names with known ones for suggestions. Later mistakes are reported without a suggestion.
pub(crate) const MAX_COMPARISONS: usize = 100_000;

/// The failure for a text with too many of something, at the first excess one.
pub(crate) fn exceeded(span: Span, owner: &str, things: &str, limit: usize) -> ReadFailure {
    ReadFailure::new(span, format!("{owner} has more than {limit} {things}"))
        .help("split it: this is too large for a QEMU command line")
}

/// The search for similar known words, which ends after [`MAX_COMPARISONS`].
pub(crate) struct Suggestions {
    left: usize,
}

impl Default for Suggestions {
    fn default() -> Self {
        Suggestions {
            left: MAX_COMPARISONS,
        }
    }
}

impl Suggestions {
    /// The most similar known word; `None` after too many comparisons.
    pub(crate) fn nearest<'w>(
        &mut self,
        word: &str,
        known: impl IntoIterator<Item = &'w str>,
    ) -> Option<&'w str> {
        let left = &mut self.left;
        let known = known.into_iter().take_while(|_| {
            *left = left.saturating_sub(1);
            *left > 0
        });
        let near = nearest(word, known);
        // The most similar word of a group may not be the most similar of all.
        near.filter(|_| self.left > 0)
    }
}

/// The words of a text, limited in number.
#[derive(Default)]
pub(crate) struct Counted {
    words: usize,
}

impl Counted {
    /// Counts a word that ends at `end`.
    pub(crate) fn word(&mut self, end: usize) -> Result<(), ReadFailure> {
        self.words += 1;
        if self.words > MAX_WORDS {
            let span = Span::empty(end);
            return Err(exceeded(span, "the command line", "words", MAX_WORDS));
        }
        Ok(())
    }
}
