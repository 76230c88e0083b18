//! libvirt's elements for disks: names, values, and the first libvirt release of each.
//!
//! The tables are data. The reader checks a document against them and records the span of each field of the model;
//! fixes use them to insert missing fields. The tables also contain elements that libvirt supports but the model does
//! not cover, so that these are recognised and kept.
//!
//! Sources: libvirt's `docs/formatdomain.rst` and `src/conf/schemas/` (9.0 to 11.3), its NEWS up to 12.5, and the
//! element names of the Go bindings for later additions.

mod address;
mod controller;
mod disk;
mod domain;
mod limits;
mod moment;
mod network;
mod pick;
mod pool;
mod rows;
mod source;

pub(crate) use controller::CONTROLLER_DRIVER;
pub use controller::{CONTROLLER, SCSI_CONTROLLER};
pub(crate) use disk::DRIVER;
pub use disk::{BACKING_STORE, DISK};
pub use domain::{DEVICES, DOMAIN};
pub(crate) use domain::{IOTHREAD, other_devices};
pub(crate) use limits::THROTTLE_GROUP;
pub use moment::{DOMAIN_BACKUP, DOMAIN_CHECKPOINT, DOMAIN_SNAPSHOT};
pub use pool::{POOL, STORAGE_VOLUME};
pub use source::{SOURCE_TYPES, source_of};
pub(crate) use source::{
    switch_from_yes_no, switch_to_yes_no, type_of_source, types_with_attribute,
};

use vmdisk_model::{
    ControllerField, DiskField, DomainField, FieldPath, ImageField, IoThreadField, LimitField,
};

use crate::xml::name::is_same;

pub use vmdisk_fields::Since;

/// A field of the model, without the index of the disk or controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Of the guest.
    Domain(DomainField),
    /// Of a disk.
    Disk(DiskField),
    /// Of an image in a disk's chain.
    Image(ImageField),
    /// Of a controller.
    Controller(ControllerField),
    /// Of an iothread.
    IoThread(IoThreadField),
    /// Of a disk's limits.
    Iotune(LimitField),
    /// Of a throttle group.
    ThrottleGroup(LimitField),
}

/// The owner of a [`Field`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldOwner {
    /// Index of the disk, controller, iothread or throttle group.
    pub index: usize,
    /// Depth of the image in the disk's chain.
    pub depth: usize,
}

impl FieldOwner {
    /// The disk, controller, iothread or throttle group with an index.
    pub(crate) const fn nth(index: usize) -> Self {
        FieldOwner { index, depth: 0 }
    }
}

impl Field {
    /// The full path; `None` for a disk's field inside a `<backingStore>`, which does not belong to the disk.
    pub const fn path(self, owner: FieldOwner) -> Option<FieldPath> {
        match self {
            Field::Domain(field) => Some(FieldPath::Domain(field)),
            Field::Disk(field) if owner.depth == 0 => Some(FieldPath::Disk(owner.index, field)),
            Field::Disk(_) => None,
            Field::Image(field) => Some(FieldPath::Image(owner.index, owner.depth, field)),
            Field::Controller(field) => Some(FieldPath::Controller(owner.index, field)),
            Field::IoThread(field) => Some(FieldPath::IoThread(owner.index, field)),
            Field::Iotune(field) => Some(FieldPath::Iotune(owner.index, field)),
            Field::ThrottleGroup(field) => Some(FieldPath::ThrottleGroup(owner.index, field)),
        }
    }
}

/// The accepted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSpec {
    /// Anything.
    Text,
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of the first words, or of the second, for which the model has no value.
    WordsAnd(&'static [&'static str], &'static [&'static str]),
    /// A number up to 2^32 - 1.
    Unsigned32,
    /// A number from 1 to 2^32 - 1.
    Positive32,
    /// The number of a TCP port, up to 65535 (`virStringParsePort`; libvirt 9.0 refuses larger ones).
    Port,
    /// A number from -2^31 to 2^31 - 1: libvirt 9.0 and 11.3 define a pool with any such port of its server.
    PoolPort,
    /// A number up to 2^64 - 1.
    Unsigned64,
    /// A UUID as libvirt reads it: 32 digits of base 16, with dashes and blanks between.
    Uuid,
    /// A number up to 2^32 - 1, also in base 16 (`0x1f`) or 8 (`017`).
    AnyBase,
}

