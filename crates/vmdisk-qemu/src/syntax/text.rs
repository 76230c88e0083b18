//! Text that had quotes or escapes, with the source span of its bytes.

use std::ops::Range;

use vmdisk_source::Span;

/// A run of bytes of a [`Text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Its start in the value.
    at: usize,
    /// Its span in the source.
    source: Span,
    /// True if the bytes are identical on both sides; otherwise the whole piece corresponds to the whole source span.
    is_verbatim: bool,
    /// The number of the hole that it stands for.
    hole: Option<u32>,
}

/// The decoded text of a piece of a command line, with the source span of every byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    value: String,
    pieces: Vec<Piece>,
    /// Its start in the file, for a text without bytes.
    start: usize,
    /// True if it has a quote that is not closed.
    is_unclosed: bool,
}

impl Text {
    /// A text without bytes that starts at `start` in the file.
    pub(crate) const fn empty(start: usize) -> Self {
        Text {
            value: String::new(),
            pieces: Vec::new(),
            start,
            is_unclosed: false,
        }
    }

    /// Notes that the file ends within a quote.
    pub(crate) const fn mark_unclosed(&mut self) {
        self.is_unclosed = true;
    }

    /// True if the file ends within a quote of this text.
    pub(crate) const fn is_unclosed(&self) -> bool {
        self.is_unclosed
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Text>() + self.value.len() + self.pieces.len() * size_of::<Piece>()
    }

    /// The decoded text.
    pub(crate) fn as_str(&self) -> &str {
        &self.value
    }

    /// Appends bytes of the file unchanged.
    pub(crate) fn push_verbatim(&mut self, file: &str, span: Span) {
        self.push_run(span.slice(file).unwrap_or_default(), span);
    }

    fn push_run(&mut self, bytes: &str, span: Span) {
        if bytes.is_empty() {
            return;
        }
        if let Some(last) = self.pieces.last_mut()
            && last.is_verbatim
            && last.source.end == span.start
        {
            last.source.end = span.end;
        } else {
            self.add(span, true, None);
        }
        self.value.push_str(bytes);
    }

    /// Appends the decoded text of an escape in the file.
    pub(crate) fn push_escape(&mut self, value: &str, span: Span) {
        self.push_piece(value, span, None);
    }

    /// Appends the name of a value that is unknown.
    pub(crate) fn push_hole(&mut self, name: &str, span: Span, hole: u32) {
        self.push_piece(name, span, Some(hole));
    }

    fn push_piece(&mut self, value: &str, source: Span, hole: Option<u32>) {
        if value.is_empty() {
            return;
        }
        self.add(source, false, hole);
        self.value.push_str(value);
    }

    fn add(&mut self, source: Span, is_verbatim: bool, hole: Option<u32>) {
        if self.pieces.is_empty() {
            // Most texts have one piece, and there are many of them.
            self.pieces.reserve_exact(1);
        }
        self.pieces.push(Piece {
            at: self.value.len(),
            source,
            is_verbatim,
            hole,
        });
    }

    /// The holes of the text, each with its range and its number.
    pub(crate) fn holes(&self) -> impl Iterator<Item = (Range<usize>, u32)> {
        self.pieces.iter().enumerate().filter_map(|(nth, piece)| {
            let hole = piece.hole?;
            let end = self.pieces.get(nth + 1);
            Some((piece.at..end.map_or(self.value.len(), |next| next.at), hole))
        })
    }

    /// Gives each hole another number.
    pub(crate) fn number_holes(&mut self, mut number: impl FnMut(u32) -> u32) {
        for piece in &mut self.pieces {
            piece.hole = piece.hole.map(&mut number);
        }
    }

    /// True if a part of the text is unknown.
    pub(crate) fn has_hole(&self) -> bool {
        self.pieces.iter().any(|piece| piece.hole.is_some())
    }

    /// The hole at an offset, with its end.
    pub(crate) fn hole_at(&self, offset: usize) -> Option<(usize, u32)> {
        let nth = self.piece_at(offset);
        let hole = self.pieces.get(nth)?.hole?;
        let end = self.pieces.get(nth + 1);
        Some((end.map_or(self.value.len(), |next| next.at), hole))
    }

    /// Appends all of another text of the same file.
    pub(crate) fn push_text(&mut self, other: &Text) {
        self.push_part(other, 0..other.value.len());
    }

    /// The text with another in place of some holes, which `put` appends. It returns false for a hole that stays.
    pub(super) fn replacing(
        &self,
        mut put: impl FnMut(&mut Text, Range<usize>, u32) -> bool,
    ) -> Text {
        let mut out = Text::empty(self.whole().start);
        let mut at = 0;
        for (range, number) in self.holes() {
            out.push_part(self, at..range.start);
            at = match put(&mut out, range.clone(), number) {
                true => range.end,
                false => range.start,
            };
        }
        out.push_part(self, at..self.value.len());
        out
    }

