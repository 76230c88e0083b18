//! Reads the nodes of a disk: a chain of images under filters.

use vmdisk_model::{
    AioMode, Backend, BackendSource, Backing, DetectZeroes, Discard, DiskField, Encryption,
    EncryptionFormat, FieldPath, Format, Image, ImageField, Protocol, Slice, Switch,
};
use vmdisk_rule::reading::INVALID_VALUE;

use super::nodes::Nodes;
use crate::index::{Index, NodeAt};
use crate::notes::{Notes, format_of};
use crate::object::read_throttle::{FilterGroups, read_throttle_group};
use crate::object::secret::read_secret;
use crate::syntax::properties::{Kind, Property};
use crate::syntax::value::{number_of, switch_of};

/// The settings of a node: its own, or inherited from the node that contains it.
///
/// QEMU passes the cache switches and read-only to a child that is written inside its parent, and turns discard on for
/// it; a named child inherits nothing (`bdrv_inherited_options`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeSwitches {
    pub(crate) direct: Option<Switch>,
    pub(crate) no_flush: Option<Switch>,
    pub(crate) discard: Option<Discard>,
    pub(crate) read_only: Option<Switch>,
    pub(crate) auto_read_only: Option<Switch>,
    /// True for a child that is written inside its parent.
    pub(crate) is_inline: bool,
}

impl NodeSwitches {
    const fn handed_down(self) -> Self {
        NodeSwitches {
            discard: Some(Discard::Unmap),
            is_inline: true,
            ..self
        }
    }
}

/// Reads the nodes of disks.
pub(crate) struct NodeReader<'r, 'a> {
    pub(super) index: &'r Index<'a>,
    pub(super) notes: &'r mut Notes<'a>,
    groups: &'r mut FilterGroups<'a>,
}

/// The settings that are inherited from the top node to the bottom of a chain.
pub(crate) struct Chain {
    pub(crate) nth: usize,
    /// The topmost node that is not a filter, with its settings.
    pub(crate) top: Option<(NodeSwitches, usize)>,
    /// The protocol node of the top image.
    pub(crate) bottom: Option<(NodeSwitches, usize)>,
    /// The protocol nodes of the images below the top.
    pub(super) below: Vec<BelowNode>,
    pub(crate) has_format: bool,
}

/// A protocol node below the top image.
pub(super) struct BelowNode {
    pub(super) depth: usize,
    pub(super) option: usize,
    pub(super) switches: NodeSwitches,
    pub(super) aio: Option<AioMode>,
}

/// The image below an image.
enum Below<'a> {
    /// Unset.
    Unspecified,
    /// No image: the chain ends.
    Terminated,
    /// A node, and the settings inherited from its parent.
    Node(NodeAt<'a>, NodeSwitches),
}

impl<'r, 'a> NodeReader<'r, 'a> {
    pub(crate) const fn new(
        index: &'r Index<'a>,
        groups: &'r mut FilterGroups<'a>,
        notes: &'r mut Notes<'a>,
    ) -> Self {
        NodeReader {
            index,
            notes,
            groups,
        }
    }

    /// Reads the chain below `node` into the backend of the nth disk.
    pub(crate) fn read_nodes(&mut self, nth: usize, node: NodeAt<'a>) -> Nodes {
        let mut backend = Backend::new(BackendSource::Empty);
        let mut chain = Chain {
            nth,
            top: None,
            bottom: None,
            below: Vec::new(),
            has_format: false,
        };
        let node = self.read_filters(nth, node, &mut backend);
        if let Some(node) = node {
            backend.source = self.read_top(&mut chain, node, &mut backend);
        }
        self.compare_nodes(&chain);
        // Where the top image has no choice of an engine, those below it have the disk's.
        let is_on_host = |image: &Image| image.protocol.on_host().is_some();
        if backend.aio.is_none() && !backend.image().is_some_and(is_on_host) {
            backend.aio = chain.below.iter().find_map(|it| it.aio);
        }
        let bottom = chain
            .bottom
            .map(|(switches, _)| switches)
            .unwrap_or_default();
        let top = chain.top.map(|(switches, _)| switches).unwrap_or_default();
        let is_on = |switch: Switch| switch == Switch::On;
        let discard = top.discard.map(|discard| match (discard, bottom.discard) {
            (Discard::Unmap, Some(Discard::Unmap)) => Discard::Unmap,
            (Discard::Unmap | Discard::Ignore, _) => Discard::Ignore,
        });
        backend.discard = if chain.has_format {
            discard
        } else {
            bottom.discard
        };
        backend.is_read_only = top.read_only.is_some_and(is_on);
        let direct = bottom.direct.or(top.direct.map(|_| Switch::Off)).map(is_on);
        let no_flush = top.no_flush.or(bottom.no_flush).map(is_on);
        // The model has one cache mode and one `aio` for all images of a disk.
        for node in chain.below.iter().filter(|it| !it.switches.is_inline) {
            let switch = |value: Option<Switch>| value.is_some_and(is_on);
            let differs = [
                (
                    "cache.direct",
                    switch(node.switches.direct) != direct.unwrap_or_default(),
                ),
                (
                    "cache.no-flush",
                    switch(node.switches.no_flush) != no_flush.unwrap_or_default(),
                ),
                (
                    "aio",
                    node.aio.unwrap_or(AioMode::Threads) != backend.aio.unwrap_or(AioMode::Threads),
                ),
            ];
            let at = FieldPath::Image(nth, node.depth, ImageField::Image);
            for (key, _) in differs.iter().filter(|(_, differs)| *differs) {
                self.notes.keep(at, *key, self.index.span(node.option));
            }
        }
        let is_read_only_below =
            chain.has_format && !backend.is_read_only && bottom.read_only.is_some_and(is_on);
        Nodes {
            backend,
            is_read_only_below,
            // The node that opens the file decides.
            direct,
            // The node that receives a flush first decides.
            no_flush,
        }
    }

