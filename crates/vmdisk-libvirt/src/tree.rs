//! The tree that the guard builds: each element, text and comment with its place.
//!
//! It borrows the text and resolves nothing before it is asked for. Nodes lie in the order of the
//! text, so that the first child of a node comes right after it.

use std::borrow::Cow;

use vmdisk_source::Span;

use crate::reference;
use crate::tag::{TagAttribute, TagEnd};

/// A well-formed text as a tree.
#[derive(Debug)]
pub(crate) struct Tree<'t> {
    text: &'t str,
    /// The first is the document itself.
    nodes: Vec<NodeData>,
    /// Attributes of all elements, in the order of the text.
    attributes: Vec<TagAttribute>,
}

/// Offsets and numbers fit into 32 bits: a text is at most [`MAX_BYTES`](crate::MAX_BYTES) long.
#[derive(Debug)]
struct NodeData {
    kind: Kind,
    start: u32,
    end: u32,
    parent: u32,
    /// The next child of the same parent; 0 if there is none.
    next: u32,
}

#[derive(Debug)]
enum Kind {
    Document,
    Element(StartTag),
    /// Characters and references.
    Text,
    /// A CDATA section.
    CData,
    Comment,
}

#[derive(Debug)]
struct StartTag {
    name_end: u32,
    first_attribute: u32,
    attribute_count: u32,
    attributes_end: u32,
    end: u32,
    is_empty_element: bool,
}

/// What stands between tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// Characters and references.
    Text,
    /// A CDATA section.
    CData,
    /// A comment.
    Comment,
}

/// An element whose children are being added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenNode {
    number: u32,
    last_child: u32,
}

impl OpenNode {
    /// The document, around the root element.
    pub(crate) const DOCUMENT: OpenNode = OpenNode {
        number: 0,
        last_child: 0,
    };
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl<'t> Tree<'t> {
    /// A tree without nodes.
    pub(crate) fn new(text: &'t str) -> Self {
        // Domains have a node for about every 25 bytes and an attribute for every 40.
        let mut nodes = Vec::with_capacity(text.len() / 24 + 8);
        nodes.push(NodeData {
            kind: Kind::Document,
            start: 0,
            end: narrow(text.len()),
            parent: 0,
            next: 0,
        });
        Tree {
            text,
            nodes,
            attributes: Vec::with_capacity(text.len() / 40 + 8),
        }
    }

    fn push(&mut self, parent: &mut OpenNode, kind: Kind, span: Span) -> u32 {
        let number = narrow(self.nodes.len());
        if let Some(before) = self.nodes.get_mut(parent.last_child as usize)
            && parent.last_child != 0
        {
            before.next = number;
        }
        parent.last_child = number;
        self.nodes.push(NodeData {
            kind,
            start: narrow(span.start),
            end: narrow(span.end),
            parent: parent.number,
            next: 0,
        });
        number
    }

    /// Adds a text or comment.
    pub(crate) fn push_leaf(&mut self, parent: &mut OpenNode, leaf: Leaf, span: Span) {
        let kind = match leaf {
            Leaf::Text => Kind::Text,
            Leaf::CData => Kind::CData,
            Leaf::Comment => Kind::Comment,
        };
        self.push(parent, kind, span);
    }

    /// Adds an attribute of the element that is added next.
    pub(crate) fn push_attribute(&mut self, attribute: TagAttribute) {
        self.attributes.push(attribute);
    }

    /// Attributes from a number on.
    pub(crate) fn attributes_from(&self, first: usize) -> &[TagAttribute] {
        self.attributes.get(first..).unwrap_or_default()
    }

    /// Number of attributes so far.
    pub(crate) fn attribute_count(&self) -> usize {
        self.attributes.len()
    }

    /// Adds an element by its start tag, with the attributes from `first_attribute` on.
    pub(crate) fn push_element(
        &mut self,
        parent: &mut OpenNode,
        name: Span,
        first_attribute: usize,
        end: TagEnd,
    ) -> OpenNode {
        let tag = StartTag {
            name_end: narrow(name.end),
            first_attribute: narrow(first_attribute),
            attribute_count: narrow(self.attributes.len() - first_attribute),
            attributes_end: narrow(end.attributes_end),
            end: narrow(end.end),
            is_empty_element: end.is_empty_element,
        };
        let span = Span::new(name.start - 1, end.end);
        let number = self.push(parent, Kind::Element(tag), span);
        OpenNode {
            number,
            last_child: 0,
        }
    }

    /// Notes where the end tag of an element ends.
    pub(crate) fn close(&mut self, open: OpenNode, end: usize) {
        if let Some(node) = self.nodes.get_mut(open.number as usize) {
            node.end = narrow(end);
        }
    }

    /// The document around the root element.
    pub(crate) fn document(&self) -> Node<'_> {
        Node {
            tree: self,
            number: 0,
        }
    }

    /// All nodes but the document, in the order of the text.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        (1..narrow(self.nodes.len())).map(|number| Node { tree: self, number })
    }
}

/// One node of a tree.
#[derive(Clone, Copy)]
pub(crate) struct Node<'d> {
    tree: &'d Tree<'d>,
    number: u32,
}

