//! From byte offsets to lines and columns.

use std::sync::OnceLock;

/// A place for people: both numbers start at 1, the column counts Unicode characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// The lines of one text.
///
/// In a short text, each question for a place counts the lines before it. For a longer text, the offsets of all line starts
/// are collected once and searched by bisection.
#[derive(Clone, Debug, Default)]
pub struct LineIndex {
    lines: OnceLock<Lines>,
}

/// Offsets of the line starts of one text.
#[derive(Clone, Debug)]
struct Lines {
    starts: Vec<usize>,
    /// Number of characters that begin before each multiple of [`STRIDE`], so that a column in a very
    /// long line is not counted from its start each time; empty if no line is that long.
    characters: Vec<usize>,
}

/// A text of this many bytes is short: counting its lines up to a place takes less than a tenth of collecting them all.
const SHORT: usize = 8192;

/// Bytes between two counts of characters, and the length from which on a line is very long.
const STRIDE: usize = 4096;

/// Number of characters that begin in `bytes`.
fn characters_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Offsets of the first byte of each line.
fn line_starts(bytes: &[u8]) -> Vec<usize> {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const NEWLINES: u64 = 0x0a0a_0a0a_0a0a_0a0a;
    // As libvirt writes it, a line has about 40 bytes.
    let mut starts = Vec::with_capacity(bytes.len() / 32 + 1);
    starts.push(0);
    let mut at = 0;
    // Lines are short: eight bytes at a time costs less than a search from each newline to the next.
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    for word in words {
        let word = word.try_into().map_or(0, u64::from_le_bytes) ^ NEWLINES;
        // The top bit of each byte that is zero now.
        let mut found = !(((word & LOW) + LOW) | word | LOW);
        while found != 0 {
            starts.push(at + found.trailing_zeros() as usize / 8 + 1);
            found &= found - 1;
        }
        at += 8;
    }
    for (nth, byte) in rest.iter().enumerate() {
        if *byte == b'\n' {
            starts.push(at + nth + 1);
        }
    }
    starts
}

impl Lines {
    fn new(text: &str) -> Self {
        let starts = line_starts(text.as_bytes());
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let has_long_line = starts
            .iter()
            .zip(ends)
            .any(|(start, end)| end - start > STRIDE);
        let mut characters = Vec::new();
        if has_long_line {
            let mut before = 0;
            for chunk in text.as_bytes().chunks(STRIDE) {
                characters.push(before);
                before += characters_in(chunk);
            }
            characters.push(before);
        }
        Lines { starts, characters }
    }

    fn position(&self, text: &str, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        Position {
            line,
            column: self.characters_between(text, start, offset) + 1,
        }
    }

    /// Number of characters between two character boundaries.
    fn characters_between(&self, text: &str, start: usize, end: usize) -> usize {
        if end - start <= STRIDE {
            return characters_in(&text.as_bytes()[start..end]);
        }
        let before = |offset: usize| {
            let counted = offset / STRIDE;
            let rest = &text.as_bytes()[counted * STRIDE..offset];
            self.characters[counted] + characters_in(rest)
        };
        before(end) - before(start)
    }
}

/// The position after `before`, which is the beginning of a short text.
fn count(before: &[u8]) -> Position {
    // Counts of bytes are added 16 at a time, counts of words are not.
    let of_chunk = |chunk: &[u8]| {
        let newlines = chunk.iter().map(|byte| u8::from(*byte == b'\n'));
        usize::from(newlines.sum::<u8>())
    };
    let newlines: usize = before.chunks(usize::from(u8::MAX)).map(of_chunk).sum();
    let last = before.iter().rposition(|byte| *byte == b'\n');
    let start = last.map_or(0, |newline| newline + 1);
    Position {
        line: newlines + 1,
        column: characters_in(&before[start..]) + 1,
    }
}

impl LineIndex {
    /// The lines of a text.
    pub fn new(text: &str) -> Self {
        let index = LineIndex::default();
        if text.len() > SHORT {
            index.lines(text);
        }
        index
    }

    fn lines(&self, text: &str) -> &Lines {
        self.lines.get_or_init(|| Lines::new(text))
    }

    /// Line and column of `offset`; an offset past the end counts as the end.
    ///
    /// `text` must be the text the index was built from.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        if text.len() <= SHORT {
            return count(&text.as_bytes()[..offset]);
        }
        self.lines(text).position(text, offset)
    }

    /// Byte offset at which `line` (from 1) begins; the last line's start if there are fewer.
    ///
    /// `text` must be the text the index was built from.
    pub fn line_start(&self, text: &str, line: usize) -> usize {
        let starts = &self.lines(text).starts;
        starts[line.saturating_sub(1).min(starts.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_newline_is_found_in_any_surroundings() {
        let expected = |text: &str| {
            let newlines = text.match_indices('\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(newlines).collect::<Vec<usize>>()
        };
        for around in [
            "",
            "\u{b}",
            "\u{9}",
            "\u{8a}",
            "\n",
            "abcdefg",
            "\u{b}\n\u{b}",
        ] {
            for width in 0..20 {
                let text = format!("{}\n{around}\n{}", "x".repeat(width), around.repeat(width));
                assert_eq!(line_starts(text.as_bytes()), expected(&text), "{text:?}");
            }
        }
    }

    #[test]
    fn columns_count_characters_and_lines_start_at_one() {
        let text = "a\néé<x>\n";
        let index = LineIndex::new(text);
        let at = |offset| {
            let Position { line, column } = index.position(text, offset);
            (line, column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(2), (2, 1));
        assert_eq!(at(text.find('<').unwrap()), (2, 3));
        assert_eq!(at(3), (2, 1), "inside a character counts as its start");
        assert_eq!(at(999), (3, 1));
        assert_eq!(index.line_start(text, 2), 2);
    }

    #[test]
    fn a_short_text_has_the_same_positions_as_a_long_one() {
        let text = "a\n\r\n\né\u{1f4be}<x>\n\nend";
        let lines = Lines::new(text);
        let index = LineIndex::new(text);
        for offset in (0..=text.len()).filter(|offset| text.is_char_boundary(*offset)) {
            let expected = lines.position(text, offset);
            assert_eq!(index.position(text, offset), expected, "{offset}");
        }
    }

    #[test]
    fn columns_in_a_very_long_line_are_the_same_as_counted() {
        let long = "é<disk/>\u{1f4be}".repeat(2 * STRIDE / 5);
        let text = format!("short\n{long}\nend");
        let index = LineIndex::new(&text);
        for offset in (6..text.len())
            .step_by(97)
            .chain([6 + STRIDE, 6 + long.len(), text.len()])
        {
            let mut boundary = offset;
            while !text.is_char_boundary(boundary) {
                boundary -= 1;
            }
            let (line, start) = if boundary > 6 + long.len() {
                (3, 7 + long.len())
            } else {
                (2, 6)
            };
            let column = text[start..boundary].chars().count() + 1;
            assert_eq!(
                index.position(&text, offset),
                Position { line, column },
                "{offset}"
            );
        }
    }
}