    /// The child of a node under a key: a reference by name, or a nested object.
    pub(super) fn child(
        &mut self,
        nth: usize,
        node: &NodeAt<'a>,
        key: &'static str,
    ) -> Option<NodeAt<'a>> {
        // Next to a file name, `file.locking` and similar keys are settings of that file.
        let is_named = key == "file"
            && self.index.is_drive(node.option)
            && node.view.prefix.is_empty()
            && node.view.get(key).is_some();
        if node.view.has_within(key) && !is_named {
            return Some(NodeAt {
                option: node.option,
                view: node.view.inside(key),
            });
        }
        let is_name =
            key == "file" && self.index.is_drive(node.option) && node.view.prefix.is_empty();
        let property = node.view.get(key).filter(|_| !is_name)?;
        if property.kind == Kind::Null {
            return None;
        }
        let property = node.view.take(key)?;
        let name = property.value.as_str();
        let Some(child) = self.index.node(name).cloned() else {
            let at = FieldPath::Disk(nth, DiskField::Source);
            let message = format!("node `{name}` is not defined");
            let help = "add a -blockdev for it before this one";
            self.notes.undefined(at, property.span, message, help);
            return None;
        };
        self.notes
            .own(child.option, FieldPath::Disk(nth, DiskField::Disk));
        Some(child)
    }

    /// Skips filters, down to the first image.
    fn read_filters(
        &mut self,
        nth: usize,
        mut node: NodeAt<'a>,
        backend: &mut Backend,
    ) -> Option<NodeAt<'a>> {
        self.notes
            .own(node.option, FieldPath::Disk(nth, DiskField::Disk));
        let mut throttles: Vec<(usize, &'a Property, bool)> = Vec::new();
        let image = self.walk_filters(nth, &mut node, backend, &mut throttles);
        self.read_throttles(nth, backend, &throttles);
        image.then_some(node)
    }

    /// Interprets the throttle nodes of a disk, from the top down: as its own limits, or as filters of the guest's
    /// groups if there are several or if their names show it.
    fn read_throttles(
        &mut self,
        nth: usize,
        backend: &mut Backend,
        throttles: &[(usize, &'a Property, bool)],
    ) {
        if let [(option, group, false)] = throttles {
            self.notes
                .record_option(FieldPath::Disk(nth, DiskField::Iotune), *option);
            backend.iotune = read_throttle_group(nth, group, self.index, self.notes).map(Box::new);
            return;
        }
        for (option, group, _) in throttles.iter().rev() {
            self.notes
                .record_option(FieldPath::Disk(nth, DiskField::ThrottleFilters), *option);
            let name = self.groups.of_filter(nth, group, self.index, self.notes);
            backend.throttle_filters.push(name);
        }
    }

    /// Skips filters down to the first image; false if there is none.
    fn walk_filters(
        &mut self,
        nth: usize,
        node: &mut NodeAt<'a>,
        backend: &mut Backend,
        throttles: &mut Vec<(usize, &'a Property, bool)>,
    ) -> bool {
        // A loop would not end.
        for _ in 0..=self.index.options().len().min(crate::names::DEEPEST) {
            match node.view.get("driver").map(|driver| driver.value.as_str()) {
                Some("throttle") => {
                    let name = node.view.get("node-name");
                    let is_libvirts = name.is_some_and(|name| {
                        let name = name.value.as_str();
                        name.starts_with("libvirt-") && name.ends_with("-filter")
                    });
                    if let Some(group) = node.view.take("throttle-group") {
                        let is_of_guest = group.value.as_str().starts_with("limits-");
                        throttles.push((node.option, group, is_libvirts || is_of_guest));
                    }
                }
                Some("copy-on-read") => {
                    let at = FieldPath::Disk(nth, DiskField::CopyOnRead);
                    self.notes.record_option(at, node.option);
                    backend.copy_on_read = Some(Switch::On);
                }
                Some("compress" | "preallocate" | "blkdebug" | "blkverify" | "blkreplay") => {
                    let driver = node.view.take("driver");
                    if let Some(driver) = driver {
                        let at = FieldPath::Disk(nth, DiskField::Source);
                        self.notes.keep(at, driver.value.as_str(), driver.span);
                    }
                }
                Some(_) | None => return true,
            }
            if !self.notes.count_node(nth, node.option) {
                return false;
            }
            node.view.accept(&[
                "driver",
                "node-name",
                "read-only",
                "auto-read-only",
                "discard",
                "cache.direct",
                "cache.no-flush",
            ]);
            let zeroes = node.view.get("detect-zeroes");
            if let Some(zeroes) = zeroes.filter(|it| it.value.as_str() == "off") {
                node.view.members.accept_value(zeroes);
            }
            let Some(child) = self.child(nth, node, "file") else {
                return false;
            };
            *node = child;
        }
        false
    }

    fn read_top(
        &mut self,
        chain: &mut Chain,
        node: NodeAt<'a>,
        backend: &mut Backend,
    ) -> BackendSource {
        self.read_chain(chain, node, backend)
            .map_or(BackendSource::Empty, BackendSource::from)
    }

    /// The settings of a node, and the ones inherited from its parent.
    pub(super) fn switches(
        &mut self,
        nth: usize,
        depth: usize,
        node: &NodeAt<'a>,
        parent: NodeSwitches,
    ) -> NodeSwitches {
        let at = |field| match depth {
            0 => FieldPath::Disk(nth, field),
            // The switches of a backing image are not fields of the disk.
            below => FieldPath::Image(nth, below, ImageField::Image),
        };
        let mut read = |key: &str, field: DiskField| {
            let property = node.view.take(key)?;
            self.notes.node_switch(at(field), property)
        };
        let direct = read("cache.direct", DiskField::Cache);
        let no_flush = read("cache.no-flush", DiskField::Cache);
        let read_only = read("read-only", DiskField::ReadOnly)
            .or_else(|| read("readonly", DiskField::ReadOnly));
        let auto_read_only = node.view.take_text("auto-read-only").and_then(switch_of);
        let discard = node.view.take("discard").and_then(|property| {
            self.notes.word(
                at(DiskField::Discard),
                property,
                &["unmap", "ignore"],
                discard_of,
            )
        });
        NodeSwitches {
            direct: direct.or(parent.direct),
            no_flush: no_flush.or(parent.no_flush),
            discard: discard.or(parent.discard),
            read_only: read_only.or(parent.read_only),
            auto_read_only: auto_read_only.or(parent.auto_read_only),
            is_inline: parent.is_inline,
        }
    }

    /// Reads an image and those below it, without recursion: chains may be long. `None` if the topmost node opens no
    /// known source.
    fn read_chain(
        &mut self,
        chain: &mut Chain,
        top: NodeAt<'a>,
        backend: &mut Backend,
    ) -> Option<Image> {
        let mut images = Vec::new();
        let mut below = Below::Node(top, NodeSwitches::default());
        while let Below::Node(node, handed) = below {
            let depth = images.len();
            if depth > self.index.options().len() || depth > crate::names::DEEPEST {
                let at = FieldPath::Disk(chain.nth, DiskField::Source);
                let span = self.index.span(node.option);
                self.notes.problem(
                    &INVALID_VALUE,
                    at,
                    span,
                    "the chain of backing images is a loop",
                );
                below = Below::Unspecified;
                break;
            }
            if !self.notes.count_node(chain.nth, node.option) {
                below = Below::Unspecified;
                break;
            }
            let (image, next) = self.read_image(chain, depth, node, handed, backend);
            images.push(image);
            below = next;
        }
        let mut backing = match below {
            Below::Terminated => Backing::Terminated,
            Below::Unspecified | Below::Node(..) => Backing::Unspecified,
        };
        for image in images.into_iter().rev() {
            backing = image.map_or(Backing::Unspecified, |image| {
                Backing::Image(Box::new(Image { backing, ..image }))
            });
        }
        match backing {
            Backing::Image(image) => Some(*image),
            Backing::Terminated | Backing::Unspecified => None,
        }
    }

    /// Reads an image without those below it; `None` if its node opens no known source.
    fn read_image(
        &mut self,
        chain: &mut Chain,
        depth: usize,
        node: NodeAt<'a>,
        parent: NodeSwitches,
        backend: &mut Backend,
    ) -> (Option<Image>, Below<'a>) {
        let nth = chain.nth;
        node.view.accept(&["node-name"]);
        self.notes
            .record_option(FieldPath::Image(nth, depth, ImageField::Image), node.option);
        let switches = self.switches(nth, depth, &node, parent);
        let drive_format = node
            .view
            .get("format")
            .filter(|_| self.index.is_drive(node.option));
        let driver = node.view.get("driver").or(drive_format);
        let format = driver.and_then(format_of);
        if depth == 0 {
            chain.top = Some((switches, node.option));
            let at = FieldPath::Disk(nth, DiskField::Driver);
            self.notes.record_option(at, node.option);
            self.notes.slots_mut().top.insert(nth, node.option);
            self.read_top_options(nth, &node, backend);
        } else {
            // Nothing writes to a backing image.
            node.view.accept(&["detect-zeroes"]);
        }
        let is_drive = self.index.is_drive(node.option) && node.view.prefix.is_empty();
        let names_protocol = driver.is_some_and(|driver| driver.key == "driver");
        if format.is_none() && (!is_drive || names_protocol) {
            // A protocol node without a format above it is raw.
            let image = self.read_protocol(chain, depth, &node, switches, backend);
            let image = image.map(|image| Image {
                format: Some(plain_format(&image.protocol)),
                ..image
            });
            return (image, Below::Unspecified);
        }
        if let Some(driver) = driver {
            node.view.members.accept_value(driver);
            self.read_format(nth, depth, driver, format);
        }
        chain.has_format |= depth == 0;
        let below = self.child(nth, &node, "file");
        let is_inline = node.view.has_within("file");
        let handed = if is_inline || is_drive {
            switches.handed_down()
        } else {
            NodeSwitches::default()
        };
        let slice = slice_of(&node);
        if let (Some(_), Some(property)) = (slice, node.view.get("size")) {
            self.notes
                .record(FieldPath::Image(nth, depth, ImageField::Slice), property);
        }
        let image = match below {
            Some(below) => {
                below.view.accept(&["node-name"]);
                let switches = self.switches(nth, depth, &below, handed);
                self.read_protocol(chain, depth, &below, switches, backend)
            }
            None if is_drive => self.read_file_name(chain, depth, &node, handed, backend),
            None => None,
        };
        let backing = self.read_backing(nth, &node, switches);
        let data_file = self.read_data_file(nth, &node);
        let Some(mut image) = image else {
            return (None, backing);
        };
        image.slice = slice.or(image.slice);
        image.data_file = data_file;
        if depth > 0
            && let Some(property) = node.view.take("cache-size")
        {
            let at = FieldPath::Image(nth, depth, ImageField::MetadataCacheSize);
            let is_drive = self.index.is_drive(node.option);
            image.metadata_cache_size = self.notes.bytes(at, property, is_drive);
        }
        let format = match format {
            Some(Format::Raw) => Some(plain_format(&image.protocol)),
            other => other,
        };
        let (format, encryption) = self.read_encryption(nth, depth, &node, format);
        image.encryption = encryption.or(image.encryption);
        image.format = format;
        (Some(image), backing)
    }

    /// Records the format of an image.
    fn read_format(&mut self, nth: usize, depth: usize, driver: &Property, format: Option<Format>) {
        let at = FieldPath::Image(nth, depth, ImageField::Format);
        self.notes.record_value(at, driver);
        if format.is_none() {
            self.notes.report_format(at, driver);
        }
    }

    /// Reads the encryption of a format node; a LUKS container is a raw image that is encrypted.
    fn read_encryption(
        &mut self,
        nth: usize,
        depth: usize,
        node: &NodeAt<'a>,
        format: Option<Format>,
    ) -> (Option<Format>, Option<Box<Encryption>>) {
        let at = FieldPath::Image(nth, depth, ImageField::Encryption);
        let (key, encryption_format) = match format {
            Some(Format::Luks) => ("key-secret", EncryptionFormat::Luks),
            Some(Format::Qcow2 | Format::Qcow) => {
                if node.view.get("encrypt.key-secret").is_none() {
                    return (format, None);
                }
                let format = match node.view.take_text("encrypt.format") {
                    Some("luks") => EncryptionFormat::Luks,
                    Some(_) => EncryptionFormat::Qcow,
                    None => return (format, None),
                };
                ("encrypt.key-secret", format)
            }
            _ => return (format, None),
        };
        let Some(property) = node.view.take(key) else {
            return (format, None);
        };
        self.notes.record(at, property);
        let mut secret = read_secret(property.value.as_str(), self.index, self.notes);
        secret.secret_type = Some("passphrase".to_owned());
        let encryption = Encryption {
            format: Some(encryption_format),
            secrets: vec![secret],
            ..Encryption::default()
        };
        let format = match format {
            Some(Format::Luks) => Some(Format::Raw),
            other => other,
        };
        (format, Some(Box::new(encryption)))
    }

    /// Reads the external data file of a qcow2 image; it is not an image of the chain.
    fn read_data_file(&mut self, nth: usize, node: &NodeAt<'a>) -> Option<Box<Image>> {
        let mut node = self.child(nth, node, "data-file")?;
        let mut slice = None;
        // A format node, and a node that selects a slice.
        for _ in 0..2 {
            node.view.accept(&DATA_KEYS);
            if node
                .view
                .get("driver")
                .is_none_or(|it| it.value.as_str() != "raw")
            {
                break;
            }
            node.view.accept(&["driver"]);
            slice = slice_of(&node).or(slice);
            node = self.child(nth, &node, "file")?;
        }
        node.view.accept(&DATA_KEYS);
        let driver = node.view.take_text("driver")?;
        let name = node.view.take("filename").map(|it| it.value.as_str());
        let mut image = self.source_of(&node, driver, name);
        image.format = Some(plain_format(&image.protocol));
        image.slice = slice.or(image.slice);
        Some(Box::new(image))
    }

    /// The image below an image.
    fn read_backing(&mut self, nth: usize, node: &NodeAt<'a>, switches: NodeSwitches) -> Below<'a> {
        if let Some(property) = node.view.get("backing")
            && (property.kind == Kind::Null || property.value.as_str().is_empty())
        {
            node.view.members.accept_value(property);
            return Below::Terminated;
        }
        let handed = if node.view.has_within("backing") {
            // A backing image is opened for reading, whatever its overlay is.
            NodeSwitches {
                read_only: Some(Switch::On),
                ..switches.handed_down()
            }
        } else {
            NodeSwitches::default()
        };
        self.child(nth, node, "backing")
            .map_or(Below::Unspecified, |below| Below::Node(below, handed))
    }

    /// Options that only the topmost node has.
    fn read_top_options(&mut self, nth: usize, node: &NodeAt<'a>, backend: &mut Backend) {
        let at = |field| FieldPath::Disk(nth, field);
        if let Some(property) = node.view.take("detect-zeroes") {
            let at = at(DiskField::DetectZeroes);
            backend.detect_zeroes =
                self.notes
                    .word(at, property, DetectZeroes::WORDS, DetectZeroes::from_word);
        }
        if let Some(property) = node.view.take("cache-size") {
            let at = at(DiskField::MetadataCacheSize);
            let is_drive = self.index.is_drive(node.option);
            backend.metadata_cache_size = self.notes.bytes(at, property, is_drive);
        }
        if let Some(property) = node.view.take("discard-no-unref") {
            backend.discard_no_unref = self.notes.switch(at(DiskField::DiscardNoUnref), property);
        }
    }
}

/// Options of a data file's nodes that have the values of the image.
const DATA_KEYS: [&str; 9] = [
    "node-name",
    "read-only",
    "auto-read-only",
    "discard",
    "detect-zeroes",
    "cache.direct",
    "cache.no-flush",
    "aio",
    "locking",
];

/// The format of an image whose format node is plain raw.
const fn plain_format(protocol: &Protocol) -> Format {
    match protocol {
        // libvirt's name for a file system generated from a directory.
        Protocol::Directory { .. } => Format::Fat,
        _ => Format::Raw,
    }
}

/// The slice of a file that a raw node selects.
pub(super) fn slice_of(node: &NodeAt<'_>) -> Option<Slice> {
    let number = |key: &str| number_of(node.view.get(key)?.value.as_str());
    let size = number("size")?;
    let offset = match node.view.get("offset") {
        Some(_) => number("offset")?,
        None => 0,
    };
    node.view.accept(&["size", "offset"]);
    Some(Slice { offset, size })
}

fn discard_of(word: &str) -> Option<Discard> {
    match word {
        "unmap" | "on" => Some(Discard::Unmap),
        "ignore" | "off" => Some(Discard::Ignore),
        _ => None,
    }
}
