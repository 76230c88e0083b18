//! The pass before the tree is built: limits, and well-formedness told so that a person can mend it.
//!
//! The tree parser knows no limits (it is quadratic in the attributes of one element) and names one
//! position per error; here the open elements are known, so that both ends of a mistake are shown.

use quick_xml::{Reader, errors::IllFormedError, errors::SyntaxError, events::Event};
use vmdisk_source::Span;

use crate::encoding::{MAX_BYTES, check_declared, too_large};
use crate::tag::{TagAttribute, TagError, TagFault, TagScanner};
use crate::{ReadFailure, ReadFailureKind};

/// How deep elements may nest; libxml2's own limit.
pub const MAX_DEPTH: usize = 256;
/// How many attributes one element may have.
pub const MAX_ATTRIBUTES: usize = 256;
/// How many name space prefixes may be declared at one place.
pub const MAX_PREFIXES: usize = 128;

/// A prefix that is used and not declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndeclaredPrefix {
    /// The name that carries it.
    pub(crate) name: Span,
    /// True if it is the name of an attribute.
    pub(crate) is_attribute: bool,
    /// True if the enclosing element has the same undeclared prefix, and the report with it.
    pub(crate) is_inner: bool,
}

/// What the guard learned on its way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guarded {
    /// Prefixes that nobody declared.
    pub(crate) undeclared: Vec<UndeclaredPrefix>,
    /// Offsets of the colons of those names, in start and end tags.
    pub(crate) colons: Vec<usize>,
    /// A default name space and its declaration, if one is declared on the root element.
    pub(crate) default_namespace: Option<TagAttribute>,
}

/// An element that is not closed yet.
struct Open<'a> {
    name: &'a str,
    tag: Span,
    /// Number of prefixes in scope outside it.
    prefixes: usize,
    /// Its own prefix, if undeclared.
    undeclared: Option<&'a str>,
}

struct Guard<'a> {
    text: &'a str,
    open: Vec<Open<'a>>,
    prefixes: Vec<&'a str>,
    root_end: Option<Span>,
    /// Attributes of the tag at hand; one list for all tags, of which a domain has thousands.
    attributes: Vec<TagAttribute>,
    found: Guarded,
}

/// So few attributes are compared each with each faster than they are sorted.
const FEW_ATTRIBUTES: usize = 12;

/// Checks limits and well-formedness.
///
/// # Errors
/// At the first fault.
pub(crate) fn guard(text: &str) -> Result<Guarded, ReadFailure> {
    if text.len() > MAX_BYTES {
        return Err(too_large(text.len()));
    }
    check_declared(text)?;
    let base = if text.starts_with('\u{feff}') { 3 } else { 0 };
    if text[base..].starts_with('\u{feff}') {
        let span = Span::new(base, base + 3);
        return Err(ReadFailure::malformed(span, "a second byte order mark"));
    }
    let mut guard = Guard {
        text,
        open: Vec::new(),
        prefixes: Vec::new(),
        root_end: None,
        attributes: Vec::new(),
        found: Guarded::default(),
    };
    let mut reader = Reader::from_str(&text[base..]);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.check_comments = true;
    loop {
        let start = base + offset(reader.buffer_position());
        let event = reader.read_event();
        let end = base + offset(reader.buffer_position());
        let span = Span::new(start, end);
        match event {
            Ok(Event::Start(_)) => guard.start_tag(span, false)?,
            Ok(Event::Empty(_)) => guard.start_tag(span, true)?,
            Ok(Event::End(_)) => guard.end_tag(span)?,
            Ok(Event::Text(_)) => guard.text(span)?,
            Ok(Event::CData(_)) => guard.no_markup_outside(span, "a CDATA section")?,
            Ok(Event::GeneralRef(_)) => {
                guard.no_markup_outside(span, "text")?;
                guard.references(Span::new(span.start, span.end))?;
            }
            Ok(Event::DocType(_)) => {
                return Err(ReadFailure::new(
                    ReadFailureKind::DocumentType,
                    span,
                    "a document type declaration is not read, for the entities it may define",
                )
                .help("delete it: libvirt's XML needs none"));
            }
            Ok(Event::Decl(declaration)) => {
                if start != base {
                    return Err(ReadFailure::malformed(
                        span,
                        "the XML declaration must be the first thing in the file",
                    )
                    .help("delete what stands before it, or the declaration"));
                }
                let version = declaration.version().unwrap_or_default();
                if !version.starts_with("1.") {
                    return Err(ReadFailure::malformed(
                        span,
                        format!("unsupported XML version `{version}`, expected `1.0`"),
                    ));
                }
            }
            Ok(Event::Comment(_) | Event::PI(_)) => {}
            Ok(Event::Eof) => break,
            Err(error) => {
                let at = base + offset(reader.error_position());
                return Err(guard.syntax(&error, at));
            }
        }
    }
    guard.finish()
}

