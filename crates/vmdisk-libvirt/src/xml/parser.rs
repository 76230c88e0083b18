//! One loop over the tokens: it checks well-formedness and limits, and builds the tree.
//!
//! The open elements are known, so both ends of a mistake can be shown.

use quick_xml::{Reader, events::Event};
use vmdisk_source::Span;

use super::character::find_illegal;
use super::decode::attribute_value;
use super::fault::{check_references, in_tag, in_token, rest_of_line};
use super::name::{check_qualified, is_name};
use super::namespace::Prefixes;
use super::tag::{TagAttribute, TagError, TagFault, TagScanner};
use super::tree::{
    Arenas, AttributeData, CommentData, ElementData, Index, NONE, Piece, index, offset,
};
use crate::encoding::{MAX_BYTES, check_declared, too_large};
use crate::{ReadFailure, ReadFailureKind};

/// The maximum depth of elements. libxml2 has the same limit (`xmlParserMaxDepth` of parser.c), and none for the attributes
/// of an element or for prefixes; libvirt does not lift it (`virXMLParseHelper` of virxml.c).
pub const MAX_DEPTH: usize = 256;

/// For so few attributes pairwise comparison is faster than sorting.
const FEW_ATTRIBUTES: usize = 12;

/// An element that is not closed yet.
struct Open<'t> {
    id: Index,
    last_child: Index,
    last_piece: Index,
    /// Number of prefixes declared outside it.
    prefixes: usize,
    /// Its own prefix, if undeclared.
    undeclared: Option<&'t str>,
}

struct Parser<'t> {
    text: &'t str,
    tree: Arenas,
    open: Vec<Open<'t>>,
    prefixes: Prefixes<'t>,
    root_end: Option<Span>,
}

/// Builds the tree of a text, without the text.
///
/// # Errors
/// Fails at the first fault, and if the text exceeds a limit.
pub(crate) fn parse(text: &str) -> Result<Arenas, ReadFailure> {
    if text.len() > MAX_BYTES {
        return Err(too_large(text.len()));
    }
    check_declared(text)?;
    let base = if text.starts_with('\u{feff}') { 3 } else { 0 };
    if text[base..].starts_with('\u{feff}') {
        let span = Span::new(base, base + 3);
        return Err(ReadFailure::malformed(span, "a second byte order mark"));
    }
    let mut parser = Parser::new(text);
    let mut start = base;
    loop {
        let mut rest = text.as_bytes()[start..].iter();
        let blanks = rest.position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
        let Some(blanks) = blanks else {
            break;
        };
        let begin = start + blanks;
        let rest = &text.as_bytes()[begin..];
        if !matches!(rest, [b'<' | b'&', ..]) {
            // White space before characters is a part of them.
            let end = rest.iter().position(|byte| matches!(byte, b'<' | b'&'));
            let span = Span::new(start, end.map_or(text.len(), |end| begin + end));
            parser.characters(span)?;
            start = span.end;
            continue;
        }
        if begin > start {
            parser.append(Span::new(start, begin));
        }
        start = match rest {
            [b'&', ..] | [_, b'!' | b'?', ..] => parser.other_token(begin, begin == base)?,
            [_, b'/', ..] => parser.end_tag(begin)?,
            _ => parser.start_tag(begin).map_err(|failure| {
                // A tag that never ends comes first.
                token(text, begin).err().unwrap_or(failure)
            })?,
        };
    }
    parser.finish()
}

/// A token and its end. The tags of a document are most of it, and are scanned once, without the tokenizer.
///
/// # Errors
/// The fault that the tokenizer finds in it.
fn token(text: &str, start: usize) -> Result<(Event<'_>, usize), ReadFailure> {
    let mut reader = Reader::from_str(&text[start..]);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.trim_text_start = true;
    match reader.read_event() {
        Ok(event) => Ok((event, start + position(reader.buffer_position()))),
        Err(error) => {
            let at = start + position(reader.error_position());
            Err(in_token(text, &error, at))
        }
    }
}

