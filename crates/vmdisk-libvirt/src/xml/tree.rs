//! The tree of an XML text: arenas of elements, attributes and texts, each with its span.
//!
//! Names keep their prefixes. Names and values are places of the text; a value that a reference or a line end changes is
//! stored. So the arenas outlive the text, and [`Tree`] joins both again.

use std::borrow::Cow;
use std::cell::Cell;
use std::mem;

use vmdisk_source::Span;

use super::decode::{is_literal, push_piece};
use super::name::is_same;

/// A well-formed document with its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree<'t> {
    pub(super) text: &'t str,
    elements: &'t [ElementData],
    pub(super) attributes: &'t [AttributeData],
    pieces: &'t [Piece],
    comments: &'t [CommentData],
    /// Undeclared prefixes in use, in the order of the text.
    pub(crate) undeclared: &'t [UndeclaredPrefix],
}

/// The elements of a document, without its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arenas {
    pub(super) elements: Vec<ElementData>,
    pub(super) attributes: Vec<AttributeData>,
    pub(super) pieces: Vec<Piece>,
    pub(super) comments: Vec<CommentData>,
    pub(super) undeclared: Vec<UndeclaredPrefix>,
}

/// An index into one of the arenas, or an offset into the text: a text is at most 16 MiB long.
pub(super) type Index = u32;

/// No element or piece has this index.
pub(super) const NONE: Index = Index::MAX;

pub(super) fn index(value: usize) -> Index {
    Index::try_from(value).expect("a text of at most 16 MiB has fewer things in it")
}

pub(super) const fn offset(index: Index) -> usize {
    index as usize
}

#[derive(Clone, Debug)]
pub(super) struct ElementData {
    /// Offset of the `<`, directly before the name.
    pub(super) start: Index,
    pub(super) name_end: Index,
    /// Directly after the last attribute, or the name.
    pub(super) attributes_end: Index,
    /// Directly after the `>` of the start tag.
    pub(super) tag_end: Index,
    /// Directly after the end tag; the same as `tag_end` for `<a/>`.
    pub(super) end: Index,
    pub(super) first_attribute: Index,
    pub(super) last_attribute: Index,
    pub(super) parent: Index,
    pub(super) first_child: Index,
    pub(super) next_sibling: Index,
    pub(super) first_piece: Index,
}

#[derive(Clone, Debug)]
pub(super) struct AttributeData {
    /// The value, if it differs from the written one. Few do, so it takes one pointer.
    pub(super) value: Option<Box<Box<str>>>,
    pub(super) name_start: Index,
    pub(super) name_end: Index,
    pub(super) value_start: Index,
    pub(super) value_end: Index,
}

/// Part of an element's text: characters, a reference or a CDATA section.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) start: Index,
    pub(super) end: Index,
    /// The next piece of the same element.
    pub(super) next: Index,
}

#[derive(Clone, Debug)]
pub(super) struct CommentData {
    pub(super) start: Index,
    pub(super) end: Index,
    /// The parent element.
    pub(super) parent: Index,
    /// The element before it in the same parent.
    pub(super) previous: Index,
}

/// An undeclared prefix in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndeclaredPrefix {
    /// The name that has it.
    pub(crate) name: Span,
    /// True if it is the name of an attribute.
    pub(crate) is_attribute: bool,
    /// True if the enclosing element has the same undeclared prefix, which is reported there.
    pub(crate) is_inner: bool,
}

/// The memory of a tree that is gone.
#[derive(Default)]
struct Spare {
    elements: Vec<ElementData>,
    attributes: Vec<AttributeData>,
    pieces: Vec<Piece>,
}

thread_local! {
    /// The memory for the next tree of the thread. A run reads many small texts, and these are its largest allocations.
    static SPARE: Cell<Option<Spare>> = const { Cell::new(None) };
}

/// The memory of a tree with more elements, or four times as many attributes or pieces, is not kept.
const MAX_SPARE: usize = 4096;