/// Offsets fit: the text is at most [`MAX_BYTES`] long.
fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

impl<'a> Guard<'a> {
    fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    fn start_tag(&mut self, span: Span, is_empty: bool) -> Result<(), ReadFailure> {
        let mut scanner = TagScanner::new(self.text, span.start);
        let name = scanner.name;
        check_name(self.slice(name), name)?;
        if let Some(root) = self.root_end {
            let help = match self.slice(name) {
                "disk" => {
                    "wrap several disks in `<devices>…</devices>`, or give each a file of its own"
                }
                _ => "give each a file of its own",
            };
            return Err(ReadFailure::malformed(
                span,
                format!("a second root element, `<{}>`", self.slice(name)),
            )
            .related(root, "the first root element ends here")
            .help(help));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(ReadFailure::new(
                ReadFailureKind::TooLarge,
                span,
                format!("elements are nested more than {MAX_DEPTH} deep"),
            ));
        }
        let outer = self.prefixes.len();
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.clear();
        loop {
            match scanner.next_attribute() {
                Ok(Some(attribute)) => attributes.push(attribute),
                Ok(None) => break,
                Err(error) => return Err(self.tag_failure(error, name)),
            }
            if attributes.len() > MAX_ATTRIBUTES {
                return Err(ReadFailure::new(
                    ReadFailureKind::TooLarge,
                    name,
                    format!(
                        "`<{}>` has more than {MAX_ATTRIBUTES} attributes",
                        self.slice(name)
                    ),
                ));
            }
        }
        self.check_attributes(&attributes, name)?;
        let undeclared = self.check_prefix(name, false);
        for attribute in &attributes {
            self.check_prefix(attribute.name, true);
        }
        self.attributes = attributes;
        let end = scanner.end().map_or(span.end, |end| end.end);
        let tag = Span::new(span.start, end);
        if is_empty {
            self.prefixes.truncate(outer);
            if self.open.is_empty() {
                self.root_end = Some(tag);
            }
        } else {
            self.open.push(Open {
                name: self.slice(name),
                tag,
                prefixes: outer,
                undeclared,
            });
        }
        Ok(())
    }

    /// Duplicates, references and name space declarations.
    fn check_attributes(
        &mut self,
        attributes: &[TagAttribute],
        element: Span,
    ) -> Result<(), ReadFailure> {
        if let Some((first, second)) = self.written_twice(attributes) {
            return Err(ReadFailure::malformed(
                second,
                format!(
                    "attribute `{}` of `<{}>` is written twice",
                    self.slice(first),
                    self.slice(element)
                ),
            )
            .related(first, "first written here"));
        }
        for attribute in attributes {
            let name = self.slice(attribute.name);
            check_name(name, attribute.name)?;
            self.references(attribute.value)?;
            if let Some(prefix) = name.strip_prefix("xmlns:") {
                self.prefixes.push(prefix);
            } else if name == "xmlns" && self.open.is_empty() && !attribute.value.is_empty() {
                self.found.default_namespace = Some(*attribute);
            }
        }
        if self.prefixes.len() > MAX_PREFIXES {
            return Err(ReadFailure::new(
                ReadFailureKind::TooLarge,
                element,
                format!("more than {MAX_PREFIXES} name space prefixes are declared"),
            ));
        }
        Ok(())
    }

    /// The names of two attributes that are the same.
    fn written_twice(&self, attributes: &[TagAttribute]) -> Option<(Span, Span)> {
        if attributes.len() <= FEW_ATTRIBUTES {
            return attributes.iter().enumerate().find_map(|(nth, second)| {
                let name = self.slice(second.name);
                let first = attributes[..nth]
                    .iter()
                    .find(|first| self.slice(first.name) == name)?;
                Some((first.name, second.name))
            });
        }
        let mut names: Vec<(&str, Span)> = attributes
            .iter()
            .map(|attribute| (self.slice(attribute.name), attribute.name))
            .collect();
        names.sort_unstable_by_key(|(name, span)| (*name, span.start));
        names
            .windows(2)
            .find(|pair| pair[0].0 == pair[1].0)
            .map(|pair| (pair[0].1, pair[1].1))
    }