impl ValueSpec {
    /// The words: first the words of the model. Empty for another kind of value.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let (words, others): (&[&str], &[&str]) = match self {
            ValueSpec::Words(words) => (words, &[]),
            ValueSpec::WordsAnd(words, others) => (words, others),
            _ => (&[], &[]),
        };
        words.iter().chain(others).copied()
    }
}

/// `yes` and `no`.
pub const YES_NO: ValueSpec = ValueSpec::Words(&["yes", "no"]);
/// `on` and `off`.
pub const ON_OFF: ValueSpec = ValueSpec::Words(vmdisk_model::Switch::WORDS);

/// libvirt's requirements of an element in every position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// This attribute.
    Attribute(&'static str),
    /// This child.
    Child(&'static str),
    /// One of these attributes, and not both.
    EitherAttribute(&'static str, &'static str),
    /// Not this child together with an attribute of this value.
    NoChildWith {
        /// The child.
        child: &'static str,
        /// The attribute.
        attribute: &'static str,
        /// Its value.
        value: &'static str,
    },
    /// Children of this name must differ in this attribute.
    Distinct(&'static str, &'static str),
}

/// The row of an attribute.
#[derive(Clone, Copy, Debug)]
pub struct AttributeSpec {
    /// Its name.
    pub name: &'static str,
    /// The first libvirt that supports it.
    pub since: Since,
    /// The first QEMU that supports it, if libvirt passes it on and also ran with older QEMUs.
    pub qemu: Option<Since>,
    /// Accepted values.
    pub value: ValueSpec,
    /// Words that were added later, each with the first libvirt and QEMU that support it.
    pub versioned_syntax: &'static [(&'static str, Since, Option<Since>)],
    /// The fields of the model that it corresponds to.
    pub fields: [Option<Field>; 2],
}

impl AttributeSpec {
    /// Sets the words that were added later.
    const fn later(mut self, words: &'static [(&'static str, Since, Option<Since>)]) -> Self {
        self.versioned_syntax = words;
        self
    }

    /// The first libvirt and QEMU that support the attribute with this value.
    ///
    /// ```
    /// use vmdisk_libvirt::vocabulary::DISK;
    /// let driver = DISK.child("driver").expect("a disk has one").1;
    /// let vmdisk_libvirt::vocabulary::Pick::Element(driver) = driver.pick else { panic!() };
    /// let io = driver.attribute("io").expect("a driver has it");
    /// assert_eq!(io.since_with("threads"), ((0, 8, 8), None));
    /// assert_eq!(io.since_with("io_uring"), ((6, 3, 0), Some((5, 0, 0))));
    /// ```
    pub fn since_with(&self, value: &str) -> (Since, Option<Since>) {
        let later = self
            .versioned_syntax
            .iter()
            .find(|(word, ..)| *word == value);
        later.map_or((self.since, self.qemu), |(_, libvirt, qemu)| {
            (*libvirt, qemu.or(self.qemu))
        })
    }

    /// Sets the accepted values.
    const fn value(mut self, value: ValueSpec) -> Self {
        self.value = value;
        self
    }

    /// Sets the field of the model that the attribute corresponds to.
    const fn is(mut self, field: Field) -> Self {
        self.fields[if self.fields[0].is_none() { 0 } else { 1 }] = Some(field);
        self
    }
}

/// An attribute without a field of the model, unless [`AttributeSpec::is`] sets one.
const fn attribute(name: &'static str, since: Since, value: ValueSpec) -> AttributeSpec {
    AttributeSpec {
        name,
        since,
        qemu: None,
        value,
        versioned_syntax: &[],
        fields: [None; 2],
    }
}

