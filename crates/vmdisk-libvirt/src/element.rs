//! One element while it is read.

use roxmltree::Node;
use vmdisk_model::FieldPath;
use vmdisk_source::Span;

use crate::tag::TagAttribute;
use crate::tree;
use crate::vocabulary::{ElementSpec, Since, Whose};

/// An attribute that was written.
pub(crate) struct Written<'d> {
    pub(crate) tag: TagAttribute,
    pub(crate) value: &'d str,
    pub(crate) is_taken: bool,
}

/// One element while it is read: what has been taken of it, and what has not.
pub(crate) struct Element<'t, 'd> {
    pub(crate) node: Node<'d, 'd>,
    pub(crate) spec: &'static ElementSpec,
    /// The nearest field of the model.
    pub(crate) at: FieldPath,
    pub(crate) whose: Whose,
    /// The libvirt that first knew everything up to here.
    pub(crate) since: Since,
    /// The start tag.
    pub(crate) tag: Span,
    pub(crate) text: &'t str,
    pub(crate) attributes: Vec<Written<'d>>,
    pub(crate) children: Vec<Child<'t, 'd>>,
}

/// A child element that was written.
pub(crate) struct Child<'t, 'd> {
    /// Its name, with its prefix.
    pub(crate) name: &'t str,
    pub(crate) node: Node<'d, 'd>,
    pub(crate) is_taken: bool,
}

impl<'t, 'd> Element<'t, 'd> {
    /// The value of an attribute, whether or not it has been taken.
    pub(crate) fn peek(&self, name: &str) -> Option<&'d str> {
        self.written(name).map(|(_, written)| written.value)
    }

    /// The place of an attribute's value.
    pub(crate) fn value_span(&self, name: &str) -> Option<Span> {
        self.written(name).map(|(_, written)| written.tag.value)
    }

    fn written(&self, name: &str) -> Option<(usize, &Written<'d>)> {
        self.attributes
            .iter()
            .enumerate()
            .find(|(_, written)| written.tag.name.slice(self.text) == Some(name))
    }

    /// Takes an attribute if `parse` can read it; otherwise it is kept as written.
    pub(crate) fn take<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let (at, written) = self.written(name)?;
        let value = parse(written.value)?;
        self.attributes[at].is_taken = true;
        Some(value)
    }

    /// Takes an attribute as text.
    pub(crate) fn take_text(&mut self, name: &str) -> Option<String> {
        self.take(name, |value| Some(value.to_owned()))
    }

    /// Takes the first child with this name.
    pub(crate) fn child(&mut self, name: &str) -> Option<Node<'d, 'd>> {
        let child = self.children.iter_mut().find(|child| child.name == name)?;
        child.is_taken = true;
        Some(child.node)
    }

    /// Takes all children with this name.
    pub(crate) fn children(&mut self, name: &str) -> Vec<Node<'d, 'd>> {
        self.children
            .iter_mut()
            .filter(|child| child.name == name)
            .map(|child| {
                child.is_taken = true;
                child.node
            })
            .collect()
    }

    /// Gives a child back, to be kept as written.
    pub(crate) fn give_back(&mut self, node: Node<'d, 'd>) {
        if let Some(child) = self.children.iter_mut().find(|child| child.node == node) {
            child.is_taken = false;
        }
    }

    /// The names that an unknown child may have been meant for: those that are not written yet.
    pub(crate) fn free_names(&self) -> Vec<&'static str> {
        let mut is_written = vec![false; self.spec.children.len()];
        for child in &self.children {
            if let Some((nth, _)) = self.spec.child(child.name) {
                is_written[nth] = true;
            }
        }
        let known = self.spec.children.iter().zip(is_written);
        known
            .filter(|(known, is_written)| known.repeats || !is_written)
            .map(|(known, _)| known.name)
            .collect()
    }

    /// The text of the element.
    pub(crate) fn content(&self) -> String {
        tree::text(self.node).0
    }
}