    /// Notes a prefix that is not declared, and returns it.
    fn check_prefix(&mut self, name: Span, is_attribute: bool) -> Option<&'a str> {
        let written = self.slice(name);
        // Nearly every name has no prefix.
        if !written.as_bytes().contains(&b':') {
            return None;
        }
        let (prefix, _) = written.split_once(':')?;
        if matches!(prefix, "xml" | "xmlns") || self.prefixes.contains(&prefix) {
            return None;
        }
        let is_inner = self
            .open
            .last()
            .is_some_and(|outer| outer.undeclared == Some(prefix));
        self.found.colons.push(name.start + prefix.len());
        self.found.undeclared.push(UndeclaredPrefix {
            name,
            is_attribute,
            is_inner,
        });
        Some(prefix)
    }

    fn end_tag(&mut self, span: Span) -> Result<(), ReadFailure> {
        let name = self
            .slice(Span::new(span.start + 2, span.end.saturating_sub(1)))
            .trim_end_matches([' ', '\t', '\r', '\n']);
        match self.open.pop() {
            Some(open) if open.name == name => {
                if open.undeclared.is_some()
                    && let Some((prefix, _)) = name.split_once(':')
                {
                    self.found.colons.push(span.start + 2 + prefix.len());
                }
                self.prefixes.truncate(open.prefixes);
                if self.open.is_empty() {
                    self.root_end = Some(span);
                }
                Ok(())
            }
            Some(open) => {
                let failure = ReadFailure::malformed(
                    span,
                    format!("expected `</{}>`, found `</{name}>`", open.name),
                )
                .related(open.tag, format!("`<{}>` opened here", open.name));
                Err(
                    match self.open.iter().rev().find(|open| open.name == name) {
                        // The end tag fits an element further out, so the inner one is not closed.
                        Some(_) => failure.help(format!(
                            "close `<{0}>` with `</{0}>` before this",
                            open.name
                        )),
                        None => failure,
                    },
                )
            }
            None => Err(ReadFailure::malformed(
                span,
                format!("`</{name}>` closes nothing: no element is open here"),
            )),
        }
    }

    /// Text: only white space may stand outside the root element.
    fn text(&self, span: Span) -> Result<(), ReadFailure> {
        let text = self.slice(span);
        if let Some(at) = text.find("]]>") {
            let span = Span::new(span.start + at, span.start + at + 3);
            return Err(
                ReadFailure::malformed(span, "`]]>` outside a CDATA section")
                    .help("write `]]&gt;`"),
            );
        }
        if !self.open.is_empty() {
            return Ok(());
        }
        let Some(at) = text.find(|c: char| !matches!(c, ' ' | '\t' | '\r' | '\n')) else {
            return Ok(());
        };
        let stray = text[at..].trim_end();
        let span = Span::new(span.start + at, span.start + at + stray.len());
        self.no_markup_outside(span, "text")
    }

    fn no_markup_outside(&self, span: Span, what: &str) -> Result<(), ReadFailure> {
        if !self.open.is_empty() {
            return Ok(());
        }
        Err(match self.root_end {
            Some(root) => ReadFailure::malformed(span, format!("{what} after the root element"))
                .related(root, "the root element ends here"),
            None => ReadFailure::malformed(span, format!("{what} before the root element")),
        })
    }

    /// Each `&` in `span` must begin one of the five named entities or a character reference.
    fn references(&self, span: Span) -> Result<(), ReadFailure> {
        let text = self.slice(span);
        // Nearly every value: searching short texts by bytes is faster than setting up a searcher.
        if !text.as_bytes().contains(&b'&') {
            return Ok(());
        }
        for (at, _) in text.match_indices('&') {
            let start = span.start + at;
            let rest = &text[at + 1..];
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || matches!(c, '#' | '_' | '-' | '.' | ':')))
                .unwrap_or(rest.len());
            let name = &rest[..end];
            if name.is_empty() || !rest[end..].starts_with(';') {
                return Err(stray_ampersand(start));
            }
            let span = Span::new(start, start + name.len() + 2);
            if let Some(number) = name.strip_prefix('#') {
                if character(number).is_none() {
                    return Err(ReadFailure::malformed(
                        span,
                        format!("`&{name};` is no character that XML allows"),
                    ));
                }
            } else if !matches!(name, "lt" | "gt" | "amp" | "quot" | "apos") {
                return Err(ReadFailure::malformed(
                    span,
                    format!("unknown entity `&{name};`"),
                )
                .help("write the character itself; XML names only `&lt;`, `&gt;`, `&amp;`, `&quot;` and `&apos;`"));
            }
        }
        Ok(())
    }

    fn tag_failure(&self, error: TagError, element: Span) -> ReadFailure {
        let element = self.slice(element);
        let found = self.slice(error.span);
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

    /// What the tokenizer refuses by itself.
    fn syntax(&self, error: &quick_xml::Error, at: usize) -> ReadFailure {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let rest = &self.text[at..];
        let line = Span::new(at, at + rest.find('\n').unwrap_or(rest.len()));
        match error {
            quick_xml::Error::IllFormed(IllFormedError::UnclosedReference) => stray_ampersand(at),
            quick_xml::Error::IllFormed(IllFormedError::DoubleHyphenInComment) => {
                ReadFailure::malformed(line, "`--` inside a comment")
                    .help("a comment may not contain two hyphens in a row")
            }
            quick_xml::Error::IllFormed(_) => {
                ReadFailure::malformed(line, format!("not well-formed: {error}"))
            }
            quick_xml::Error::Syntax(
                SyntaxError::UnclosedTag
                | SyntaxError::UnclosedSingleQuotedAttributeValue
                | SyntaxError::UnclosedDoubleQuotedAttributeValue,
            ) => {
                // The scanner knows where in the tag it went wrong.
                let mut scanner = TagScanner::new(self.text, at);
                let name = scanner.name;
                loop {
                    match scanner.next_attribute() {
                        Ok(Some(_)) => {}
                        Ok(None) => {
                            return ReadFailure::malformed(line, "this tag is never closed");
                        }
                        Err(error) => return self.tag_failure(error, name),
                    }
                }
            }
            quick_xml::Error::Syntax(syntax) => {
                let what = match syntax {
                    SyntaxError::UnclosedComment => "this comment is never closed",
                    SyntaxError::UnclosedCData => "this CDATA section is never closed",
                    SyntaxError::UnclosedPI | SyntaxError::UnclosedXmlDecl => {
                        "this processing instruction is never closed"
                    }
                    SyntaxError::UnclosedDoctype => "this document type is never closed",
                    SyntaxError::InvalidBangMarkup
                    | SyntaxError::UnclosedTag
                    | SyntaxError::UnclosedSingleQuotedAttributeValue
                    | SyntaxError::UnclosedDoubleQuotedAttributeValue => {
                        "`<!` begins nothing that XML knows"
                    }
                };
                ReadFailure::malformed(line, what)
            }
            quick_xml::Error::Io(_)
            | quick_xml::Error::InvalidAttr(_)
            | quick_xml::Error::Encoding(_)
            | quick_xml::Error::Escape(_)
            | quick_xml::Error::Namespace(_) => {
                ReadFailure::malformed(line, format!("not well-formed: {error}"))
            }
        }
    }

    fn finish(self) -> Result<Guarded, ReadFailure> {
        if let Some(open) = self.open.last() {
            return Err(ReadFailure::malformed(
                open.tag,
                format!("`<{}>` is never closed", open.name),
            )
            .related(
                Span::empty(self.text.len()),
                format!("the file ends here; expected `</{}>`", open.name),
            ));
        }
        if self.root_end.is_none() {
            return Err(ReadFailure::malformed(
                Span::empty(self.text.len()),
                "no element at all: this is not XML",
            ));
        }
        Ok(self.found)
    }
}

fn stray_ampersand(at: usize) -> ReadFailure {
    ReadFailure::malformed(Span::new(at, at + 1), "a stray `&`").help("write `&amp;`")
}

/// A name must be non-empty and have at most one colon, inside.
fn check_name(name: &str, span: Span) -> Result<(), ReadFailure> {
    // Nearly every name begins with a letter and has no prefix.
    if name.starts_with(|first: char| first.is_ascii_alphabetic())
        && !name.as_bytes().contains(&b':')
    {
        return Ok(());
    }
    let is_sound = |part: &str| {
        part.chars()
            .next()
            .is_some_and(|first| !first.is_ascii_digit() && !matches!(first, '-' | '.'))
    };
    let is_name = match name.split_once(':') {
        Some((prefix, local)) => is_sound(prefix) && is_sound(local) && !local.contains(':'),
        None => is_sound(name),
    };
    if is_name {
        return Ok(());
    }
    Err(ReadFailure::malformed(
        span,
        format!("`{name}` is not a name"),
    ))
}

/// The character that `&#number;` stands for, if XML 1.0 allows it.
fn character(number: &str) -> Option<char> {
    let code = match number.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code).filter(|c| crate::xml_char::is_xml_char(*c))
}