/// The selection of a child's table.
#[derive(Clone, Copy, Debug)]
pub enum Pick {
    /// Always the same.
    Element(&'static ElementSpec),
    /// A `<backingStore>`, whose table refers to itself.
    BackingStore,
    /// A `<source>`: by the type of the enclosing disk or backing store, see [`source_of`].
    SourceOfType,
    /// A `<controller>`: by its own type.
    ControllerOfType,
}

/// The row of a child.
#[derive(Clone, Copy, Debug)]
pub struct ChildSpec {
    /// Its name.
    pub name: &'static str,
    /// The first libvirt that supports it.
    pub since: Since,
    /// The first QEMU that supports it, if libvirt passes it on.
    pub qemu: Option<Since>,
    /// The table of the child.
    pub pick: Pick,
    /// True if it is repeatable.
    pub repeats: bool,
    /// The fields of the model that the element corresponds to.
    pub fields: [Option<Field>; 2],
}

impl ChildSpec {
    /// Sets the field of the model that the element corresponds to.
    const fn is(mut self, field: Field) -> Self {
        self.fields[if self.fields[0].is_none() { 0 } else { 1 }] = Some(field);
        self
    }

    const fn many(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// True if nothing about the element can be checked.
    pub(crate) const fn says_nothing(&self) -> bool {
        match self.pick {
            Pick::Element(element) => {
                let ElementSpec {
                    name: _,
                    attributes,
                    children,
                    content,
                    may_be_empty: _,
                    may_end_in_space: _,
                    needs,
                    is_judged,
                } = element;
                let is_empty = attributes.is_empty() && children.is_empty() && needs.is_empty();
                is_empty && content.is_none() && !*is_judged
            }
            Pick::BackingStore | Pick::SourceOfType | Pick::ControllerOfType => false,
        }
    }

    /// True if names outside the table are reported.
    pub(crate) const fn is_judged(&self) -> bool {
        match self.pick {
            Pick::Element(element) => element.is_judged,
            Pick::BackingStore | Pick::SourceOfType | Pick::ControllerOfType => true,
        }
    }
}

/// A child that occurs at most once, unless [`ChildSpec::many`] is used.
const fn child(since: Since, element: &'static ElementSpec) -> ChildSpec {
    ChildSpec {
        name: element.name,
        since,
        qemu: None,
        pick: Pick::Element(element),
        repeats: false,
        fields: [None; 2],
    }
}

/// The table of an element.
#[derive(Debug)]
pub struct ElementSpec {
    /// Its name.
    pub name: &'static str,
    /// Its attributes.
    pub attributes: &'static [AttributeSpec],
    /// Its children, in the order in which libvirt writes them.
    pub children: &'static [ChildSpec],
    /// The accepted text, if it has any.
    pub content: Option<ValueSpec>,
    /// True if libvirt reads no text as unset.
    pub may_be_empty: bool,
    /// True if libvirt accepts, or does not read, a number with white space after it.
    pub may_end_in_space: bool,
    /// Requirements without which libvirt refuses it.
    pub needs: &'static [Need],
    /// False for an unmodeled element: names outside the table are not checked then.
    pub is_judged: bool,
}

impl ElementSpec {
    const fn new(name: &'static str) -> Self {
        ElementSpec {
            name,
            attributes: &[],
            children: &[],
            content: None,
            may_be_empty: false,
            may_end_in_space: false,
            needs: &[],
            is_judged: true,
        }
    }

    const fn needs(mut self, needs: &'static [Need]) -> Self {
        self.needs = needs;
        self
    }

    const fn attributes(mut self, attributes: &'static [AttributeSpec]) -> Self {
        self.attributes = attributes;
        self
    }

    const fn children(mut self, children: &'static [ChildSpec]) -> Self {
        self.children = children;
        self
    }

    const fn content(mut self, content: ValueSpec) -> Self {
        self.content = Some(content);
        self
    }

    const fn may_be_empty(mut self) -> Self {
        self.may_be_empty = true;
        self
    }

    const fn may_end_in_space(mut self) -> Self {
        self.may_end_in_space = true;
        self
    }

    /// An unmodeled element, which is only kept.
    pub(crate) const fn other_peoples(name: &'static str) -> Self {
        ElementSpec::new(name).unjudged()
    }

    const fn unjudged(mut self) -> Self {
        self.is_judged = false;
        self
    }

    /// The row of the attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<&'static AttributeSpec> {
        self.attributes
            .iter()
            .find(|known| is_same(known.name, name))
    }

