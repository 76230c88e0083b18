//! An index of the options of a command line, by option name and by defined name; immutable once built.

use std::collections::HashMap;

use vmdisk_source::Span;

use crate::members::{Accepted, Members, View};
use crate::syntax::option::WrittenOption;

/// A node of the block layer, and the option that contains it.
#[derive(Clone, Debug)]
pub(crate) struct NodeAt<'a> {
    pub(crate) option: usize,
    pub(crate) view: View<'a>,
}

impl<'a> NodeAt<'a> {
    /// A node with its own option.
    pub(crate) const fn of(option: usize, members: Members<'a>) -> Self {
        NodeAt {
            option,
            view: View::whole(members),
        }
    }
}

/// An index of the options of a command line, by option name and by defined name. Of two definitions the first counts.
pub(crate) struct Index<'a> {
    options: &'a [WrittenOption],
    accepted: Option<&'a Accepted>,
    by_name: HashMap<&'a str, Vec<usize>>,
    /// Nodes of `-blockdev` by name.
    nodes: HashMap<&'a str, NodeAt<'a>>,
    /// `-drive`, `-chardev` and `-object` by id.
    drives: HashMap<&'a str, usize>,
    chardevs: HashMap<&'a str, usize>,
    objects: HashMap<&'a str, usize>,
}

impl<'a> Index<'a> {
    /// The options of a document that was read.
    pub(crate) fn new(options: &'a [WrittenOption]) -> Self {
        Self::with(options, None)
    }

    /// The options for readers, which record the values that they accept.
    pub(crate) fn to_read(options: &'a [WrittenOption], accepted: &'a Accepted) -> Self {
        Self::with(options, Some(accepted))
    }

    fn with(options: &'a [WrittenOption], accepted: Option<&'a Accepted>) -> Self {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (nth, option) in options.iter().enumerate() {
            by_name.entry(&option.name).or_default().push(nth);
        }
        let mut index = Index {
            options,
            accepted,
            by_name,
            nodes: HashMap::new(),
            drives: HashMap::new(),
            chardevs: HashMap::new(),
            objects: HashMap::new(),
        };
        index.nodes = index.by_key("blockdev", "node-name", NodeAt::of);
        index.drives = index.by_key("drive", "id", |option, _| option);
        index.chardevs = index.by_key("chardev", "id", |option, _| option);
        index.objects = index.by_key("object", "id", |option, _| option);
        index
    }

    fn by_key<T>(
        &self,
        name: &str,
        key: &str,
        entry: impl Fn(usize, Members<'a>) -> T,
    ) -> HashMap<&'a str, T> {
        let mut found = HashMap::new();
        for (option, properties) in self.of_name(name) {
            if let Some(key) = properties.get(key) {
                found
                    .entry(key.value.as_str())
                    .or_insert_with(|| entry(option, properties));
            }
        }
        found
    }

    /// All options, in order.
    pub(crate) const fn options(&self) -> &'a [WrittenOption] {
        self.options
    }

    /// The values of an option that has parts.
    pub(crate) fn properties(&self, option: usize) -> Option<Members<'a>> {
        let properties = self.options[option].properties.as_ref()?;
        Some(Members::new(properties, self.accepted))
    }

    /// The place of an option.
    pub(crate) fn span(&self, option: usize) -> Span {
        self.options[option].span
    }

    /// True if an option is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The options of a name that have parts, with their indexes.
    pub(crate) fn of_name(
        &self,
        name: &str,
    ) -> impl DoubleEndedIterator<Item = (usize, Members<'a>)> + use<'_, 'a> {
        let numbers = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        numbers
            .iter()
            .filter_map(|option| Some((*option, self.properties(*option)?)))
    }

    /// The options of a name, with their indexes and places.
    pub(crate) fn of_any(&self, name: &str) -> impl Iterator<Item = (usize, Span)> + use<'_, 'a> {
        let numbers = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        numbers.iter().map(|option| (*option, self.span(*option)))
    }

    /// The options of the machine, which have two names.
    pub(crate) fn machines(
        &self,
    ) -> impl DoubleEndedIterator<Item = (usize, Members<'a>)> + use<'_, 'a> {
        self.of_name("machine").chain(self.of_name("M"))
    }

    /// The devices with their drivers, in order.
    pub(crate) fn devices(
        &self,
    ) -> impl Iterator<Item = (usize, &'a str, Members<'a>)> + use<'_, 'a> {
        self.of_name("device").filter_map(|(option, device)| {
            Some((option, device.get("driver")?.value.as_str(), device))
        })
    }

    /// The objects of a type.
    pub(crate) fn objects(
        &self,
        kind: &'static str,
    ) -> impl Iterator<Item = (usize, Members<'a>)> + use<'_, 'a> {
        self.of_name("object")
            .filter(move |(_, object)| object.value("qom-type") == Some(kind))
    }

    /// A node of `-blockdev` by its name.
    pub(crate) fn node(&self, name: &str) -> Option<&NodeAt<'a>> {
        self.nodes.get(name)
    }

    /// A `-drive` by its id.
    pub(crate) fn drive(&self, id: &str) -> Option<usize> {
        let named = self.drives.get(id).copied();
        named.or_else(|| self.unnamed_drive(id))
    }

    /// The `-drive if=none` without an id that QEMU calls `none0`, `none1`, …: by its number among all of `if=none`.
    fn unnamed_drive(&self, id: &str) -> Option<usize> {
        let number: usize = id.strip_prefix("none")?.parse().ok()?;
        let drives = self.of_name("drive");
        let mut loose = drives.filter(|(_, drive)| drive.value("if") == Some("none"));
        let (option, drive) = loose.nth(number)?;
        drive.get("id").is_none().then_some(option)
    }

    /// A `-chardev` by its id.
    pub(crate) fn chardev(&self, id: &str) -> Option<usize> {
        self.chardevs.get(id).copied()
    }

    /// An `-object` by its id.
    pub(crate) fn object(&self, id: &str) -> Option<usize> {
        self.objects.get(id).copied()
    }

    /// Every name that a device's drive can refer to.
    pub(crate) fn drive_names(&self) -> impl Iterator<Item = &'a str> {
        self.nodes.keys().chain(self.drives.keys()).copied()
    }

    /// True for an option that is a `-drive` or one of its short forms, and not a `-blockdev`.
    pub(crate) fn is_drive(&self, option: usize) -> bool {
        self.options[option].name != "blockdev"
    }
}