    /// Appends a part of another text of the same file.
    pub(crate) fn push_part(&mut self, other: &Text, range: Range<usize>) {
        if let Some(span) = other.span_in_file(&range) {
            return self.push_run(other.value.get(range).unwrap_or_default(), span);
        }
        let first = other.piece_at(range.start);
        for nth in first..other.pieces.len() {
            let piece = other.pieces[nth];
            if piece.at >= range.end {
                break;
            }
            let end = other
                .pieces
                .get(nth + 1)
                .map_or(other.value.len(), |next| next.at);
            let (from, to) = (piece.at.max(range.start), end.min(range.end));
            if from >= to {
                continue;
            }
            let source = if piece.is_verbatim {
                let start = piece.source.start + (from - piece.at);
                Span::new(start, start + (to - from))
            } else {
                piece.source
            };
            let bytes = &other.value[from..to];
            match piece.is_verbatim {
                true => self.push_run(bytes, source),
                false => self.push_piece(bytes, source, piece.hole),
            }
        }
    }

    /// A part as a separate text.
    pub(crate) fn part(&self, range: Range<usize>) -> Text {
        let mut part = Text::empty(self.span(range.start..range.start).start);
        part.push_part(self, range);
        part
    }

    /// True for a text that is one hole.
    pub(super) fn is_one_hole(&self) -> bool {
        self.hole_at(0)
            .is_some_and(|(end, _)| end == self.value.len())
    }

    /// True if one of these letters is written outside of holes.
    pub(super) fn has_outside_holes(&self, letters: &[char]) -> bool {
        let mut found = self.value.match_indices(letters);
        found.any(|(at, _)| self.hole_at(at).is_none())
    }

    /// Number of the piece that holds the byte at `offset`.
    fn piece_at(&self, offset: usize) -> usize {
        self.pieces
            .partition_point(|piece| piece.at <= offset)
            .saturating_sub(1)
    }

    /// The position of a part in the file, if the text is a part of the file unchanged: most words are.
    fn span_in_file(&self, range: &Range<usize>) -> Option<Span> {
        match self.pieces[..] {
            [piece] if piece.is_verbatim => {
                let start = piece.source.start;
                Some(Span::new(
                    start + range.start,
                    start + range.end.max(range.start),
                ))
            }
            _ => None,
        }
    }

    /// The position of a part in the file.
    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        if let Some(span) = self.span_in_file(&range) {
            return span;
        }
        if self.pieces.is_empty() {
            return Span::empty(self.start);
        }
        let first = self.pieces[self.piece_at(range.start)];
        let inside = range.start - first.at;
        let start = match (first.is_verbatim, range.start >= self.value.len()) {
            (true, _) => first.source.start + inside,
            (false, true) => first.source.end,
            (false, false) => first.source.start,
        };
        if range.end <= range.start {
            return Span::empty(start);
        }
        let last = self.pieces[self.piece_at(range.end - 1)];
        let end = if last.is_verbatim {
            last.source.start + (range.end - last.at)
        } else {
            last.source.end
        };
        Span::new(start, end.max(start))
    }

    /// The position of the whole text in the file.
    pub(crate) fn whole(&self) -> Span {
        self.span(0..self.value.len())
    }
}

/// The last boundary of a letter that is not after `at`.
pub(super) fn floor_char_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    let mut downwards = (0..=at).rev();
    downwards
        .find(|it| text.is_char_boundary(*it))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_knows_where_it_came_from() {
        let file = r"a'b'\n,,c";
        let mut text = Text::empty(0);
        text.push_verbatim(file, Span::new(0, 1));
        text.push_verbatim(file, Span::new(2, 3));
        text.push_escape("\n", Span::new(4, 6));
        text.push_escape(",", Span::new(6, 8));
        text.push_verbatim(file, Span::new(8, 9));
        assert_eq!(text.as_str(), "ab\n,c");
        assert_eq!(text.whole(), Span::new(0, 9));
        assert_eq!(text.span(1..2), Span::new(2, 3));
        assert_eq!(text.span(2..3), Span::new(4, 6));
        assert_eq!(text.span(3..5), Span::new(6, 9));
        assert_eq!(text.span(5..5), Span::empty(9));
        let part = text.part(1..4);
        assert_eq!((part.as_str(), part.whole()), ("b\n,", Span::new(2, 8)));
        assert_eq!(part.span(2..3), Span::new(6, 8));
    }
}