/// An empty vector in the memory of another one.
fn emptied<T>(mut vector: Vec<T>) -> Vec<T> {
    vector.clear();
    vector
}

impl Arenas {
    /// The arenas for a text, still without elements.
    pub(super) fn new(text: &str) -> Self {
        // As libvirt writes it, an element takes about 45 bytes; an attribute and a piece 30.
        let expected = text.len() / 40 + 1;
        let Spare {
            elements,
            attributes,
            pieces,
        } = SPARE.take().unwrap_or_default();
        let mut tree = Arenas {
            elements,
            attributes,
            pieces,
            comments: Vec::new(),
            undeclared: Vec::new(),
        };
        tree.elements.reserve(expected);
        tree.attributes.reserve(expected * 3 / 2);
        tree.pieces.reserve(expected * 3 / 2);
        tree
    }
}

impl ElementData {
    /// The name, which is a part of this text.
    pub(super) fn name<'t>(&self, text: &'t str) -> &'t str {
        slice(text, self.start + 1, self.name_end)
    }

    /// True if it has this name. Most other names have another length, for which nobody has to look at the text.
    #[inline]
    fn is_named(&self, name: &str, text: &str) -> bool {
        offset(self.name_end) - offset(self.start) - 1 == name.len()
            && is_same(self.name(text), name)
    }
}

impl AttributeData {
    /// The name, which is a part of this text.
    pub(super) fn name<'t>(&self, text: &'t str) -> &'t str {
        slice(text, self.name_start, self.name_end)
    }

    /// As [`ElementData::is_named`].
    #[inline]
    pub(super) fn is_named(&self, name: &str, text: &str) -> bool {
        offset(self.name_end) - offset(self.name_start) == name.len()
            && is_same(self.name(text), name)
    }

    /// The value, its references resolved.
    pub(super) fn value<'t>(&'t self, text: &'t str) -> &'t str {
        match &self.value {
            Some(value) => value,
            None => slice(text, self.value_start, self.value_end),
        }
    }

    /// The place of the name.
    pub(super) fn name_span(&self) -> Span {
        Span::new(offset(self.name_start), offset(self.name_end))
    }
}

/// A part of a text; empty in another text.
fn slice(text: &str, start: Index, end: Index) -> &str {
    text.get(offset(start)..offset(end)).unwrap_or_default()
}

impl Arenas {
    /// The tree of the text that the arenas were built from.
    pub(crate) fn of<'t>(&'t self, text: &'t str) -> Tree<'t> {
        Tree {
            text,
            elements: &self.elements,
            attributes: &self.attributes,
            pieces: &self.pieces,
            comments: &self.comments,
            undeclared: &self.undeclared,
        }
    }

    /// True if there is not even a root element.
    pub(crate) const fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

impl Drop for Arenas {
    fn drop(&mut self) {
        let others = self.attributes.capacity().max(self.pieces.capacity());
        if self.elements.capacity() <= MAX_SPARE && others <= 4 * MAX_SPARE {
            SPARE.set(Some(Spare {
                elements: emptied(mem::take(&mut self.elements)),
                attributes: emptied(mem::take(&mut self.attributes)),
                pieces: emptied(mem::take(&mut self.pieces)),
            }));
        }
    }
}

impl Tree<'_> {
    /// The root element.
    pub(crate) fn root(&self) -> Node<'_> {
        Node { tree: self, id: 0 }
    }

    /// The innermost element around a place; the root element if there is none.
    pub(crate) fn around(&self, place: Span) -> Node<'_> {
        let before = self
            .elements
            .partition_point(|it| offset(it.start) <= place.start);
        let last = before.saturating_sub(1);
        let mut node = Node {
            tree: self,
            id: index(last),
        };
        while node.span().end < place.end
            && let Some(parent) = node.parent()
        {
            node = parent;
        }
        node
    }

    /// All elements, in the order of the text.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Node<'_>> {
        (0..index(self.elements.len())).map(|id| Node { tree: self, id })
    }

    /// All comments, in the order of the text.
    pub(crate) fn comments(&self) -> impl Iterator<Item = Comment<'_>> {
        self.comments.iter().map(|comment| Comment {
            span: Span::new(offset(comment.start), offset(comment.end)),
            parent: self.node(comment.parent),
            previous: self.node(comment.previous),
        })
    }

    fn node(&self, id: Index) -> Option<Node<'_>> {
        (id != NONE).then_some(Node { tree: self, id })
    }
}

