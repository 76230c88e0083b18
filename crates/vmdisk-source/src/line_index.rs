//! From byte offsets to lines and columns.

/// A place a person can find: both numbers start at 1, the column counts Unicode characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Offsets of the line starts of one text, built once and searched by bisection.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    /// Notes where each line of `text` begins.
    pub fn new(text: &str) -> Self {
        let starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        LineIndex { starts }
    }

    /// Line and column of `offset`; an offset past the end counts as the end.
    ///
    /// `text` must be the text the index was built from.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        Position {
            line,
            column: text[start..offset].chars().count() + 1,
        }
    }

    /// Byte offset at which `line` (from 1) begins; the last line's start if there are fewer.
    pub fn line_start(&self, line: usize) -> usize {
        let last = self.starts.len() - 1;
        self.starts[line.saturating_sub(1).min(last)]
    }

    /// Number of lines.
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(index.line_start(2), 2);
    }
}
