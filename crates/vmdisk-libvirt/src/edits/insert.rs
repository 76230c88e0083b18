//! Inserting elements among their siblings, with their indentation.

use std::collections::BTreeMap;

use vmdisk_source::{Edit, Span};

use super::outline::{Outline, Outlines};
use super::slot::{Leaf, Step};
use crate::vocabulary::ElementSpec;
use crate::xml::character::{escape_attribute, escape_text};

/// An element to insert.
enum Inserted {
    /// One of single values.
    Built(New),
    /// A whole one, in lines.
    Written(String),
}

impl Inserted {
    fn write(&self, style: &Style<'_>, out: &mut String) {
        match self {
            Inserted::Built(new) => {
                style.line(0, out);
                new.write(style, 0, out);
            }
            Inserted::Written(xml) => {
                for line in xml.lines() {
                    style.line(0, out);
                    let is_one_line = style.separator.is_empty();
                    out.push_str(if is_one_line { line.trim() } else { line });
                }
            }
        }
    }
}

/// An element of single values.
struct New {
    element: &'static ElementSpec,
    attributes: Vec<(&'static str, String)>,
    text: Option<String>,
    /// Keyed by their position in libvirt's order.
    children: BTreeMap<usize, New>,
}

impl New {
    fn of(element: &'static ElementSpec) -> Self {
        let mut attributes = Vec::new();
        // libvirt accepts a driver element without a name, but people write the name.
        if element.name == "driver" && element.attribute("name").is_some() {
            attributes.push(("name", "qemu".to_owned()));
        }
        // A size is inserted in bytes.
        if element.content.is_some() && element.attribute("unit").is_some() {
            attributes.push(("unit", "bytes".to_owned()));
        }
        New {
            element,
            attributes,
            text: None,
            children: BTreeMap::new(),
        }
    }

    fn write(&self, style: &Style<'_>, depth: usize, out: &mut String) {
        let New {
            element,
            attributes,
            text,
            children,
        } = self;
        out.push('<');
        out.push_str(element.name);
        for (name, value) in attributes {
            let value = escape_attribute(value);
            out.push_str(&format!(" {name}='{value}'"));
        }
        if text.is_none() && children.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        if let Some(text) = text {
            out.push_str(&escape_text(text));
        }
        for child in children.values() {
            style.line(depth + 1, out);
            child.write(style, depth + 1, out);
        }
        if !children.is_empty() {
            style.line(depth, out);
        }
        out.push_str(&format!("</{}>", element.name));
    }
}

/// The layout of the surrounding elements.
struct Style<'t> {
    /// The text before a child: a line end and its indentation, or nothing.
    separator: &'t str,
    /// One further level.
    unit: String,
}

impl Style<'_> {
    /// A new line, `depth` levels below a child.
    fn line(&self, depth: usize, out: &mut String) {
        if !self.separator.is_empty() {
            out.push_str(self.separator);
            out.push_str(&self.unit.repeat(depth));
        }
    }
}

/// The elements to insert, by the start of their parent.
#[derive(Default)]
pub(super) struct Insertions {
    by_parent: BTreeMap<usize, Parent>,
}

struct Parent {
    span: Span,
    /// Its table, which defines the order of its children.
    spec: &'static ElementSpec,
    new: BTreeMap<usize, Inserted>,
}

impl Insertions {
    /// Requests the elements of `steps`, none of which exists, inside `parent`.
    pub(super) fn add(&mut self, parent: &Outline<'_>, steps: &[Step], leaf: Leaf, value: &str) {
        let Some(first) = steps.first() else {
            return;
        };
        let into = self.parent(parent, first.parent);
        let inserted = into.new.entry(first.order);
        let mut new = match inserted.or_insert_with(|| Inserted::Built(New::of(first.element))) {
            Inserted::Built(new) => new,
            Inserted::Written(_) => return,
        };
        for step in &steps[1..] {
            let children = new.children.entry(step.order);
            new = children.or_insert_with(|| New::of(step.element));
        }
        match leaf {
            Leaf::Attribute(attribute) => {
                new.attributes.retain(|(name, _)| *name != attribute.name);
                new.attributes.push((attribute.name, value.to_owned()));
            }
            Leaf::Element if value.is_empty() => {}
            Leaf::Element => new.text = Some(value.to_owned()),
        }
    }

