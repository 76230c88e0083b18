//! The pass over the text: limits, well-formedness told so that a person can mend it, and the tree.
//!
//! It is the only pass: what is not well-formed never gets a tree. The open elements are known at
//! every place, so that both ends of a mistake are shown.

use vmdisk_source::Span;

use crate::encoding::{MAX_BYTES, check_declared, too_large};
use crate::markup;
use crate::reference::{self, CDATA_END, CDATA_START};
use crate::tag::{TagAttribute, TagError, TagFault, TagScanner};
use crate::tree::{Leaf, OpenNode, Tree};
use crate::xml_char::find_no_xml_char;
use crate::{ReadFailure, ReadFailureKind, xml_name};

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
#[derive(Debug)]
pub(crate) struct Guarded<'t> {
    /// The text as a tree.
    pub(crate) tree: Tree<'t>,
    /// Prefixes that nobody declared.
    pub(crate) undeclared: Vec<UndeclaredPrefix>,
    /// A default name space and its declaration, if one is declared on the root element.
    pub(crate) default_namespace: Option<TagAttribute>,
}

/// An element that is not closed yet.
struct Open<'t> {
    name: &'t str,
    tag: Span,
    /// Number of prefixes in scope outside it.
    prefixes: usize,
    /// Its own prefix, if undeclared.
    undeclared: Option<&'t str>,
    node: OpenNode,
}

struct Guard<'t> {
    text: &'t str,
    document: OpenNode,
    open: Vec<Open<'t>>,
    prefixes: Vec<&'t str>,
    root_end: Option<Span>,
    found: Guarded<'t>,
}

/// Checks limits and well-formedness, and builds the tree.
///
/// # Errors
/// At the first fault.
pub(crate) fn guard(text: &str) -> Result<Guarded<'_>, ReadFailure> {
    if text.len() > MAX_BYTES {
        return Err(too_large(text.len()));
    }
    check_declared(text)?;
    let base = if text.starts_with('\u{feff}') { 3 } else { 0 };
    if text[base..].starts_with('\u{feff}') {
        let span = Span::new(base, base + 3);
        return Err(ReadFailure::malformed(span, "a second byte order mark"));
    }
    if let Some((at, c)) = find_no_xml_char(text) {
        return Err(ReadFailure::malformed(
            Span::new(at, at + c.len_utf8()),
            format!("U+{:04X} is no character that XML allows", u32::from(c)),
        ));
    }
    let mut guard = Guard {
        text,
        document: OpenNode::DOCUMENT,
        open: Vec::new(),
        prefixes: Vec::new(),
        root_end: None,
        found: Guarded {
            tree: Tree::new(text),
            undeclared: Vec::new(),
            default_namespace: None,
        },
    };
    let mut at = base;
    while let Some(byte) = text.as_bytes().get(at) {
        at = match byte {
            b'<' => guard.markup(at, base)?,
            _ => guard.characters(at)?,
        };
    }
    guard.finish()
}

impl<'t> Guard<'t> {
    fn slice(&self, span: Span) -> &'t str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The innermost element that is open, or the document.
    fn around(&mut self) -> &mut OpenNode {
        match self.open.last_mut() {
            Some(open) => &mut open.node,
            None => &mut self.document,
        }
    }

    fn leaf(&mut self, leaf: Leaf, span: Span) {
        let mut around = *self.around();
        self.found.tree.push_leaf(&mut around, leaf, span);
        *self.around() = around;
    }

    /// What begins with the `<` at `start`; returns where it ends.
    fn markup(&mut self, start: usize, base: usize) -> Result<usize, ReadFailure> {
        let text = self.text;
        let rest = &text[start..];
        match rest.as_bytes().get(1) {
            Some(b'/') => self.end_tag(start),
            Some(b'!') if rest.starts_with("<!--") => {
                let end = markup::comment_end(text, start)?;
                self.leaf(Leaf::Comment, Span::new(start, end));
                Ok(end)
            }
            Some(b'!') if rest.starts_with(CDATA_START) => {
                let Some(length) = rest.find(CDATA_END) else {
                    let line = markup::rest_of_line(text, start);
                    let message = "this CDATA section is never closed";
                    return Err(ReadFailure::malformed(line, message));
                };
                let span = Span::new(start, start + length + CDATA_END.len());
                self.no_markup_outside(span, "a CDATA section")?;
                self.leaf(Leaf::CData, span);
                Ok(span.end)
            }
            Some(b'!') => Err(markup::declaration_of_document_type(text, start)),
            Some(b'?') => markup::instruction_end(text, start, start == base),
            Some(_) | None => self.start_tag(start),
        }
    }