/// A comment and its position among the elements.
#[derive(Clone, Copy)]
pub(crate) struct Comment<'d> {
    pub(crate) span: Span,
    /// The parent element; `None` outside the root element.
    pub(crate) parent: Option<Node<'d>>,
    /// The element before it in the same parent.
    pub(crate) previous: Option<Node<'d>>,
}

impl<'d> Comment<'d> {
    /// The element after it in the same parent.
    pub(crate) fn next(&self) -> Option<Node<'d>> {
        match self.previous {
            Some(previous) => previous.next_sibling(),
            None => self.parent?.children().next(),
        }
    }
}

/// An element.
#[derive(Clone, Copy)]
pub(crate) struct Node<'d> {
    tree: &'d Tree<'d>,
    id: Index,
}

/// Two nodes of one tree.
impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<'d> Node<'d> {
    fn data(self) -> &'d ElementData {
        &self.tree.elements[offset(self.id)]
    }

    /// The name as written, with its prefix.
    pub(crate) fn name(self) -> &'d str {
        self.data().name(self.tree.text)
    }

    /// True if it has this name, as written.
    #[inline]
    pub(crate) fn is_named(self, name: &str) -> bool {
        self.data().is_named(name, self.tree.text)
    }

    /// The span of the name in the start tag.
    pub(crate) fn name_span(self) -> Span {
        let data = self.data();
        Span::new(offset(data.start) + 1, offset(data.name_end))
    }

    /// The whole element.
    pub(crate) fn span(self) -> Span {
        let data = self.data();
        Span::new(offset(data.start), offset(data.end))
    }

    /// The start tag.
    pub(crate) fn tag(self) -> Span {
        let data = self.data();
        Span::new(offset(data.start), offset(data.tag_end))
    }

    /// The position for another attribute: directly after the last one, or after the name.
    pub(crate) fn attributes_end(self) -> usize {
        offset(self.data().attributes_end)
    }

    /// True for `<a/>`.
    pub(crate) fn is_empty_element(self) -> bool {
        let data = self.data();
        data.tag_end == data.end
    }

    /// The parent element.
    pub(crate) fn parent(self) -> Option<Node<'d>> {
        self.tree.node(self.data().parent)
    }

    /// The enclosing elements, the nearest first.
    pub(crate) fn ancestors(self) -> impl Iterator<Item = Node<'d>> {
        std::iter::successors(self.parent(), |node| node.parent())
    }

    fn next_sibling(self) -> Option<Node<'d>> {
        self.tree.node(self.data().next_sibling)
    }

    /// The child elements.
    pub(crate) fn children(self) -> impl Iterator<Item = Node<'d>> {
        let first = self.tree.node(self.data().first_child);
        std::iter::successors(first, |node| node.next_sibling())
    }

    /// The first child element with this name.
    pub(crate) fn child(self, name: &str) -> Option<Node<'d>> {
        self.children().find(|child| child.is_named(name))
    }

    /// The descendant elements, in the order of the text.
    pub(crate) fn descendants(self) -> impl Iterator<Item = Node<'d>> {
        let tree = self.tree;
        let end = self.data().end;
        (self.id + 1..index(tree.elements.len()))
            .map(move |id| Node { tree, id })
            .take_while(move |node| node.data().start < end)
    }

    /// The attributes as written, including name space declarations.
    pub(crate) fn attributes(self) -> impl Iterator<Item = Attribute<'d>> {
        let data = self.data();
        let own = offset(data.first_attribute)..offset(data.last_attribute);
        let text = self.tree.text;
        self.tree.attributes[own]
            .iter()
            .map(move |data| Attribute { data, text })
    }

    /// The value of the attribute with this name.
    pub(crate) fn attribute(self, name: &str) -> Option<&'d str> {
        let mut attributes = self.attributes();
        attributes
            .find(|known| known.is_named(name))
            .map(Attribute::value)
    }

    /// All its text without comments and child elements, with its span; `None` without text.
    pub(crate) fn text(self) -> (Cow<'d, str>, Option<Span>) {
        let pieces = self.tree.pieces;
        let Some(first) = pieces.get(offset(self.data().first_piece)) else {
            return (Cow::Borrowed(""), None);
        };
        let of = |piece: &Piece| &self.tree.text[offset(piece.start)..offset(piece.end)];
        let span = |last: &Piece| Some(Span::new(offset(first.start), offset(last.end)));
        if first.next == NONE && is_literal(of(first)) {
            return (Cow::Borrowed(of(first)), span(first));
        }
        let (mut out, mut last) = (String::new(), first);
        push_piece(of(first), &mut out);
        while let Some(next) = pieces.get(offset(last.next)) {
            push_piece(of(next), &mut out);
            last = next;
        }
        (Cow::Owned(out), span(last))
    }

    /// The name space of the element; `None` without one.
    pub(crate) fn namespace(self) -> Option<&'d str> {
        let prefix = self.name().split_once(':').map(|(prefix, _)| prefix);
        let declared = |attribute: &Attribute<'d>| match attribute.name().strip_prefix("xmlns") {
            Some("") => prefix.is_none(),
            Some(rest) => rest.strip_prefix(':') == prefix && prefix.is_some(),
            None => false,
        };
        std::iter::once(self)
            .chain(self.ancestors())
            .find_map(|node| node.attributes().find(declared))
            .map(Attribute::value)
    }

    /// The name without its prefix.
    pub(crate) fn local_name(self) -> &'d str {
        let name = self.name();
        name.split_once(':').map_or(name, |(_, local)| local)
    }
}