/// Offsets fit: the text is at most [`MAX_BYTES`] long.
fn position(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

fn document_type(span: Span) -> ReadFailure {
    ReadFailure::new(
        ReadFailureKind::DocumentType,
        span,
        "document type declarations are refused, because they can define entities",
    )
    .help("delete it: libvirt does not need one")
}

fn not_a_name(name: &str, span: Span) -> ReadFailure {
    ReadFailure::malformed(span, format!("`{name}` is not a name"))
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        Parser {
            text,
            tree: Arenas::new(text),
            open: Vec::new(),
            prefixes: Prefixes::default(),
            root_end: None,
        }
    }

    fn slice(&self, span: Span) -> &'t str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// A reference, a comment, or what else has no name; returns its end.
    fn other_token(&mut self, start: usize, is_first: bool) -> Result<usize, ReadFailure> {
        let (event, end) = token(self.text, start)?;
        let span = Span::new(start, end);
        match event {
            Event::CData(_) => self.piece(span, "a CDATA section")?,
            Event::GeneralRef(_) => {
                self.piece(span, "text")?;
                check_references(self.text, span)?;
            }
            Event::Comment(_) => self.comment(span)?,
            Event::PI(_) => self.processing_instruction(span)?,
            Event::Decl(_) => self.declaration(span, is_first)?,
            Event::DocType(_) => return Err(document_type(span)),
            // They begin with another character.
            Event::Start(_) | Event::Empty(_) | Event::End(_) | Event::Text(_) | Event::Eof => {}
        }
        Ok(end)
    }

    /// Reads a start tag; returns its end.
    fn start_tag(&mut self, start: usize) -> Result<usize, ReadFailure> {
        let mut scanner = TagScanner::new(self.text, start);
        let name_span = scanner.name;
        let mut is_prefixed = false;
        if !scanner.is_plain_name {
            let name = self.slice(name_span);
            let colon = check_qualified(name).map_err(|_| not_a_name(name, name_span))?;
            is_prefixed = colon.is_some();
        }
        self.check_place(name_span, start)?;
        let first = self.tree.attributes.len();
        let outer_prefixes = self.prefixes.len();
        let has_prefixes = self.attributes(&mut scanner)?;
        let end = scanner.end().expect("all attributes are read");
        let undeclared = if is_prefixed || has_prefixes {
            self.check_prefixes(name_span, first)?
        } else {
            None
        };
        let id = index(self.tree.elements.len());
        let tag_end = index(end.end);
        let last = index(self.tree.attributes.len());
        self.tree.elements.push(ElementData {
            start: index(start),
            name_end: index(name_span.end),
            attributes_end: index(end.attributes_end),
            tag_end,
            end: tag_end,
            first_attribute: index(first),
            last_attribute: last,
            parent: self.open.last().map_or(NONE, |open| open.id),
            first_child: NONE,
            next_sibling: NONE,
            first_piece: NONE,
        });
        if let Some(parent) = self.open.last_mut() {
            match parent.last_child {
                NONE => self.tree.elements[offset(parent.id)].first_child = id,
                last => self.tree.elements[offset(last)].next_sibling = id,
            }
            parent.last_child = id;
        }
        if end.is_empty_element {
            self.prefixes.truncate(outer_prefixes);
            if self.open.is_empty() {
                self.root_end = Some(Span::new(start, end.end));
            }
        } else {
            self.open.push(Open {
                id,
                last_child: NONE,
                last_piece: NONE,
                prefixes: outer_prefixes,
                undeclared,
            });
        }
        Ok(end.end)
    }

    /// An element must be inside the root element, and not nested too deeply.
    fn check_place(&self, name: Span, start: usize) -> Result<(), ReadFailure> {
        let tag = || Ok(Span::new(start, token(self.text, start)?.1));
        if let Some(root) = self.root_end {
            let name = self.slice(name);
            let help = match name {
                "disk" => {
                    "wrap several disks in `<devices>…</devices>`, or put each in a separate file"
                }
                _ => "put each in a separate file",
            };
            let message = format!("a second root element, `<{name}>`");
            return Err(ReadFailure::malformed(tag()?, message)
                .related(root, "the first root element ends here")
                .help(help));
        }
        if self.open.len() == MAX_DEPTH {
            let message = format!("elements are nested more than {MAX_DEPTH} deep");
            return Err(ReadFailure::new(ReadFailureKind::TooLarge, tag()?, message));
        }
        Ok(())
    }

    /// Reads the attributes of a start tag; true if one of their names has a prefix or is `xmlns`.
    fn attributes(&mut self, scanner: &mut TagScanner<'t>) -> Result<bool, ReadFailure> {
        let element = scanner.name;
        let first = self.tree.attributes.len();
        let fault = |error| in_tag(self.text, error, element);
        let (mut are_plain, mut has_prefixes) = (true, false);
        while let Some(attribute) = scanner.next_attribute().map_err(fault)? {
            let TagAttribute {
                name,
                value,
                is_plain_name,
                is_literal,
            } = attribute;
            let written = || &self.text[value.start..value.end];
            let data = AttributeData {
                value: (!is_literal).then(|| Box::new(attribute_value(written()).into())),
                name_start: index(name.start),
                name_end: index(name.end),
                value_start: index(value.start),
                value_end: index(value.end),
            };
            are_plain &= is_plain_name && is_literal;
            has_prefixes |= data.is_named("xmlns", self.text);
            self.tree.attributes.push(data);
        }
        let attributes = &self.tree.attributes[first..];
        if let Some((one, other)) = written_twice(self.text, attributes) {
            return Err(attribute_repeated(
                self.text,
                self.slice(element),
                one,
                other,
            ));
        }
        if are_plain {
            return Ok(has_prefixes);
        }
        for attribute in attributes {
            let name = attribute.name(self.text);
            let colon =
                check_qualified(name).map_err(|_| not_a_name(name, attribute.name_span()))?;
            // A value without special characters has no references.
            if attribute.value.is_some() {
                let value = Span::new(offset(attribute.value_start), offset(attribute.value_end));
                check_references(self.text, value)?;
            }
            has_prefixes |= colon.is_some();
        }
        Ok(has_prefixes)
    }

    /// Declares the prefixes of an element whose attributes start at `first`, and resolves those of its names.
    fn check_prefixes(&mut self, name: Span, first: usize) -> Result<Option<&'t str>, ReadFailure> {
        let element = self.slice(name);
        if element.starts_with("xmlns:") {
            return Err(ReadFailure::malformed(
                name,
                "an element cannot have the prefix `xmlns`",
            ));
        }
        for (nth, attribute) in (first..).zip(&self.tree.attributes[first..]) {
            self.prefixes.declare(self.text, index(nth), attribute)?;
        }
        let outer = self.open.last().and_then(|open| open.undeclared);
        let undeclared = self
            .prefixes
            .check(&mut self.tree, (element, name), false, outer);
        for nth in first..self.tree.attributes.len() {
            let attribute = &self.tree.attributes[nth];
            let name = (attribute.name(self.text), attribute.name_span());
            self.prefixes.check(&mut self.tree, name, true, outer);
        }
        let attributes = &self.tree.attributes[first..];
        match self.prefixes.same_name(self.tree.of(self.text), attributes) {
            Some((one, other)) => Err(attribute_repeated(self.text, element, one, other)),
            None => Ok(undeclared),
        }
    }

    /// Reads an end tag; returns its end.
    fn end_tag(&mut self, start: usize) -> Result<usize, ReadFailure> {
        let rest = &self.text[start + "</".len()..];
        let trimmed = |name: &'t str| name.trim_end_matches([' ', '\t', '\r', '\n']);
        let length = rest.bytes().position(|byte| byte == b'>');
        let written = &rest[..length.unwrap_or_default()];
        let open = self.open.pop();
        if let (Some(open), Some(length)) = (&open, length)
            && [written, trimmed(written)].contains(&self.name_of(open))
        {
            let end = start + "</>".len() + length;
            self.tree.elements[offset(open.id)].end = index(end);
            self.prefixes.truncate(open.prefixes);
            if self.open.is_empty() {
                self.root_end = Some(Span::new(start, end));
            }
            return Ok(end);
        }
        let span = Span::new(start, token(self.text, start)?.1);
        let name = trimmed(self.slice(Span::new(start + "</".len(), span.end - 1)));
        Err(match open {
            Some(open) => self.mismatched(&open, name, span),
            None => {
                let message = format!("`</{name}>` closes nothing: no element is open here");
                ReadFailure::malformed(span, message)
            }
        })
    }

    fn mismatched(&self, open: &Open<'t>, found: &str, span: Span) -> ReadFailure {
        let expected = self.name_of(open);
        let message = format!("expected `</{expected}>`, found `</{found}>`");
        let failure = ReadFailure::malformed(span, message)
            .related(self.tag_of(open), format!("`<{expected}>` opened here"));
        let mut outer = self.open.iter();
        match outer.any(|open| self.name_of(open) == found) {
            // The end tag matches an outer element, so the inner one is not closed.
            true => failure.help(format!(
                "close `<{expected}>` with `</{expected}>` before this"
            )),
            false => failure,
        }
    }

    fn name_of(&self, open: &Open<'t>) -> &'t str {
        self.tree.elements[offset(open.id)].name(self.text)
    }

    fn tag_of(&self, open: &Open<'t>) -> Span {
        let element = &self.tree.elements[offset(open.id)];
        Span::new(offset(element.start), offset(element.tag_end))
    }

    /// Characters: outside the root element only white space is allowed.
    fn characters(&mut self, span: Span) -> Result<(), ReadFailure> {
        let text = self.slice(span);
        // For short texts a byte search is faster than setting up a searcher.
        if text.as_bytes().contains(&b'>')
            && let Some(at) = text.find("]]>")
        {
            let span = Span::new(span.start + at, span.start + at + 3);
            return Err(
                ReadFailure::malformed(span, "`]]>` outside a CDATA section")
                    .help("write `]]&gt;`"),
            );
        }
        if !self.open.is_empty() {
            self.append(span);
            return Ok(());
        }
        let Some(at) = text.find(|c: char| !matches!(c, ' ' | '\t' | '\r' | '\n')) else {
            return Ok(());
        };
        let stray = text[at..].trim_end();
        let start = span.start + at;
        self.piece(Span::new(start, start + stray.len()), "text")
    }

    /// A piece of the text of the innermost element.
    fn piece(&mut self, span: Span, what: &str) -> Result<(), ReadFailure> {
        if !self.open.is_empty() {
            self.append(span);
            return Ok(());
        }
        Err(match self.root_end {
            Some(root) => ReadFailure::malformed(span, format!("{what} after the root element"))
                .related(root, "the root element ends here"),
            None => ReadFailure::malformed(span, format!("{what} before the root element")),
        })
    }

    /// Appends to the text of the innermost element. White space outside the root element does not count as text.
    fn append(&mut self, span: Span) {
        let Some(open) = self.open.last_mut() else {
            return;
        };
        let nth = index(self.tree.pieces.len());
        self.tree.pieces.push(Piece {
            start: index(span.start),
            end: index(span.end),
            next: NONE,
        });
        match open.last_piece {
            NONE => self.tree.elements[offset(open.id)].first_piece = nth,
            last => self.tree.pieces[offset(last)].next = nth,
        }
        open.last_piece = nth;
    }

    fn comment(&mut self, span: Span) -> Result<(), ReadFailure> {
        // Includes the first hyphen of the end, because a comment cannot end in `--->`.
        let body = Span::new(span.start + "<!--".len(), span.end - "->".len());
        if let Some(at) = self.slice(body).find("--") {
            let place = rest_of_line(self.text, body.start + at);
            return Err(ReadFailure::malformed(place, "`--` inside a comment")
                .help("a comment may not contain two hyphens in a row"));
        }
        let parent = self.open.last();
        self.tree.comments.push(CommentData {
            start: index(span.start),
            end: index(span.end),
            parent: parent.map_or(NONE, |open| open.id),
            previous: parent.map_or(NONE, |open| open.last_child),
        });
        Ok(())
    }

    fn processing_instruction(&self, span: Span) -> Result<(), ReadFailure> {
        let start = span.start + "<?".len();
        let body = self.slice(Span::new(start, span.end - "?>".len()));
        let end = body.find([' ', '\t', '\r', '\n']).unwrap_or(body.len());
        let target = &body[..end];
        if is_name(target) {
            return Ok(());
        }
        let message = format!("`{target}` is not the name of a processing instruction");
        Err(ReadFailure::malformed(
            Span::new(start, start + end),
            message,
        ))
    }

    /// The XML declaration: a version, optionally an encoding and `standalone`.
    fn declaration(&self, span: Span, is_first: bool) -> Result<(), ReadFailure> {
        if !is_first {
            let message = "the XML declaration must be the first thing in the file";
            return Err(ReadFailure::malformed(span, message)
                .help("delete the text before it, or the declaration"));
        }
        // The scanner sees it as a start tag that is never closed.
        let mut scanner = TagScanner::new(&self.text[..span.end - "?>".len()], span.start);
        let mut version = "";
        let mut allowed: &[&str] = &["version", "encoding", "standalone"];
        loop {
            let attribute = match scanner.next_attribute() {
                Ok(Some(attribute)) => attribute,
                Ok(None) => {
                    let message = "`>` inside an XML declaration";
                    return Err(ReadFailure::malformed(span, message));
                }
                Err(TagError {
                    fault: TagFault::Unclosed,
                    ..
                }) => break,
                Err(error) => return Err(in_tag(self.text, error, scanner.name)),
            };
            let name = self.slice(attribute.name);
            if name == "version" {
                version = self.slice(attribute.value);
            }
            let Some(nth) = allowed.iter().position(|known| *known == name) else {
                let message = format!("`{name}` is out of place in an XML declaration");
                return Err(ReadFailure::malformed(attribute.name, message)
                    .help("write `<?xml version='1.0' encoding='UTF-8'?>`"));
            };
            allowed = &allowed[nth + 1..];
        }
        if version.starts_with("1.") {
            return Ok(());
        }
        let message = format!("unsupported XML version `{version}`, expected `1.0`");
        Err(ReadFailure::malformed(span, message))
    }

    fn finish(self) -> Result<Arenas, ReadFailure> {
        let end = Span::empty(self.text.len());
        if let Some(open) = self.open.last() {
            let name = self.name_of(open);
            let failure =
                ReadFailure::malformed(self.tag_of(open), format!("`<{name}>` is never closed"));
            return Err(failure.related(end, format!("the file ends here; expected `</{name}>`")));
        }
        if self.root_end.is_none() {
            return Err(ReadFailure::malformed(
                end,
                "no element at all: this is not XML",
            ));
        }
        if let Some((at, c)) = find_illegal(self.text) {
            let message = format!("the character U+{:04X} is not allowed in XML", u32::from(c));
            return Err(ReadFailure::malformed(
                Span::new(at, at + c.len_utf8()),
                message,
            ));
        }
        Ok(self.tree)
    }
}

