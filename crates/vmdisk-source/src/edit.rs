//! Byte edits, with which fixes change a file without rewriting it.

use crate::Span;

/// Replaces the bytes of `span` by `text`; an empty span inserts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    /// The replaced bytes.
    pub span: Span,
    /// The text that replaces them.
    pub text: String,
}

impl Edit {
    /// Replaces `span` by `text`.
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Edit {
            span,
            text: text.into(),
        }
    }

    /// Inserts `text` before the byte at `offset`.
    pub fn insert(offset: usize, text: impl Into<String>) -> Self {
        Edit {
            span: Span::empty(offset),
            text: text.into(),
        }
    }

    /// Deletes `span`.
    pub fn delete(span: Span) -> Self {
        Edit {
            span,
            text: String::new(),
        }
    }
}

/// The reason why edits cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditConflict {
    /// Two edits touch the same bytes.
    Overlap(Span, Span),
    /// An edit lies outside the text or inside a character.
    OutOfText(Span),
}

impl std::fmt::Display for EditConflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EditConflict::Overlap(a, b) => write!(
                f,
                "two edits touch the same bytes: {}..{} and {}..{}",
                a.start, a.end, b.start, b.end
            ),
            EditConflict::OutOfText(span) => write!(
                f,
                "an edit of bytes {}..{} does not fit the text",
                span.start, span.end
            ),
        }
    }
}

impl std::error::Error for EditConflict {}

/// Applies all edits at once; equal edits count once, insertions at one offset keep their order.
///
/// # Errors
/// If two different edits overlap, or one does not lie in `text` on character boundaries. Nothing is
/// applied then.
///
/// ```
/// use vmdisk_source::{Edit, Span, apply_edits};
/// let text = "<driver cache='unsafe'/>";
/// let edits = [Edit::replace(Span::new(15, 21), "writeback"), Edit::insert(7, " name='qemu'")];
/// assert_eq!(apply_edits(text, &edits).unwrap(), "<driver name='qemu' cache='writeback'/>");
/// ```
pub fn apply_edits(text: &str, edits: &[Edit]) -> Result<String, EditConflict> {
    let mut ordered: Vec<&Edit> = Vec::with_capacity(edits.len());
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| (edit.span.start, edit.span.end));
    for edit in sorted {
        match ordered.last() {
            Some(last) if **last == *edit => continue,
            Some(last)
                if last.span.overlaps(edit.span)
                    || (last.span == edit.span && !edit.span.is_empty())
                    || edit.span.start < last.span.end =>
            {
                return Err(EditConflict::Overlap(last.span, edit.span));
            }
            Some(_) | None => ordered.push(edit),
        }
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut done = 0;
    for edit in ordered {
        let kept = text
            .get(done..edit.span.start)
            .filter(|_| edit.span.slice(text).is_some())
            .ok_or(EditConflict::OutOfText(edit.span))?;
        out.push_str(kept);
        out.push_str(&edit.text);
        done = edit.span.end;
    }
    out.push_str(&text[done..]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_edits_are_refused_and_equal_ones_count_once() {
        let twice = [
            Edit::replace(Span::new(0, 2), "x"),
            Edit::replace(Span::new(0, 2), "x"),
        ];
        assert_eq!(apply_edits("abc", &twice).unwrap(), "xc");
        let clash = [
            Edit::replace(Span::new(0, 2), "x"),
            Edit::replace(Span::new(1, 3), "y"),
        ];
        assert!(matches!(
            apply_edits("abc", &clash),
            Err(EditConflict::Overlap(..))
        ));
    }

    #[test]
    fn an_edit_inside_a_character_or_past_the_end_is_refused() {
        for span in [Span::new(1, 2), Span::new(0, 9), Span::new(7, 7)] {
            assert_eq!(
                apply_edits("é", &[Edit::delete(span)]),
                Err(EditConflict::OutOfText(span))
            );
        }
    }

    #[test]
    fn insertions_at_one_place_keep_their_order() {
        let edits = [Edit::insert(1, "1"), Edit::insert(1, "2")];
        assert_eq!(apply_edits("ab", &edits).unwrap(), "a12b");
    }
}
