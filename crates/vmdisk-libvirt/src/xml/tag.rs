//! Start tags, byte by byte: the spans of each attribute, its name and its value.
//!
//! The spans of the tree come from here, and edits scan tags again: both need exact offsets.

use vmdisk_source::Span;

use super::name::{is_ascii_name_byte, is_ascii_start};

/// One attribute of a start tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagAttribute {
    /// The name, with its prefix.
    pub(crate) name: Span,
    /// The value without its quotes, as written.
    pub(crate) value: Span,
    /// True if the name is known to be a name without a prefix.
    pub(crate) is_plain_name: bool,
    /// True if the value means what is written, without references and line ends.
    pub(crate) is_literal: bool,
}

/// A mistake in a start tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagFault {
    /// An attribute without `=`.
    NoEquals,
    /// A value without quotes.
    NoQuotes,
    /// A quote that is never closed.
    NoClosingQuote,
    /// Two attributes without white space between them.
    NoSpace,
    /// `<` in a value.
    LessThan,
    /// Text that is not an attribute.
    Stray,
    /// The text ends inside the tag.
    Unclosed,
}

/// A fault with its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagError {
    pub(crate) fault: TagFault,
    pub(crate) span: Span,
}

/// Iterates over the attributes of one start tag.
pub(crate) struct TagScanner<'a> {
    text: &'a str,
    at: usize,
    /// Name of the element.
    pub(crate) name: Span,
    /// True if that is known to be a name without a prefix.
    pub(crate) is_plain_name: bool,
    /// Set at the end of the tag.
    end: Option<TagEnd>,
}

/// The end of a start tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagEnd {
    /// The position for another attribute: directly after the last one, or after the name.
    pub(crate) attributes_end: usize,
    /// Directly after the `>`.
    pub(crate) end: usize,
    /// True for `<a/>`.
    pub(crate) is_empty_element: bool,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The byte ends a name; the parser checks all others.
const ENDS_NAME: u8 = 1;
/// The byte may be in a name without a prefix.
const IN_NAME: u8 = 2;
/// The byte may end a value, or mean something else than itself.
const STOPS_VALUE: u8 = 4;

/// The classes of each byte: one scan finds and checks a name or a value.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        // The loop ends at 256.
        let b = byte as u8;
        if matches!(
            b,
            b' ' | b'\t' | b'\r' | b'\n' | b'=' | b'>' | b'<' | b'/' | b'\'' | b'"'
        ) {
            classes[byte] |= ENDS_NAME;
        }
        if is_ascii_name_byte(b) {
            classes[byte] |= IN_NAME;
        }
        if matches!(b, b'\'' | b'"' | b'<' | b'&' | b'\t' | b'\r' | b'\n') {
            classes[byte] |= STOPS_VALUE;
        }
        byte += 1;
    }
    classes
};