/// An attribute of an element.
#[derive(Clone, Copy)]
pub(crate) struct Attribute<'d> {
    data: &'d AttributeData,
    text: &'d str,
}

impl<'d> Attribute<'d> {
    /// The name as written, with its prefix.
    pub(crate) fn name(self) -> &'d str {
        self.data.name(self.text)
    }

    /// True if it has this name, as written.
    #[inline]
    pub(crate) fn is_named(self, name: &str) -> bool {
        self.data.is_named(name, self.text)
    }

    /// The value, its references resolved.
    pub(crate) fn value(self) -> &'d str {
        self.data.value(self.text)
    }

    /// True for the declaration of a name space.
    pub(crate) fn is_declaration(self) -> bool {
        let rest = self.name().strip_prefix("xmlns");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }

    /// The span of the name.
    pub(crate) fn name_span(self) -> Span {
        self.data.name_span()
    }

    /// The span of the value, without its quotes.
    pub(crate) fn value_span(self) -> Span {
        Span::new(offset(self.data.value_start), offset(self.data.value_end))
    }

    /// The attribute with the white space before it.
    pub(crate) fn whole(self) -> Span {
        let name = offset(self.data.name_start);
        let before = self.text.get(..name).unwrap_or_default();
        let start = before.trim_end_matches([' ', '\t', '\r', '\n']).len();
        Span::new(start, offset(self.data.value_end) + 1)
    }

    /// Name, equals sign and quoted value.
    pub(crate) fn verbatim(self) -> Span {
        Span::new(
            offset(self.data.name_start),
            offset(self.data.value_end) + 1,
        )
    }
}