    fn start_tag(&mut self, start: usize) -> Result<usize, ReadFailure> {
        let mut scanner = TagScanner::new(self.text, start);
        let name = scanner.name;
        if name.is_empty() && scanner.is_at_end() {
            return Err(self.tag_failure(
                TagError {
                    fault: TagFault::Unclosed,
                    span: Span::empty(self.text.len()),
                },
                name,
            ));
        }
        let colon = check_name(self.slice(name), name)?;
        let first = self.found.tree.attribute_count();
        let end = loop {
            match scanner.next_attribute() {
                Ok(Some(attribute)) => self.found.tree.push_attribute(attribute),
                Ok(None) => break scanner.end(),
                Err(error) => return Err(self.tag_failure(error, name)),
            }
            if self.found.tree.attribute_count() - first > MAX_ATTRIBUTES {
                return Err(ReadFailure::new(
                    ReadFailureKind::TooLarge,
                    name,
                    format!(
                        "`<{}>` has more than {MAX_ATTRIBUTES} attributes",
                        self.slice(name)
                    ),
                ));
            }
        };
        let end = end.expect("a tag without a fault has an end");
        let tag = Span::new(start, end.end);
        if let Some(root) = self.root_end {
            return Err(ReadFailure::malformed(
                tag,
                format!("a second root element, `<{}>`", self.slice(name)),
            )
            .related(root, "the first root element ends here")
            .help("wrap several disks in `<devices>…</devices>`, or give each a file of its own"));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(ReadFailure::new(
                ReadFailureKind::TooLarge,
                tag,
                format!("elements are nested more than {MAX_DEPTH} deep"),
            ));
        }
        let outer = self.prefixes.len();
        self.check_attributes(first, name)?;
        let undeclared = colon.and_then(|colon| self.check_prefix(name, colon, false));
        let mut around = *self.around();
        let node = self.found.tree.push_element(&mut around, name, first, end);
        *self.around() = around;
        if end.is_empty_element {
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
                node,
            });
        }
        Ok(end.end)
    }

    /// Names, duplicates, references and name space declarations of the attributes from `first` on.
    fn check_attributes(&mut self, first: usize, element: Span) -> Result<(), ReadFailure> {
        self.check_twice(first, element)?;
        let is_root = self.open.is_empty();
        let mut has_prefix = false;
        for attribute in self.found.tree.attributes_from(first) {
            let name = self.text.get(attribute.name.start..attribute.name.end);
            let name = name.unwrap_or_default();
            has_prefix |= check_name(name, attribute.name)?.is_some();
            if !attribute.is_plain {
                reference::check(self.text, attribute.value)?;
            }
            if name == "xmlns" && is_root && !attribute.value.is_empty() {
                self.found.default_namespace = Some(*attribute);
            }
        }
        if has_prefix {
            self.check_prefixes(first, element)?;
        }
        Ok(())
    }

    /// No attribute may be written twice in one tag.
    fn check_twice(&self, first: usize, element: Span) -> Result<(), ReadFailure> {
        let attributes = self.found.tree.attributes_from(first);
        if attributes.len() < 2 {
            return Ok(());
        }
        let twice = |before: Span, again: Span| {
            Err(ReadFailure::malformed(
                again,
                format!(
                    "attribute `{}` of `<{}>` is written twice",
                    self.slice(again),
                    self.slice(element)
                ),
            )
            .related(before, "first written here"))
        };
        // Most elements have a handful of attributes, and comparing these needs no memory.
        if attributes.len() <= 8 {
            for (nth, again) in attributes.iter().enumerate().skip(1) {
                for before in &attributes[..nth] {
                    if before.name.len() == again.name.len()
                        && self.slice(before.name) == self.slice(again.name)
                    {
                        return twice(before.name, again.name);
                    }
                }
            }
            return Ok(());
        }
        let mut names: Vec<(&str, Span)> = attributes
            .iter()
            .map(|attribute| (self.slice(attribute.name), attribute.name))
            .collect();
        names.sort_unstable_by_key(|(name, span)| (*name, span.start));
        for pair in names.windows(2) {
            if pair[0].0 == pair[1].0 {
                return twice(pair[0].1, pair[1].1);
            }
        }
        Ok(())
    }

    /// Takes note of declarations, and then of prefixes that are not declared.
    fn check_prefixes(&mut self, first: usize, element: Span) -> Result<(), ReadFailure> {
        let names: Vec<(Span, usize)> = self
            .found
            .tree
            .attributes_from(first)
            .iter()
            .filter_map(|attribute| {
                let colon = self.slice(attribute.name).find(':')?;
                Some((attribute.name, colon))
            })
            .collect();
        for (name, _) in &names {
            if let Some(prefix) = self.slice(*name).strip_prefix("xmlns:") {
                self.prefixes.push(prefix);
            }
        }
        if self.prefixes.len() > MAX_PREFIXES {
            return Err(ReadFailure::new(
                ReadFailureKind::TooLarge,
                element,
                format!("more than {MAX_PREFIXES} name space prefixes are declared"),
            ));
        }
        for (name, colon) in names {
            self.check_prefix(name, colon, true);
        }
        Ok(())
    }

    /// Notes a prefix that is not declared, and returns it.
    fn check_prefix(&mut self, name: Span, colon: usize, is_attribute: bool) -> Option<&'t str> {
        let prefix = self.slice(Span::new(name.start, name.start + colon));
        if matches!(prefix, "xml" | "xmlns") || self.prefixes.contains(&prefix) {
            return None;
        }
        let is_inner = self
            .open
            .last()
            .is_some_and(|outer| outer.undeclared == Some(prefix));
        self.found.undeclared.push(UndeclaredPrefix {
            name,
            is_attribute,
            is_inner,
        });
        Some(prefix)
    }

    fn end_tag(&mut self, start: usize) -> Result<usize, ReadFailure> {
        let name_start = start + 2;
        let inside = &self.text.as_bytes()[name_start..];
        let length = match inside.iter().position(|byte| matches!(byte, b'>' | b'<')) {
            Some(length) if inside[length] == b'>' => length,
            Some(_) | None => {
                let line = markup::rest_of_line(self.text, start);
                return Err(ReadFailure::malformed(line, "this tag is never closed"));
            }
        };
        let span = Span::new(start, name_start + length + 1);
        let name = self
            .slice(Span::new(name_start, name_start + length))
            .trim_end_matches([' ', '\t', '\r', '\n']);
        match self.open.pop() {
            Some(open) if open.name == name => {
                self.prefixes.truncate(open.prefixes);
                self.found.tree.close(open.node, span.end);
                if self.open.is_empty() {
                    self.root_end = Some(span);
                }
                Ok(span.end)
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

    /// Text up to the next `<`; only white space may stand outside the root element.
    fn characters(&mut self, start: usize) -> Result<usize, ReadFailure> {
        let rest = &self.text.as_bytes()[start..];
        let mut has_reference = false;
        let mut has_bracket = false;
        let length = rest.iter().position(|byte| {
            has_reference |= *byte == b'&';
            has_bracket |= *byte == b']';
            *byte == b'<'
        });
        let span = Span::new(start, start + length.unwrap_or(rest.len()));
        let text = self.slice(span);
        if self.open.is_empty() {
            let Some(at) = text.find(|c: char| !matches!(c, ' ' | '\t' | '\r' | '\n')) else {
                return Ok(span.end);
            };
            let stray = text[at..].trim_end();
            let span = Span::new(start + at, start + at + stray.len());
            self.no_markup_outside(span, "text")?;
        }
        if has_bracket && let Some(at) = text.find(CDATA_END) {
            let span = Span::new(start + at, start + at + CDATA_END.len());
            return Err(
                ReadFailure::malformed(span, "`]]>` outside a CDATA section")
                    .help("write `]]&gt;`"),
            );
        }
        if has_reference {
            reference::check(self.text, span)?;
        }
        self.leaf(Leaf::Text, span);
        Ok(span.end)
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

    fn finish(self) -> Result<Guarded<'t>, ReadFailure> {
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

/// A name must be non-empty and have at most one colon, inside; returns where that is.
fn check_name(name: &str, span: Span) -> Result<Option<usize>, ReadFailure> {
    xml_name::colon(name)
        .map_err(|()| ReadFailure::malformed(span, format!("`{name}` is not a name")))
}
