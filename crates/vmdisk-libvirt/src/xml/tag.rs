//! Start tags, byte by byte: the spans of each attribute, its name and its value.
//!
//! The spans of the tree come from here, and edits scan tags again: both need exact offsets.

use vmdisk_source::Span;

/// One attribute of a start tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagAttribute {
    /// The name, with its prefix.
    pub(crate) name: Span,
    /// The value without its quotes, as written.
    pub(crate) value: Span,
    /// The attribute with the white space before it.
    pub(crate) whole: Span,
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

/// True for bytes that end a name; the parser checks all others.
fn ends_name(byte: u8) -> bool {
    ENDS_NAME[usize::from(byte)]
}

static ENDS_NAME: [bool; 256] = {
    let mut ends = [false; 256];
    let bytes = b" \t\r\n=></'\"";
    let mut nth = 0;
    while nth < bytes.len() {
        ends[bytes[nth] as usize] = true;
        nth += 1;
    }
    ends
};

impl<'a> TagScanner<'a> {
    /// Starts at the `<` at `start`.
    pub(crate) fn new(text: &'a str, start: usize) -> Self {
        let bytes = text.as_bytes();
        let mut at = (start + 1).min(text.len());
        while at < bytes.len() && !ends_name(bytes[at]) {
            at += 1;
        }
        TagScanner {
            text,
            at,
            name: Span::new((start + 1).min(text.len()), at),
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
            Some(byte) if ends_name(byte) => return self.fault(TagFault::Stray, self.here()),
            Some(_) => {}
        }
        let start = self.at;
        while self.byte().is_some_and(|byte| !ends_name(byte)) {
            self.at += 1;
        }
        let name = Span::new(start, self.at);
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
        let value_start = self.at + 1;
        let rest = &self.text.as_bytes()[value_start..];
        let Some(length) = rest.iter().position(|byte| *byte == quote || *byte == b'<') else {
            return self.fault(TagFault::NoClosingQuote, Span::new(self.at, self.at + 1));
        };
        let value = Span::new(value_start, value_start + length);
        if rest[length] == b'<' {
            // A `<` here is much more often a forgotten quote than a forgotten `&lt;`.
            let (fault, span) = if rest[length..].contains(&quote) {
                (TagFault::LessThan, Span::new(value.end, value.end + 1))
            } else {
                (TagFault::NoClosingQuote, Span::new(self.at, self.at + 1))
            };
            return self.fault(fault, span);
        }
        self.at = value.end + 1;
        Ok(Some(TagAttribute {
            name,
            value,
            whole: Span::new(before, self.at),
        }))
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
        assert!(text[tag.attributes[1].whole.start..].starts_with("\n\tc:d"));
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
