//! An element during reading.

use std::collections::BTreeSet;
use std::ops::Deref;

use vmdisk_model::FieldPath;
use vmdisk_source::Span;

use crate::vocabulary::{ChildSpec, ElementSpec, FieldOwner, Since};
use crate::xml::name::is_same;
use crate::xml::{Attribute, Node};

/// An element during reading: its consumed parts, and the others.
pub(crate) struct Element<'d> {
    pub(crate) node: Node<'d>,
    pub(crate) spec: &'static ElementSpec,
    /// The nearest field of the model.
    pub(crate) at: FieldPath,
    pub(crate) owner: FieldOwner,
    /// The first libvirt that supports the whole path to this element.
    pub(crate) since: Since,
    /// The start tag.
    pub(crate) tag: Span,
    pub(crate) children: Vec<Child<'d>>,
    /// One bit for each row of the table that has a matching child.
    rows: u128,
    taken: Taken,
}

/// The numbers of the consumed attributes.
#[derive(Default)]
struct Taken {
    /// One bit for each of the first ones, which are all that libvirt knows of an element.
    first: u64,
    others: BTreeSet<usize>,
}

impl Taken {
    fn add(&mut self, at: usize) {
        match at < 64 {
            true => self.first |= 1 << at,
            false => drop(self.others.insert(at)),
        }
    }

    fn contains(&self, at: usize) -> bool {
        match at < 64 {
            true => self.first & (1 << at) != 0,
            false => self.others.contains(&at),
        }
    }
}

/// A child element, with its row in its parent's table.
#[derive(Clone, Copy)]
pub(crate) struct Child<'d> {
    pub(crate) node: Node<'d>,
    /// Its row in the table, and the index of the row.
    pub(crate) known: Option<(usize, &'static ChildSpec)>,
    pub(crate) is_taken: bool,
}

impl<'d> Deref for Child<'d> {
    type Target = Node<'d>;

    fn deref(&self) -> &Node<'d> {
        &self.node
    }
}

impl Child<'_> {
    /// True if it has this name. The row has it, too, and is nearer than the text.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        match self.known {
            Some((_, known)) => is_same(known.name, name),
            None => self.node.is_named(name),
        }
    }
}

impl<'d> Element<'d> {
    /// An element with all attributes and children unread.
    pub(crate) fn new(
        node: Node<'d>,
        spec: &'static ElementSpec,
        at: FieldPath,
        owner: FieldOwner,
        since: Since,
    ) -> Self {
        let (mut rows, mut last) = (0, 0);
        let child = |node: Node<'d>| {
            let known = spec.child_near(node.name(), last);
            if let Some((nth, _)) = known {
                rows |= 1 << nth;
                last = nth;
            }
            Child {
                node,
                known,
                is_taken: false,
            }
        };
        let mut children = Vec::with_capacity(node.children().count());
        children.extend(node.children().map(child));
        Element {
            node,
            spec,
            at,
            owner,
            since,
            tag: node.tag(),
            children,
            rows,
            taken: Taken::default(),
        }
    }

    /// The value of an attribute, consumed or not.
    pub(crate) fn peek(&self, name: &str) -> Option<&'d str> {
        self.node.attribute(name)
    }

    /// The span of an attribute's value.
    pub(crate) fn value_span(&self, name: &str) -> Option<Span> {
        let mut attributes = self.node.attributes();
        attributes
            .find(|written| written.is_named(name))
            .map(Attribute::value_span)
    }

    /// Consumes an attribute if `parse` can read it; otherwise it is kept as written.
    pub(crate) fn take<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let mut attributes = self.node.attributes().enumerate();
        let (at, written) = attributes.find(|(_, written)| written.is_named(name))?;
        let value = parse(written.value())?;
        self.taken.add(at);
        Some(value)
    }

    /// Consumes the attributes whose name and value `read` can read.
    pub(crate) fn take_each(&mut self, mut read: impl FnMut(&str, &str) -> Option<()>) {
        for (at, written) in self.node.attributes().enumerate() {
            if read(written.name(), written.value()).is_some() {
                self.taken.add(at);
            }
        }
    }

    /// Consumes an attribute as text.
    pub(crate) fn take_text(&mut self, name: &str) -> Option<String> {
        self.take(name, |value| Some(value.to_owned()))
    }

    /// Takes an attribute whose value is known.
    pub(crate) fn take_known(&mut self, name: &str) {
        self.take(name, |_| Some(()));
    }

    /// The attributes that have not been taken.
    pub(crate) fn attributes_left(&self) -> impl Iterator<Item = Attribute<'d>> {
        let attributes = self.node.attributes().enumerate();
        attributes
            .filter(|(at, _)| !self.taken.contains(*at))
            .map(|(_, written)| written)
    }

    /// True if a child matches the nth row of the table.
    pub(crate) const fn has_row(&self, nth: usize) -> bool {
        self.rows & (1 << nth) != 0
    }

    /// Consumes the first child with this name.
    pub(crate) fn child(&mut self, name: &str) -> Option<Child<'d>> {
        let mut children = self.children.iter_mut();
        let child = children.find(|child| child.is_named(name))?;
        child.is_taken = true;
        Some(*child)
    }

    /// Consumes all children with this name.
    pub(crate) fn children(&mut self, name: &str) -> Vec<Child<'d>> {
        let children = self.children.iter_mut();
        children
            .filter(|child| child.is_named(name))
            .map(|child| {
                child.is_taken = true;
                *child
            })
            .collect()
    }

    /// Returns a child, to be kept as written.
    pub(crate) fn give_back(&mut self, given: Child<'d>) {
        let mut children = self.children.iter_mut();
        if let Some(child) = children.find(|child| child.node == given.node) {
            child.is_taken = false;
        }
    }

    /// The possible intended names of an unknown child: names that are not used yet.
    pub(crate) fn free_names(&self) -> Vec<&'static str> {
        let mut is_written = vec![false; self.spec.children.len()];
        for (nth, _) in self.children.iter().filter_map(|child| child.known) {
            is_written[nth] = true;
        }
        let known = self.spec.children.iter().zip(is_written);
        known
            .filter(|(known, is_written)| known.repeats || !is_written)
            .map(|(known, _)| known.name)
            .collect()
    }

    /// The text of the element.
    pub(crate) fn content(&self) -> String {
        self.node.text().0.into_owned()
    }
}
