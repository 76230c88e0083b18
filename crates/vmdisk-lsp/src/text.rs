//! A text that an editor changes, and positions in it.
//!
//! The protocol counts lines from 0 and columns in UTF-16 code units, and a line ends in `\n`, `\r\n` or `\r`.

use lsp_types::{Position, Range};
use vmdisk_source::Span;

/// A text and the starts of its lines.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    text: String,
    /// Offsets of the first byte of each line.
    starts: Vec<usize>,
}

impl Text {
    pub(crate) fn new(text: String) -> Self {
        Text {
            starts: line_starts(&text),
            text,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The byte offset of a position. A position past the end of its line is the end of the line, one past the end
    /// of the text is the end of the text, and one inside a character is the start of the character.
    pub(crate) fn offset(&self, position: Position) -> usize {
        let line = usize::try_from(position.line).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(line).copied() else {
            return self.text.len();
        };
        let mut units = 0;
        for (at, character) in self.line(line).char_indices() {
            units += character.len_utf16();
            if units > position.character as usize {
                return start + at;
            }
        }
        start + self.line(line).len()
    }

    /// The position of a byte offset; an offset past the end is the end, one inside a character its start.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = floor(&self.text, offset);
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        let before = self.line(line).len().min(offset - self.starts[line]);
        let units: usize = self.line(line)[..before].chars().map(char::len_utf16).sum();
        Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            character: u32::try_from(units).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn range(&self, span: Span) -> Range {
        Range {
            start: self.position(span.start),
            end: self.position(span.end.max(span.start)),
        }
    }

    /// The bytes of a range; of a range that ends before its start, the bytes between.
    pub(crate) fn span(&self, range: Range) -> Span {
        let (start, end) = (self.offset(range.start), self.offset(range.end));
        Span::new(start.min(end), start.max(end))
    }

    /// Replaces a range.
    pub(crate) fn replace(&mut self, range: Range, new: &str) {
        let Span { start, end } = self.span(range);
        self.text.replace_range(start..end, new);
        self.starts = line_starts(&self.text);
    }

    /// A line without its end.
    fn line(&self, line: usize) -> &str {
        let start = self.starts[line];
        let end = self.starts.get(line + 1).copied();
        let line = &self.text[start..end.unwrap_or(self.text.len())];
        line.trim_end_matches(['\r', '\n'])
    }
}

/// The start of the character that an offset is in.
pub(crate) fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let is_end = |at: usize| match bytes[at] {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    let ends = (0..bytes.len()).filter(|at| is_end(*at));
    std::iter::once(0).chain(ends.map(|at| at + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_are_utf16_units_and_lines_have_three_ends() {
        let text = Text::new("ü\u{1f4be}x\r\nb\rc\nd".to_owned());
        assert_eq!(text.position(2), at(0, 1));
        assert_eq!(text.position(6), at(0, 3));
        assert_eq!(text.position(4), at(0, 1), "inside a character");
        assert_eq!(text.position(8), at(0, 4), "inside a line end");
        assert_eq!(text.position(9), at(1, 0));
        assert_eq!(text.position(11), at(2, 0));
        assert_eq!(text.position(13), at(3, 0));
        assert_eq!(text.position(999), at(3, 1));
        assert_eq!(text.offset(at(0, 2)), 2, "inside a surrogate pair");
        assert_eq!(text.offset(at(0, 3)), 6);
        assert_eq!(text.offset(at(0, 99)), 7);
        assert_eq!(text.offset(at(9, 0)), 14);
        assert_eq!(text.offset(at(u32::MAX, u32::MAX)), 14);
    }

    #[test]
    fn an_edit_moves_the_lines_after_it() {
        let mut text = Text::new("a\nb\nc".to_owned());
        let range = |start, end| Range { start, end };
        text.replace(range(at(1, 0), at(1, 1)), "x\ny\n");
        assert_eq!(text.as_str(), "a\nx\ny\n\nc");
        text.replace(range(at(3, 9), at(0, 0)), "");
        assert_eq!(text.as_str(), "\nc", "a range may be written backwards");
    }

    proptest::proptest! {
        #[test]
        fn any_edit_of_any_text_keeps_positions_and_offsets_in_step(
            text in "[a\\r\\né\u{1f4be}]{0,40}",
            lines in (0..12_u32, 0..12_u32),
            columns in (0..12_u32, 0..12_u32),
            new in "[b\\r\\n\u{1f4be}]{0,6}",
        ) {
            let mut text = Text::new(text);
            text.replace(Range { start: at(lines.0, columns.0), end: at(lines.1, columns.1) }, &new);
            proptest::prop_assert_eq!(&text.starts, &line_starts(text.as_str()));
            for (offset, character) in text.as_str().char_indices() {
                if !matches!(character, '\r' | '\n') {
                    proptest::prop_assert_eq!(text.offset(text.position(offset)), offset);
                }
            }
        }
    }
}