/// Nodes of one tree are compared.
impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<'d> Node<'d> {
    fn data(self) -> &'d NodeData {
        &self.tree.nodes[self.number as usize]
    }

    fn start_tag(self) -> Option<&'d StartTag> {
        match &self.data().kind {
            Kind::Element(tag) => Some(tag),
            Kind::Document | Kind::Text | Kind::CData | Kind::Comment => None,
        }
    }

    /// Its number in the tree.
    pub(crate) fn number(self) -> u32 {
        self.number
    }

    /// Where it is, from its first byte to its last.
    pub(crate) fn span(self) -> Span {
        let data = self.data();
        Span::new(data.start as usize, data.end as usize)
    }

    pub(crate) fn is_element(self) -> bool {
        self.start_tag().is_some()
    }

    pub(crate) fn is_comment(self) -> bool {
        matches!(self.data().kind, Kind::Comment)
    }

    pub(crate) fn is_document(self) -> bool {
        matches!(self.data().kind, Kind::Document)
    }

    /// Name of an element as written, with its prefix; empty for what is none.
    pub(crate) fn name(self) -> &'d str {
        self.start_tag().map_or("", |tag| {
            &self.tree.text[self.data().start as usize + 1..tag.name_end as usize]
        })
    }

    /// Where the name is in the start tag.
    pub(crate) fn name_span(self) -> Span {
        let start = self.data().start as usize + 1;
        Span::new(start, start + self.name().len())
    }

    /// The name without its prefix.
    pub(crate) fn local_name(self) -> &'d str {
        let name = self.name();
        name.split_once(':').map_or(name, |(_, local)| local)
    }

    /// How the start tag ends; for what is no element, its own end.
    pub(crate) fn tag_end(self) -> TagEnd {
        let end = self.data().end as usize;
        self.start_tag().map_or(
            TagEnd {
                attributes_end: end,
                end,
                is_empty_element: true,
            },
            |tag| TagEnd {
                attributes_end: tag.attributes_end as usize,
                end: tag.end as usize,
                is_empty_element: tag.is_empty_element,
            },
        )
    }

    pub(crate) fn parent(self) -> Option<Node<'d>> {
        (self.number != 0).then(|| Node {
            tree: self.tree,
            number: self.data().parent,
        })
    }

    /// Everything directly inside, in the order of the text.
    pub(crate) fn children(self) -> impl Iterator<Item = Node<'d>> {
        let tree = self.tree;
        let first = self.number + 1;
        let is_child = tree
            .nodes
            .get(first as usize)
            .is_some_and(|node| node.parent == self.number);
        let first = is_child.then_some(Node {
            tree,
            number: first,
        });
        std::iter::successors(first, move |node| {
            let next = node.data().next;
            (next != 0).then_some(Node { tree, number: next })
        })
    }

    /// Elements directly inside.
    pub(crate) fn elements(self) -> impl Iterator<Item = Node<'d>> {
        self.children().filter(|node| node.is_element())
    }

    /// Attributes and name space declarations, in the order of the text.
    pub(crate) fn attributes(self) -> &'d [TagAttribute] {
        self.start_tag().map_or(&[], |tag| {
            let first = tag.first_attribute as usize;
            &self.tree.attributes[first..first + tag.attribute_count as usize]
        })
    }

    /// The value of one of its attributes, as programs get it.
    pub(crate) fn value(self, attribute: &TagAttribute) -> Cow<'d, str> {
        let written = attribute.value.slice(self.tree.text).unwrap_or_default();
        if attribute.is_plain {
            Cow::Borrowed(written)
        } else {
            Cow::Owned(reference::attribute_value(written))
        }
    }

    /// The value of the attribute with this name, as written with its prefix.
    pub(crate) fn attribute(self, name: &str) -> Option<Cow<'d, str>> {
        let text = self.tree.text;
        let mut attributes = self.attributes().iter();
        attributes
            .find(|attribute| attribute.name.slice(text) == Some(name))
            .map(|attribute| self.value(attribute))
    }

    /// The name space of an element, by the declaration nearest around it.
    pub(crate) fn namespace(self) -> Option<Cow<'d, str>> {
        let declaration = match self.name().split_once(':') {
            Some((prefix, _)) => format!("xmlns:{prefix}"),
            None => "xmlns".to_owned(),
        };
        std::iter::successors(Some(self), |node| node.parent())
            .find_map(|node| node.attribute(&declaration))
            .filter(|uri| !uri.is_empty())
    }

    /// All text in an element, comments and the text of inner elements left out, with its place;
    /// no place if there is none.
    pub(crate) fn text(self) -> (Cow<'d, str>, Option<Span>) {
        let mut out = Cow::Borrowed("");
        let mut span: Option<Span> = None;
        for child in self.children() {
            let place = child.span();
            let written = place.slice(self.tree.text).unwrap_or_default();
            let part = match child.data().kind {
                Kind::Text => reference::element_text(written),
                Kind::CData => reference::cdata_text(written),
                Kind::Document | Kind::Element(_) | Kind::Comment => continue,
            };
            if out.is_empty() {
                out = part;
            } else {
                out.to_mut().push_str(&part);
            }
            span = Some(Span::new(
                span.map_or(place.start, |span| span.start),
                place.end,
            ));
        }
        (out, span)
    }
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{}> at {}", self.name(), self.data().start)
    }
}

#[cfg(test)]
mod tests;
