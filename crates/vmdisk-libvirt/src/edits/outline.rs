//! One element of a text and its direct children, found without a tree.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use quick_xml::{Reader, events::Event};
use vmdisk_source::Span;

use crate::xml::tag::{Tag, TagScanner, scan_tag};

/// One element and its direct children.
pub(super) struct Outline<'t> {
    pub(super) name: &'t str,
    pub(super) span: Span,
    pub(super) tag: Tag,
    pub(super) children: Vec<(&'t str, Span)>,
}

/// The children of large elements, by the start of the element, so that thousands of changes to one guest do not each
/// search all of it.
#[derive(Debug, Default)]
pub(crate) struct Outlines(Mutex<BTreeMap<usize, Arc<[Child]>>>);

/// A name and the element that has it.
type Child = (Span, Span);

/// Small elements are faster to search than to look up, and a cache of them would use much memory.
const LARGE_BYTES: usize = 16 * 1024;

/// The cache of one document.
impl Clone for Outlines {
    fn clone(&self) -> Self {
        Outlines::default()
    }
}

impl Outlines {
    /// Outlines the element at `span`, which is one of a well-formed text.
    pub(super) fn outline<'t>(&self, text: &'t str, span: Span) -> Option<Outline<'t>> {
        let tag = scan_tag(text, span.start)?;
        let name = TagScanner::new(text, span.start).name.slice(text)?;
        let children = self.children(text, span, &tag)?;
        let named = |(name, span): &Child| Some((name.slice(text)?, *span));
        Some(Outline {
            name,
            span,
            tag,
            children: children.iter().map(named).collect::<Option<_>>()?,
        })
    }

    fn children(&self, text: &str, span: Span, tag: &Tag) -> Option<Arc<[Child]>> {
        if span.end - span.start < LARGE_BYTES {
            return children(text, span, tag).map(Arc::from);
        }
        // A panic elsewhere cannot leave the cache inconsistent.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&span.start) {
            return Some(Arc::clone(known));
        }
        let found: Arc<[Child]> = children(text, span, tag)?.into();
        known.insert(span.start, Arc::clone(&found));
        Some(found)
    }
}

fn children(text: &str, span: Span, tag: &Tag) -> Option<Vec<Child>> {
    let mut children = Vec::new();
    if tag.end.is_empty_element {
        return Some(children);
    }
    let mut reader = Reader::from_str(text.get(tag.end.end..span.end)?);
    let config = reader.config_mut();
    // A prefix or an end tag outside the element does not matter here.
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
            Event::Empty(_) if depth == 0 => children.push(child(text, before, after)),
            Event::End(_) if depth == 0 => break,
            Event::End(_) => {
                depth -= 1;
                if depth == 0 {
                    children.push(child(text, start, after));
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    Some(children)
}

fn child(text: &str, start: usize, end: usize) -> Child {
    (TagScanner::new(text, start).name, Span::new(start, end))
}

impl Outline<'_> {
    /// The first child with this name.
    pub(super) fn child(&self, name: &str) -> Option<Span> {
        self.children
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, span)| *span)
    }

    /// The quote that the start tag uses; single if it has none.
    pub(super) fn quote(&self, text: &str) -> char {
        let is_double = self
            .tag
            .attributes
            .last()
            .and_then(|last| text[..=last.value.end].chars().next_back())
            == Some('"');
        if is_double { '"' } else { '\'' }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_element_is_looked_through_once_and_found_the_same() {
        let text = format!("<a x='1'><b/>{}<c>1</c></a>", "<d><e/></d>".repeat(5_000));
        let whole = Span::new(0, text.len());
        let outlines = Outlines::default();
        let first = outlines.outline(&text, whole).unwrap();
        assert_eq!((first.name, first.children.len()), ("a", 5_002));
        let last = first.child("c").unwrap();
        assert_eq!(last.slice(&text), Some("<c>1</c>"));
        assert_eq!(outlines.0.lock().unwrap().len(), 1);
        let again = outlines.outline(&text, whole).unwrap();
        assert_eq!(again.children, first.children);
        // A small one inside it is not remembered.
        assert_eq!(outlines.outline(&text, last).unwrap().children, []);
        assert_eq!(outlines.0.lock().unwrap().len(), 1);
    }
}