    /// The row of the child with this name, and its position in libvirt's order.
    pub fn child(&self, name: &str) -> Option<(usize, &'static ChildSpec)> {
        self.child_near(name, 0)
    }

    /// As [`child`](Self::child); the search begins at a position, because children are mostly in libvirt's order.
    pub(crate) fn child_near(
        &self,
        name: &str,
        position: usize,
    ) -> Option<(usize, &'static ChildSpec)> {
        let children = self.children;
        let (before, from) = children.split_at(position.min(children.len()));
        let find = |(_, known): &(usize, &ChildSpec)| is_same(known.name, name);
        let found = (position..).zip(from).find(find);
        found.or_else(|| before.iter().enumerate().find(find))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every element that can be reached from a table.
    fn reachable(root: &'static ElementSpec) -> Vec<&'static ElementSpec> {
        let mut seen: Vec<&'static ElementSpec> = Vec::new();
        let mut open = vec![root];
        while let Some(element) = open.pop() {
            if seen.iter().any(|known| std::ptr::eq(*known, element)) {
                continue;
            }
            seen.push(element);
            for child in element.children {
                match child.pick {
                    Pick::Element(inner) => open.push(inner),
                    Pick::BackingStore => open.push(&BACKING_STORE),
                    Pick::SourceOfType => {
                        open.extend(SOURCE_TYPES.iter().map(|word| source_of(word)));
                    }
                    Pick::ControllerOfType => open.extend([&CONTROLLER, &SCSI_CONTROLLER]),
                }
            }
        }
        seen
    }

    #[test]
    fn no_table_names_a_thing_twice() {
        for element in reachable(&DOMAIN).into_iter().chain([&BACKING_STORE]) {
            let attributes: BTreeSet<_> = element.attributes.iter().map(|a| a.name).collect();
            assert_eq!(
                attributes.len(),
                element.attributes.len(),
                "{}",
                element.name
            );
            let children: BTreeSet<_> = element.children.iter().map(|c| c.name).collect();
            assert_eq!(children.len(), element.children.len(), "{}", element.name);
        }
    }

    #[test]
    fn the_rows_of_a_table_are_counted_in_128_bits() {
        for element in reachable(&DOMAIN) {
            assert!(element.children.len() <= 128, "{}", element.name);
        }
    }

    #[test]
    fn what_came_later_is_a_known_word_and_came_later() {
        for element in reachable(&DOMAIN) {
            for attribute in element.attributes {
                let knows = |word: &str| match attribute.value {
                    ValueSpec::Words(words) => words.contains(&word),
                    ValueSpec::WordsAnd(words, others) => {
                        words.contains(&word) || others.contains(&word)
                    }
                    _ => false,
                };
                for (word, since, _) in attribute.versioned_syntax {
                    let name = attribute.name;
                    assert!(knows(word), "{name}={word}");
                    assert!(*since > attribute.since, "{name}={word}");
                }
            }
        }
    }

    #[test]
    fn every_field_of_the_model_has_its_place_in_a_table() {
        let mut fields: Vec<Field> = vec![Field::Domain(DomainField::Domain)];
        for element in reachable(&DOMAIN) {
            fields.extend(element.attributes.iter().flat_map(|a| a.fields).flatten());
            fields.extend(element.children.iter().flat_map(|c| c.fields).flatten());
        }
        let all = DomainField::ALL.iter().map(|field| Field::Domain(*field));
        let all = all.chain(DiskField::ALL.iter().map(|field| Field::Disk(*field)));
        let all = all.chain(ImageField::ALL.iter().map(|field| Field::Image(*field)));
        let all = all.chain(
            ControllerField::ALL
                .iter()
                .map(|field| Field::Controller(*field)),
        );
        let all = all.chain(
            IoThreadField::ALL
                .iter()
                .map(|field| Field::IoThread(*field)),
        );
        let all = all.chain(
            LimitField::ALL
                .iter()
                .flat_map(|field| [Field::Iotune(*field), Field::ThrottleGroup(*field)]),
        );
        // libvirt has no word for it.
        let unsaid = Field::Disk(DiskField::ConfigWce);
        for field in all.filter(|field| *field != unsaid) {
            assert!(fields.contains(&field), "{field:?}");
        }
    }
}
