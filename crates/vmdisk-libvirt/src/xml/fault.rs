//! Violations of well-formedness, with messages and spans.

use quick_xml::errors::{IllFormedError, SyntaxError};
use vmdisk_source::Span;

use super::decode::referenced;
use super::tag::{TagError, TagFault, TagScanner};
use crate::ReadFailure;

/// A fault in a start tag.
pub(super) fn in_tag(text: &str, error: TagError, element: Span) -> ReadFailure {
    let slice = |span: Span| span.slice(text).unwrap_or_default();
    let (element, found) = (slice(element), slice(error.span));
    let message = match error.fault {
        TagFault::NoEquals => format!("attribute `{found}` of `<{element}>` has no value"),
        TagFault::NoQuotes => format!("the value `{found}` is not quoted"),
        TagFault::NoClosingQuote => "this quote is never closed".to_owned(),
        TagFault::NoSpace => format!("no white space before attribute `{found}`"),
        TagFault::LessThan => "`<` in an attribute's value".to_owned(),
        TagFault::Stray => format!("`{found}` where an attribute was expected"),
        TagFault::Unclosed => format!("the file ends inside the tag `<{element}`"),
    };
    let failure = ReadFailure::malformed(error.span, message);
    match error.fault {
        TagFault::NoEquals => failure.help(format!("write `{found}='…'`")),
        TagFault::NoQuotes => failure.help(format!("write `'{found}'`")),
        TagFault::LessThan => failure.help("write `&lt;`"),
        TagFault::NoClosingQuote | TagFault::NoSpace | TagFault::Stray | TagFault::Unclosed => {
            failure
        }
    }
}

/// A fault that the tokenizer finds.
pub(super) fn in_token(text: &str, error: &quick_xml::Error, at: usize) -> ReadFailure {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let line = rest_of_line(text, at);
    let what = match error {
        quick_xml::Error::IllFormed(IllFormedError::UnclosedReference) => {
            return stray_ampersand(at);
        }
        quick_xml::Error::Syntax(
            SyntaxError::UnclosedTag
            | SyntaxError::UnclosedSingleQuotedAttributeValue
            | SyntaxError::UnclosedDoubleQuotedAttributeValue,
        ) => return in_unclosed_tag(text, at),
        quick_xml::Error::Syntax(SyntaxError::UnclosedComment) => "this comment is never closed",
        quick_xml::Error::Syntax(SyntaxError::UnclosedCData) => {
            "this CDATA section is never closed"
        }
        quick_xml::Error::Syntax(SyntaxError::UnclosedPI | SyntaxError::UnclosedXmlDecl) => {
            "this processing instruction is never closed"
        }
        quick_xml::Error::Syntax(SyntaxError::UnclosedDoctype) => {
            "this document type is never closed"
        }
        quick_xml::Error::Syntax(SyntaxError::InvalidBangMarkup) => {
            "`<!` does not start a valid construct"
        }
        quick_xml::Error::IllFormed(_)
        | quick_xml::Error::Io(_)
        | quick_xml::Error::InvalidAttr(_)
        | quick_xml::Error::Encoding(_)
        | quick_xml::Error::Escape(_)
        | quick_xml::Error::Namespace(_) => {
            return ReadFailure::malformed(line, format!("not well-formed: {error}"));
        }
    };
    ReadFailure::malformed(line, what)
}

/// The scanner knows the position of the fault in the tag.
fn in_unclosed_tag(text: &str, at: usize) -> ReadFailure {
    let mut scanner = TagScanner::new(text, at);
    let name = scanner.name;
    loop {
        match scanner.next_attribute() {
            Ok(Some(_)) => {}
            Ok(None) => {
                let line = rest_of_line(text, at);
                return ReadFailure::malformed(line, "this tag is never closed");
            }
            Err(error) => return in_tag(text, error, name),
        }
    }
}

/// The text from an offset to the end of its line.
pub(super) fn rest_of_line(text: &str, at: usize) -> Span {
    let rest = &text[at..];
    Span::new(at, at + rest.find('\n').unwrap_or(rest.len()))
}

/// Each `&` in `span` must start one of the five named entities or a character reference.
pub(super) fn check_references(text: &str, span: Span) -> Result<(), ReadFailure> {
    let written = span.slice(text).unwrap_or_default();
    // For short texts, as nearly all values are, a byte search is faster than setting up a searcher.
    if !written.as_bytes().contains(&b'&') {
        return Ok(());
    }
    for (at, _) in written.match_indices('&') {
        let start = span.start + at;
        let rest = &written[at + 1..];
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '#' | '_' | '-' | '.' | ':')))
            .unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() || !rest[end..].starts_with(';') {
            return Err(stray_ampersand(start));
        }
        if referenced(name).is_some() {
            continue;
        }
        let span = Span::new(start, start + name.len() + 2);
        return Err(if name.starts_with('#') {
            let message = format!("`&{name};` is not a character that XML allows");
            ReadFailure::malformed(span, message)
        } else {
            ReadFailure::malformed(span, format!("unknown entity `&{name};`"))
                .help("write the character itself; XML defines only `&lt;`, `&gt;`, `&amp;`, `&quot;` and `&apos;`")
        });
    }
    Ok(())
}

fn stray_ampersand(at: usize) -> ReadFailure {
    ReadFailure::malformed(Span::new(at, at + 1), "a stray `&`").help("write `&amp;`")
}