const fn class(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

/// The end of the name that begins at `start`, and true if it is known to be a name without a prefix.
#[inline]
fn scan_name(bytes: &[u8], start: usize) -> (usize, bool) {
    let rest = &bytes[start..];
    let length = rest.iter().position(|byte| class(*byte) & IN_NAME == 0);
    let length = length.unwrap_or(rest.len());
    if rest
        .get(length)
        .is_some_and(|byte| class(*byte) & ENDS_NAME == 0)
    {
        let end = rest.iter().position(|byte| class(*byte) & ENDS_NAME != 0);
        return (start + end.unwrap_or(rest.len()), false);
    }
    let is_plain = length > 0 && rest.first().is_some_and(|first| is_ascii_start(*first));
    (start + length, is_plain)
}

impl<'a> TagScanner<'a> {
    /// Starts at the `<` at `start`.
    pub(crate) fn new(text: &'a str, start: usize) -> Self {
        let start = (start + 1).min(text.len());
        let (at, is_plain_name) = scan_name(text.as_bytes(), start);
        TagScanner {
            text,
            at,
            name: Span::new(start, at),
            is_plain_name,
            end: None,
        }
    }

    /// The end of the tag; known once all attributes are read without a fault.
    pub(crate) fn end(&self) -> Option<TagEnd> {
        self.end
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.byte().is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// The character at the cursor.
    fn here(&self) -> Span {
        let width = self.text[self.at..]
            .chars()
            .next()
            .map_or(0, char::len_utf8);
        Span::new(self.at, self.at + width)
    }

    fn fault<T>(&self, fault: TagFault, span: Span) -> Result<T, TagError> {
        Err(TagError { fault, span })
    }

    /// The next attribute; `None` at the end of the tag.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "the parser calls it for each attribute, and it is a tenth of its work"
    )]
    pub(crate) fn next_attribute(&mut self) -> Result<Option<TagAttribute>, TagError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let before = self.at;
        self.skip_space();
        match self.byte() {
            None => return self.fault(TagFault::Unclosed, Span::empty(self.text.len())),
            Some(b'>') => {
                self.end = Some(TagEnd {
                    attributes_end: before,
                    end: self.at + 1,
                    is_empty_element: false,
                });
                return Ok(None);
            }
            Some(b'/') if self.text.as_bytes().get(self.at + 1) == Some(&b'>') => {
                self.end = Some(TagEnd {
                    attributes_end: before,
                    end: self.at + 2,
                    is_empty_element: true,
                });
                return Ok(None);
            }
            Some(byte) if class(byte) & ENDS_NAME != 0 => {
                return self.fault(TagFault::Stray, self.here());
            }
            Some(_) => {}
        }
        let bytes = self.text.as_bytes();
        let start = self.at;
        let (name_end, is_plain_name) = scan_name(bytes, start);
        self.at = name_end;
        let name = Span::new(start, name_end);
        if before == start {
            return self.fault(TagFault::NoSpace, name);
        }
        self.skip_space();
        if self.byte() != Some(b'=') {
            return self.fault(TagFault::NoEquals, name);
        }
        self.at += 1;
        self.skip_space();
        let Some(quote @ (b'\'' | b'"')) = self.byte() else {
            let value_start = self.at;
            while self
                .byte()
                .is_some_and(|byte| !is_space(byte) && !matches!(byte, b'>' | b'<'))
            {
                self.at += 1;
            }
            return self.fault(TagFault::NoQuotes, Span::new(value_start, self.at));
        };
        let (value, is_literal) = self.value(quote)?;
        self.at = value.end + 1;
        Ok(Some(TagAttribute {
            name,
            value,
            is_plain_name,
            is_literal,
        }))
    }

    /// The value after the quote at the cursor, and true if it means what is written.
    #[inline]
    fn value(&self, quote: u8) -> Result<(Span, bool), TagError> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut end = start;
        let mut is_literal = true;
        loop {
            let stop = |byte: &u8| class(*byte) & STOPS_VALUE != 0;
            end = bytes[end..]
                .iter()
                .position(stop)
                .map_or(bytes.len(), |at| end + at);
            match bytes.get(end) {
                Some(&byte) if byte == quote => break,
                Some(b'<') => {
                    // A `<` here is much more often a forgotten quote than a forgotten `&lt;`.
                    let (fault, span) = if bytes[end..].contains(&quote) {
                        (TagFault::LessThan, Span::new(end, end + 1))
                    } else {
                        (TagFault::NoClosingQuote, Span::new(self.at, self.at + 1))
                    };
                    return self.fault(fault, span);
                }
                // The other quote.
                Some(b'\'' | b'"') => {}
                Some(_) => is_literal = false,
                None => {
                    return self.fault(TagFault::NoClosingQuote, Span::new(self.at, self.at + 1));
                }
            }
            end += 1;
        }
        Ok((Span::new(start, end), is_literal))
    }
}

/// A start tag with all its attributes.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    pub(crate) attributes: Vec<TagAttribute>,
    pub(crate) end: TagEnd,
}

/// Reads the start tag at `start`; `None` only for a text that is not well-formed.
pub(crate) fn scan_tag(text: &str, start: usize) -> Option<Tag> {
    let mut scanner = TagScanner::new(text, start);
    let mut attributes = Vec::new();
    while let Some(attribute) = scanner.next_attribute().ok()? {
        attributes.push(attribute);
    }
    Some(Tag {
        attributes,
        end: scanner.end()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_tag_is_found_however_it_is_spaced() {
        let spaces = " ".repeat(300);
        let text = format!("<a  b{spaces}={spaces}'v'\n\tc:d=\"x'y\" />");
        let tag = scan_tag(&text, 0).unwrap();
        let slices: Vec<_> = tag
            .attributes
            .iter()
            .map(|a| {
                (
                    &text[a.name.start..a.name.end],
                    a.value.slice(&text).unwrap(),
                )
            })
            .collect();
        assert_eq!(slices, [("b", "v"), ("c:d", "x'y")]);
        assert_eq!(&text[tag.end.attributes_end..tag.end.end], " />");
        assert!(tag.end.is_empty_element);
    }

    #[test]
    fn a_fault_in_a_tag_is_named_with_its_place() {
        for (text, fault, at) in [
            ("<a b>", TagFault::NoEquals, "b"),
            ("<a b=c>", TagFault::NoQuotes, "c"),
            ("<a b='c>", TagFault::NoClosingQuote, "'"),
            ("<a b='c'd='e'>", TagFault::NoSpace, "d"),
            ("<a b='c<d'>", TagFault::LessThan, "<"),
            ("<a b='c><d>", TagFault::NoClosingQuote, "'"),
            ("<a 'c'>", TagFault::Stray, "'"),
            ("<a b='c'", TagFault::Unclosed, ""),
        ] {
            let mut scanner = TagScanner::new(text, 0);
            let error = loop {
                match scanner.next_attribute() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{text}: no fault"),
                    Err(error) => break error,
                }
            };
            assert_eq!(
                (error.fault, error.span.slice(text).unwrap()),
                (fault, at),
                "{text}"
            );
        }
    }
}
