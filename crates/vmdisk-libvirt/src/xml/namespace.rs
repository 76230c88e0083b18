//! Prefixes: declarations, undeclared uses, and attributes with the same expanded name.

use std::collections::{BTreeMap, HashMap};

use vmdisk_source::Span;

use super::tree::{Arenas, AttributeData, Index, Tree, UndeclaredPrefix, offset};
use crate::ReadFailure;

const XML: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// The prefixes in scope at a position of the text.
#[derive(Default)]
pub(super) struct Prefixes<'t> {
    /// Each with the attribute that declares it.
    declared: Vec<(&'t str, Index)>,
    /// The declarations of each prefix, the innermost one last: libxml2 sets no limit to their number.
    of_prefix: HashMap<&'t str, Vec<Index>>,
}

impl<'t> Prefixes<'t> {
    /// Their number.
    pub(super) fn len(&self) -> usize {
        self.declared.len()
    }

    /// Drops the prefixes declared by an element that ends.
    pub(super) fn truncate(&mut self, len: usize) {
        for (prefix, _) in self.declared.drain(len..) {
            if let Some(all) = self.of_prefix.get_mut(prefix) {
                all.pop();
            }
        }
    }

    fn attribute(&self, prefix: &str) -> Option<Index> {
        self.of_prefix.get(prefix)?.last().copied()
    }

    /// Adds the declaration of the attribute `nth`, if it is one.
    pub(super) fn declare(
        &mut self,
        text: &'t str,
        nth: Index,
        attribute: &AttributeData,
    ) -> Result<(), ReadFailure> {
        let Some(rest) = attribute.name(text).strip_prefix("xmlns") else {
            return Ok(());
        };
        let prefix = rest.strip_prefix(':');
        if prefix.is_none() && !rest.is_empty() {
            return Ok(());
        }
        let message = match (prefix, attribute.value(text)) {
            (Some("xmlns"), _) => "the prefix `xmlns` cannot be declared",
            (Some("xml"), XML) => return Ok(()),
            (Some("xml"), _) => "the prefix `xml` cannot be bound to another namespace",
            (_, XML) => "only the prefix `xml` can be bound to this namespace",
            (_, XMLNS) => "only the prefix `xmlns` can be bound to this namespace",
            (Some(prefix), _) => {
                self.declared.push((prefix, nth));
                self.of_prefix.entry(prefix).or_default().push(nth);
                return Ok(());
            }
            (None, _) => return Ok(()),
        };
        let end = offset(attribute.value_end) + 1;
        let span = Span::new(offset(attribute.name_start), end);
        Err(ReadFailure::malformed(span, message))
    }

    /// Records the prefix of a name if it is not declared, and returns it.
    pub(super) fn check(
        &self,
        tree: &mut Arenas,
        name: (&'t str, Span),
        is_attribute: bool,
        outer: Option<&str>,
    ) -> Option<&'t str> {
        let (prefix, _) = name.0.split_once(':')?;
        if matches!(prefix, "xml" | "xmlns") || self.attribute(prefix).is_some() {
            return None;
        }
        tree.undeclared.push(UndeclaredPrefix {
            name: name.1,
            is_attribute,
            is_inner: outer == Some(prefix),
        });
        Some(prefix)
    }

    /// Finds two attributes with different prefixes for the same name space.
    pub(super) fn same_name<'a>(
        &self,
        tree: Tree<'a>,
        attributes: &'a [AttributeData],
    ) -> Option<(&'a AttributeData, &'a AttributeData)> {
        let mut seen: BTreeMap<(&str, &str), &AttributeData> = BTreeMap::new();
        for attribute in attributes {
            let Some((prefix, local)) = attribute.name(tree.text).split_once(':') else {
                continue;
            };
            let Some(declared) = self.attribute(prefix) else {
                continue;
            };
            let expanded = (tree.attributes[offset(declared)].value(tree.text), local);
            if let Some(first) = seen.insert(expanded, attribute) {
                return Some((first, attribute));
            }
        }
        None
    }
}