    /// Requests a whole element called `name`, which does not exist, inside `parent`, whose table is `spec`.
    pub(super) fn add_written(
        &mut self,
        parent: &Outline<'_>,
        spec: &'static ElementSpec,
        name: &str,
        xml: String,
    ) {
        let into = self.parent(parent, spec);
        let place = spec.child(name).map(|(place, _)| place);
        let place = place.unwrap_or(usize::MAX);
        into.new.insert(place, Inserted::Written(xml));
    }

    fn parent(&mut self, outline: &Outline<'_>, spec: &'static ElementSpec) -> &mut Parent {
        let parent = self.by_parent.entry(outline.span.start);
        parent.or_insert_with(|| Parent {
            span: outline.span,
            spec,
            new: BTreeMap::new(),
        })
    }

    /// Adds the edits for all requested elements.
    pub(super) fn write(self, text: &str, outlines: &Outlines, edits: &mut Vec<Edit>) {
        for parent in self.by_parent.into_values() {
            if let Some(outline) = outlines.outline(text, parent.span) {
                parent.write(text, &outline, edits);
            }
        }
    }
}

impl Parent {
    fn write(&self, text: &str, outline: &Outline<'_>, edits: &mut Vec<Edit>) {
        let own = match separator(text, self.span.start) {
            // The root element is at the start of a line too.
            "" if text[..self.span.start].trim().is_empty() => line_end(text),
            separator => separator,
        };
        if outline.children.is_empty() {
            return self.write_first(text, outline, own, edits);
        }
        // The first child that has a line to itself shows how children are laid out.
        let separator = outline
            .children
            .iter()
            .map(|(_, span)| separator(text, span.start))
            .find(|separator| !separator.is_empty())
            .unwrap_or_default();
        let unit = separator.strip_prefix(own).filter(|unit| !unit.is_empty());
        let style = Style {
            separator,
            unit: unit.unwrap_or("  ").to_owned(),
        };
        for (order, new) in &self.new {
            let before = outline.children.iter().rev().find(|(name, _)| {
                self.spec
                    .child(name)
                    .is_some_and(|(place, _)| place <= *order)
            });
            // After the start tag, not before the next sibling: a comment there belongs to that sibling.
            let at = before.map_or(outline.tag.end.end, |(_, span)| span.end);
            let mut inserted = String::new();
            new.write(&style, &mut inserted);
            edits.push(Edit::insert(behind_comments(text, at), inserted));
        }
    }

    /// Into an element without children.
    fn write_first(&self, text: &str, outline: &Outline<'_>, own: &str, edits: &mut Vec<Edit>) {
        let separator = if own.is_empty() {
            String::new()
        } else {
            format!("{own}  ")
        };
        let style = Style {
            separator: &separator,
            unit: "  ".to_owned(),
        };
        let mut inside = String::new();
        for new in self.new.values() {
            new.write(&style, &mut inside);
        }
        let end = outline.tag.end;
        if end.is_empty_element {
            let rest = Span::new(end.attributes_end, end.end);
            let name = outline.name;
            edits.push(Edit::replace(rest, format!(">{inside}{own}</{name}>")));
            return;
        }
        let at = behind_comments(text, end.end);
        if !ends_line(text, at) {
            inside.push_str(own);
        }
        edits.push(Edit::insert(at, inside));
    }
}

/// The white space between the last line end and `at`, with that line end; empty if there is other text, or at the
/// start of the text.
pub(super) fn separator(text: &str, at: usize) -> &str {
    let before = text[..at].trim_end_matches([' ', '\t']);
    match before.strip_suffix('\n') {
        Some(line) => {
            let start = line.strip_suffix('\r').unwrap_or(line).len();
            &text[start..at]
        }
        None => "",
    }
}

/// True if only white space follows on the line.
pub(super) fn ends_line(text: &str, at: usize) -> bool {
    let rest = text[at..].trim_start_matches([' ', '\t']);
    rest.starts_with(['\n', '\r'])
}

/// The line end that a text uses.
fn line_end(text: &str) -> &'static str {
    let line = text.find('\n').map(|at| &text[..at]);
    match line.is_some_and(|line| line.ends_with('\r')) {
        true => "\r\n",
        false => "\n",
    }
}

/// The position after the comments that follow `at` on the same line: they belong to the element before them.
pub(super) fn behind_comments(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let comment = rest.trim_start_matches([' ', '\t']);
        let Some(length) = comment
            .starts_with("<!--")
            .then(|| comment.find("-->"))
            .flatten()
        else {
            return at;
        };
        at += rest.len() - comment.len() + length + 3;
    }
}
