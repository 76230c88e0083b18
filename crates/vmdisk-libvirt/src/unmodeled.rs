//! Text that a reader does not understand, and that a writer returns unchanged.

use std::collections::{BTreeMap, BTreeSet};

/// The unmodeled parts of one element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnmodeledParts {
    /// Attributes, each by its name, and as written (`name='value'`).
    pub(crate) attributes: Vec<(String, String)>,
    /// Inner elements, as written.
    pub(crate) children: Vec<String>,
    /// Repeated inner elements, by name, with their text. They must stay after the first, otherwise they would become
    /// effective.
    pub(crate) duplicates: Vec<(String, String)>,
    /// Text without a field in the model, unescaped.
    pub(crate) text: Option<String>,
}

impl UnmodeledParts {
    pub(crate) fn is_empty(&self) -> bool {
        let UnmodeledParts {
            attributes,
            children,
            duplicates,
            text,
        } = self;
        attributes.is_empty() && children.is_empty() && duplicates.is_empty() && text.is_none()
    }

    /// The index of the attribute with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|(known, _)| known == name)
    }
}

/// Position of an element in its disk, controller or guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnmodeledPath {
    /// Depth in the backing chain.
    pub(crate) depth: usize,
    /// The element, such as `driver/iothreads`; empty for the outermost.
    pub(crate) path: &'static str,
    /// Index among several elements of its kind.
    pub(crate) nth: usize,
}

impl UnmodeledPath {
    pub(crate) const fn path(path: &'static str) -> Self {
        UnmodeledPath {
            depth: 0,
            path,
            nth: 0,
        }
    }

    pub(crate) const fn nth(path: &'static str, nth: usize) -> Self {
        UnmodeledPath {
            depth: 0,
            path,
            nth,
        }
    }

    pub(crate) const fn deep(path: &'static str, depth: usize) -> Self {
        UnmodeledPath {
            depth,
            path,
            nth: 0,
        }
    }
}

pub(crate) static NOTHING: UnmodeledParts = UnmodeledParts {
    attributes: Vec::new(),
    children: Vec::new(),
    duplicates: Vec::new(),
    text: None,
};

/// The unmodeled parts of one disk, one controller or the rest of the guest: attributes and elements that are unknown,
/// or known but not modelled, as written.
///
/// Comments and white space between elements are not kept. To change single values of a file, use
/// [`edits`](crate::edits).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnmodeledContent {
    parts: BTreeMap<UnmodeledPath, UnmodeledParts>,
    /// Elements of the source that were written in the disk, as libvirt did before 3.9.
    in_old_place: BTreeSet<&'static str>,
}

impl UnmodeledContent {
    /// True if the model covers everything.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The kept parts, by name: `driver/@ioeventfd` for an attribute, `source/encryption` for an element.
    ///
    /// An empty value, and `cache='default'`, mean the same as an absent attribute; they are omitted.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.parts.iter().flat_map(|(at, parts)| {
            let inside = |name: &str| match at.path {
                "" => name.to_owned(),
                path => format!("{path}/{name}"),
            };
            let is_open = |(name, written): &&(String, String)| {
                let value = written
                    .split_once('=')
                    .map_or("", |(_, value)| value.trim());
                let value = value.trim_matches(['\'', '"']);
                value.is_empty() || (name == "cache" && value == "default")
            };
            let attributes = parts.attributes.iter().filter(|it| !is_open(it));
            let duplicates = parts.duplicates.iter().map(|(name, _)| name.as_str());
            let children = parts.children.iter().map(|child| name_of(child));
            let text = parts.text.iter().map(|_| inside("text()"));
            attributes
                .map(|(name, _)| inside(&format!("@{name}")))
                .chain(children.chain(duplicates).map(inside))
                .chain(text)
                .collect::<Vec<String>>()
        })
    }

    /// Elements that give the guest data without being disks: SCSI host devices, and persistent memory.
    pub fn elements_with_data(&self) -> impl Iterator<Item = ElementWithData<'_>> {
        let children = self.parts.values().flat_map(|parts| &parts.children);
        children.filter_map(|text| {
            let tag = &text[..text.find('>')?];
            let has = |key: &str, word: &str| {
                tag.contains(&format!("{key}='{word}'"))
                    || tag.contains(&format!("{key}=\"{word}\""))
            };
            let name = name_of(text);
            let (key, kinds): (&str, &[&'static str]) = match name {
                "hostdev" => ("type", &["scsi", "scsi_host"]),
                "memory" => ("model", &["nvdimm", "virtio-pmem"]),
                _ => return None,
            };
            let kind = kinds.iter().find(|kind| has(key, kind))?;
            Some(ElementWithData { name, kind, text })
        })
    }

    pub(crate) fn note(&mut self, at: UnmodeledPath, parts: UnmodeledParts) {
        if !parts.is_empty() {
            self.parts.insert(at, parts);
        }
    }

    /// Records that an element of the disk's source was written in the disk.
    pub(crate) fn note_old_place(&mut self, name: &'static str) {
        self.in_old_place.insert(name);
    }

    /// True if an element of the source was written in the disk; only possible for the top image.
    pub(crate) fn is_in_old_place(&self, depth: usize, name: &'static str) -> bool {
        depth == 0 && self.in_old_place.contains(name)
    }

    pub(crate) fn at(&self, at: UnmodeledPath) -> &UnmodeledParts {
        self.parts.get(&at).unwrap_or(&NOTHING)
    }

    /// True if something is kept at or below `path`, at this depth.
    pub(crate) fn has_within(&self, path: &'static str, depth: usize) -> bool {
        self.parts.keys().any(|at| {
            at.depth == depth
                && at
                    .path
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// An element that gives the guest data without being a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementWithData<'k> {
    /// Its name.
    pub name: &'k str,
    /// Its `type` or `model`.
    pub kind: &'static str,
    /// The unchanged text of the element.
    pub text: &'k str,
}

/// The unmodeled parts of a document, for writing it back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmodeled {
    /// Of the guest: everything outside its disks and their controllers.
    pub guest: UnmodeledContent,
    /// Of each disk, in the order of [`Domain::disks`](vmdisk_model::Domain::disks).
    pub disks: Vec<UnmodeledContent>,
    /// Of each controller, in the order of [`Domain::controllers`](vmdisk_model::Domain::controllers).
    pub controllers: Vec<UnmodeledContent>,
}

static NOTHING_INSIDE: UnmodeledContent = UnmodeledContent {
    parts: BTreeMap::new(),
    in_old_place: BTreeSet::new(),
};

impl Unmodeled {
    /// The unmodeled parts of the nth disk; empty for a disk that was added later.
    pub fn disk(&self, nth: usize) -> &UnmodeledContent {
        self.disks.get(nth).unwrap_or(&NOTHING_INSIDE)
    }

    /// The unmodeled parts of the nth controller; empty for one that was added later.
    pub fn controller(&self, nth: usize) -> &UnmodeledContent {
        self.controllers.get(nth).unwrap_or(&NOTHING_INSIDE)
    }
}

/// The written name of an element.
pub(crate) fn name_of(element: &str) -> &str {
    let element = element.strip_prefix('<').unwrap_or(element);
    let end = element.find(['>', '/', ' ', '\t', '\r', '\n']);
    &element[..end.unwrap_or(element.len())]
}
