//! Limits on what is read of one command line: far above any guest, far below what exhausts a host.
//!
//! Linux passes a program 6 MiB of arguments at most. A larger text is no command line that ran; reading it would
//! cost memory for each of its words, and time for each unknown name.

use vmdisk_source::{Span, nearest};

use crate::failure::ReadFailure;

/// Words of a text.
pub(crate) const MAX_WORDS: usize = 100_000;

/// Options of a command line, with those of the files that it names.
pub(crate) const MAX_OPTIONS: usize = 50_000;

/// Properties of one option. QEMU takes 1024 queues of a device, each in a property of its own.
pub(crate) const MAX_PROPERTIES_OF_OPTION: usize = 4096;

/// Bytes of a property's name, with those of the nodes around it.
pub(crate) const MAX_NAME: usize = 1024;

/// Properties of all options.
pub(crate) const MAX_PROPERTIES: usize = 300_000;

/// Nodes of all disks. Disks may name the same chain, whose nodes then count for each of them.
pub(crate) const MAX_NODES: usize = 100_000;

/// Known names that unknown ones are compared with, for suggestions. After that, mistakes are reported without.
pub(crate) const MAX_COMPARISONS: usize = 100_000;

/// The failure for a text with too many of something, at the first one that is too many.
pub(crate) fn exceeded(span: Span, owner: &str, things: &str, limit: usize) -> ReadFailure {
    ReadFailure::new(span, format!("{owner} has more than {limit} {things}"))
        .help("split it: a text of this size is not read as a command line of QEMU")
}

/// The search for known words near unknown ones, which ends after [`MAX_COMPARISONS`].
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
    /// The known word that `word` most likely means; `None` after too many comparisons.
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
        // The nearest of some words may not be the nearest of all.
        near.filter(|_| self.left > 0)
    }
}

/// The words of a text, of which there are not too many.
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