/// Reports two equal attributes.
fn attribute_repeated(
    text: &str,
    element: &str,
    first: &AttributeData,
    second: &AttributeData,
) -> ReadFailure {
    let (one, other) = (first.name(text), second.name(text));
    let message = match one == other {
        true => format!("attribute `{one}` of `<{element}>` is written twice"),
        false => format!(
            "attributes `{one}` and `{other}` of `<{element}>` are the same: their prefixes are bound to one namespace"
        ),
    };
    ReadFailure::malformed(second.name_span(), message)
        .related(first.name_span(), "first written here")
}

/// The first two attributes with the same name.
fn written_twice<'a>(
    text: &str,
    attributes: &'a [AttributeData],
) -> Option<(&'a AttributeData, &'a AttributeData)> {
    if attributes.len() <= FEW_ATTRIBUTES {
        return attributes.iter().enumerate().find_map(|(nth, second)| {
            let name = second.name(text);
            let before = &attributes[..nth];
            let first = before.iter().find(|first| first.is_named(name, text))?;
            Some((first, second))
        });
    }
    let mut sorted: Vec<&AttributeData> = attributes.iter().collect();
    sorted.sort_by_key(|attribute| attribute.name(text));
    let pairs = sorted.windows(2);
    pairs
        .filter(|pair| pair[0].name(text) == pair[1].name(text))
        .map(|pair| (pair[0], pair[1]))
        .min_by_key(|(_, second)| second.name_start)
}
