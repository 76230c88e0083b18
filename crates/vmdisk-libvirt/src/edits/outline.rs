//! One element of a text and its direct children, found without a tree.

use quick_xml::{Reader, events::Event};
use vmdisk_source::Span;

use crate::tag::{Tag, TagScanner, scan_tag};

/// One element and its direct children.
pub(super) struct Outline<'t> {
    pub(super) name: &'t str,
    pub(super) span: Span,
    pub(super) tag: Tag,
    pub(super) children: Vec<(&'t str, Span)>,
}

/// Outlines the element at `span`, which is one of a well-formed text.
pub(super) fn outline(text: &str, span: Span) -> Option<Outline<'_>> {
    let tag = scan_tag(text, span.start)?;
    let name = TagScanner::new(text, span.start).name.slice(text)?;
    let mut children = Vec::new();
    if !tag.end.is_empty_element {
        let mut reader = Reader::from_str(text.get(tag.end.end..span.end)?);
        let config = reader.config_mut();
        // A prefix or an end tag beyond the element is of no concern here.
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        let mut depth = 0_usize;
        let mut start = 0;
        loop {
            let before = tag.end.end + usize::try_from(reader.buffer_position()).ok()?;
            let event = reader.read_event().ok()?;
            let after = tag.end.end + usize::try_from(reader.buffer_position()).ok()?;
            match event {
                Event::Start(_) => {
                    if depth == 0 {
                        start = before;
                    }
                    depth += 1;
                }
                Event::Empty(_) if depth == 0 => children.push(child(text, before, after)?),
                Event::End(_) if depth == 0 => break,
                Event::End(_) => {
                    depth -= 1;
                    if depth == 0 {
                        children.push(child(text, start, after)?);
                    }
                }
                Event::Eof => break,
                Event::Empty(_)
                | Event::Text(_)
                | Event::CData(_)
                | Event::Comment(_)
                | Event::Decl(_)
                | Event::PI(_)
                | Event::DocType(_)
                | Event::GeneralRef(_) => {}
            }
        }
    }
    Some(Outline {
        name,
        span,
        tag,
        children,
    })
}

fn child(text: &str, start: usize, end: usize) -> Option<(&str, Span)> {
    let name = TagScanner::new(text, start).name.slice(text)?;
    Some((name, Span::new(start, end)))
}

impl Outline<'_> {
    /// The first child with this name.
    pub(super) fn child(&self, name: &str) -> Option<Span> {
        self.children
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, span)| *span)
    }

    /// The quote that the start tag uses, single if it uses none.
    pub(super) fn quote(&self, text: &str) -> char {
        let is_double = self
            .tag
            .attributes
            .last()
            .and_then(|last| text[..last.whole.end].chars().next_back())
            == Some('"');
        if is_double { '"' } else { '\'' }
    }
}
