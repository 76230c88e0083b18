//! The tree: guarded text to `roxmltree`, with names that keep their prefixes.

use roxmltree::{Document, Node, ParsingOptions, TextPos};
use vmdisk_source::Span;

use crate::ReadFailure;

/// Parses a text that has passed the guard.
pub(crate) fn parse(text: &str) -> Result<Document<'_>, ReadFailure> {
    let options = ParsingOptions {
        // Entities a document defines itself can grow without bounds.
        allow_dtd: false,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|error| {
        let at = offset_of(text, error.pos());
        let width = text[at..].chars().next().map_or(0, char::len_utf8);
        ReadFailure::malformed(
            Span::new(at, at + width),
            format!("not well-formed: {}", without_position(&error.to_string())),
        )
    })
}

/// The parser's own text says " at LINE:COLUMN", which the span says better.
fn without_position(message: &str) -> String {
    let Some(at) = message.find(" at ") else {
        return message.to_owned();
    };
    let rest = message[at + 4..].trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
    format!("{}{rest}", &message[..at])
}

fn offset_of(text: &str, position: TextPos) -> usize {
    let mut start = 0;
    for _ in 1..position.row {
        match text[start..].find('\n') {
            Some(at) => start += at + 1,
            None => break,
        }
    }
    let line = &text[start..];
    let column = position.col.saturating_sub(1) as usize;
    start
        + line
            .char_indices()
            .nth(column)
            .map_or(line.len(), |(at, _)| at)
}

/// Name of an element as written, with its prefix.
pub(crate) fn name<'t>(text: &'t str, node: Node<'_, '_>) -> &'t str {
    let rest = &text[(node.range().start + 1).min(text.len())..];
    let end = rest
        .find(['>', '/', ' ', '\t', '\r', '\n'])
        .unwrap_or(rest.len());
    &rest[..end]
}

/// All text in an element, comments and the text of inner elements left out, with its place.
///
/// The place is empty, just inside the element, where there is no text; `None` for `<a/>`.
pub(crate) fn text(node: Node<'_, '_>) -> (String, Option<Span>) {
    let mut out = String::new();
    let mut span: Option<Span> = None;
    for child in node.children().filter(Node::is_text) {
        out.push_str(child.text().unwrap_or_default());
        let range = child.range();
        span = Some(Span::new(
            span.map_or(range.start, |span| span.start),
            range.end,
        ));
    }
    (out, span)
}

/// The value of an attribute without a prefix.
pub(crate) fn attribute<'d>(node: Node<'d, 'd>, name: &str) -> Option<&'d str> {
    node.attribute(name)
}
