//! The few lines of a text that a snippet quotes.
//!
//! The renderer's cost grows with the text it is handed, so it is handed a window; and what it does
//! not neutralise itself is neutralised here.

use std::borrow::Cow;
use std::ops::Range;

use vmdisk_source::Span;
use vmdisk_source::secrets::Secrets;

use crate::sanitize;

/// A line with more bytes than this before, in or behind a place is not quoted.
const MAX_LINE: usize = 2048;

/// A place over more bytes than this is shown by its first line.
const MAX_SPAN: usize = 1024;

/// Whole lines of a text, with every hazard and every secret replaced character by character.
pub(crate) struct Window<'a> {
    start: usize,
    raw: &'a str,
    clean: Cow<'a, str>,
}

impl<'a> Window<'a> {
    /// The lines that `span` touches; `None` if they are too long to be quoted.
    pub(crate) fn around(text: &'a str, secrets: &Secrets, span: Span) -> Option<Self> {
        let before = bytes_before(text, span.start);
        let start = match before.rfind('\n') {
            Some(at) => span.start - before.len() + at + 1,
            None if before.len() == span.start => 0,
            None => return None,
        };
        let after = bytes_after(text, span.end);
        let end = match after.find('\n') {
            Some(at) => span.end + at + 1,
            None if span.end + after.len() == text.len() => text.len(),
            None => return None,
        };
        let raw = text.get(start..end)?;
        if raw.len() > MAX_SPAN + 2 * MAX_LINE {
            return None;
        }
        let clean = clean(secrets.mask(text, start..end));
        Some(Window { start, raw, clean })
    }

    /// The text of the window.
    pub(crate) fn text(&self) -> &str {
        &self.clean
    }

    /// Where a place of the whole text is in the window; `None` if it is not within.
    pub(crate) fn range(&self, span: Span) -> Option<Range<usize>> {
        let within = |offset: usize| {
            let raw = self.raw.get(..offset.checked_sub(self.start)?)?;
            Some(match &self.clean {
                Cow::Borrowed(_) => raw.len(),
                Cow::Owned(clean) => {
                    let shown = clean.char_indices().nth(raw.chars().count());
                    shown.map_or(clean.len(), |(at, _)| at)
                }
            })
        };
        Some(within(span.start)?..within(span.end)?)
    }
}

/// A text with every hazard replaced character by character.
fn clean(text: Cow<'_, str>) -> Cow<'_, str> {
    let changes = |character: char| sanitize::source_character(character) != character;
    if text.chars().any(changes) {
        return Cow::Owned(text.chars().map(sanitize::source_character).collect());
    }
    text
}

/// The part of a place that is shown: all of it, or its first line if it is very long.
pub(crate) fn shown_part(text: &str, span: Span) -> Span {
    let end = span.end.min(text.len());
    let start = span.start.min(end);
    if end - start <= MAX_SPAN {
        return Span::new(start, end);
    }
    let head = bytes_after(text, start);
    let line = head.find('\n').unwrap_or(head.len()).min(MAX_SPAN);
    let mut end = start + line;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Span::new(start, end)
}

/// A few characters around a place in a line too long to be quoted.
pub(crate) fn excerpt(text: &str, secrets: &Secrets, span: Span) -> String {
    const AROUND: usize = 40;
    let span = shown_part(text, span);
    let mut start = span.start.saturating_sub(AROUND);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = (span.end.min(span.start + 2 * AROUND) + AROUND).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let quoted = secrets.mask(text, start..end);
    format!("…{}…", sanitize::line(quoted.trim()))
}

/// Up to [`MAX_LINE`] bytes before an offset.
fn bytes_before(text: &str, offset: usize) -> &str {
    let mut start = offset.saturating_sub(MAX_LINE);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..offset).unwrap_or_default()
}

/// Up to [`MAX_LINE`] bytes behind an offset.
fn bytes_after(text: &str, offset: usize) -> &str {
    let mut end = offset.saturating_add(MAX_LINE).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(offset..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span_of(text: &str, part: &str) -> Span {
        let start = text.find(part).unwrap();
        Span::new(start, start + part.len())
    }

    #[test]
    fn a_window_is_the_whole_lines_of_its_place() {
        let text = "one\ntwo\nthree\nfour";
        let window = Window::around(text, &Secrets::default(), span_of(text, "wo\nth")).unwrap();
        assert_eq!(window.text(), "two\nthree\n");
        assert_eq!(window.range(span_of(text, "three")), Some(4..9));
        assert_eq!(window.range(span_of(text, "four")), None);
        assert_eq!(window.range(span_of(text, "one")), None);
        let last = Window::around(text, &Secrets::default(), Span::empty(text.len())).unwrap();
        assert_eq!(last.text(), "four");
    }

    #[test]
    fn places_stay_right_behind_replaced_characters() {
        let text = "a\u{9b}\u{1b}\u{202e}<x>";
        let window = Window::around(text, &Secrets::default(), span_of(text, "<x>")).unwrap();
        assert_eq!(window.text(), "a\u{fffd}\u{241b}\u{fffd}<x>");
        let range = window.range(span_of(text, "<x>")).unwrap();
        assert_eq!(&window.text()[range], "<x>");
    }

    #[test]
    fn a_very_long_line_gives_an_excerpt_instead() {
        let text = format!("{}é<disk/>{}", "x".repeat(9_000), "y".repeat(9_000));
        let span = span_of(&text, "<disk/>");
        assert!(Window::around(&text, &Secrets::default(), span).is_none());
        let excerpt = excerpt(&text, &Secrets::default(), span);
        assert!(
            excerpt.contains("é<disk/>y") && excerpt.len() < 250,
            "{excerpt}"
        );
    }

    #[test]
    fn a_very_long_place_is_shown_by_its_first_line() {
        let text = format!("<disk>\n{}", "é\n".repeat(5_000));
        let part = shown_part(&text, Span::new(0, text.len()));
        assert_eq!(part.slice(&text), Some("<disk>"));
        assert_eq!(shown_part("ab", Span::new(5, 9)), Span::new(2, 2));
    }
}
