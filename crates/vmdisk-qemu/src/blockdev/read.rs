//! Reads the nodes of a disk: a chain of images under filters.

use vmdisk_model::{
    AioMode, Backend, BackendSource, Backing, Bytes, DetectZeroes, DevicePath, Discard, DiskField,
    FieldPath, Format, Image, ImageField, OtherSource, Protocol, Switch,
};
use vmdisk_source::ProblemKind;

use crate::reader::{NodeAt, Reader, switch_of};
use crate::syntax::properties::{Kind, Property};

/// What a node says, or has from the node that it is written in.
///
/// QEMU hands the cache switches and read-only down to a child that is written inside its parent, and
/// turns discard on for it; a child that is named is on its own (`bdrv_inherited_options`).
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

/// What came of the nodes of a disk.
pub(crate) struct Nodes {
    pub(crate) backend: Backend,
    /// Whether requests go around the page cache, and whether flushes are dropped; `None` if no node says.
    pub(crate) direct: Option<bool>,
    pub(crate) no_flush: Option<bool>,
}

/// Formats by QEMU's name.
fn format_of(driver: &str) -> Option<Format> {
    match driver {
        "vhdx" => Some(Format::Vhd),
        "parallels" => Some(Format::Ploop),
        "raw" | "qcow2" | "qcow" | "qed" | "vmdk" | "vdi" | "vpc" | "luks" | "bochs" | "cloop"
        | "dmg" => Format::from_wire(driver),
        _ => None,
    }
}

/// libvirt's word for the kind of source that a protocol is.
fn source_type(driver: &str) -> &str {
    match driver {
        "nbd" | "rbd" | "iscsi" | "ssh" | "http" | "https" | "ftp" | "ftps" | "tftp"
        | "gluster" | "sheepdog" | "vxhs" | "nfs" => "network",
        "vvfat" | "fat" => "dir",
        "virtio-blk-vhost-vdpa" => "vhostvdpa",
        other => other,
    }
}

/// The driver that a file name asks for by its beginning, as `-drive` has it.
fn driver_of_name(name: &str) -> Option<(&'static str, &str)> {
    const PREFIXES: [&str; 14] = [
        "nbd", "rbd", "iscsi", "ssh", "http", "https", "ftp", "ftps", "tftp", "gluster",
        "sheepdog", "nfs", "nvme", "fat",
    ];
    let (prefix, rest) = name.split_once(':')?;
    let prefix = prefix.split('+').next().unwrap_or(prefix);
    if prefix == "file" {
        return Some(("file", rest));
    }
    PREFIXES
        .iter()
        .find(|known| **known == prefix)
        .map(|known| (*known, name))
}

/// The driver of a plain path: QEMU looks at the file, and here the path has to do.
fn driver_of_path(path: &str) -> &'static str {
    let is_device = path.starts_with("/dev/")
        && !path.starts_with("/dev/shm/")
        && !path.starts_with("/dev/fdset/");
    if is_device { "host_device" } else { "file" }
}

/// What is carried from the top node to the bottom of a chain.
pub(crate) struct Chain {
    pub(crate) nth: usize,
    /// The topmost node that is no filter, and what it says.
    pub(crate) top: Option<(NodeSwitches, usize)>,
    /// The protocol node of the top image.
    pub(crate) bottom: Option<(NodeSwitches, usize)>,
    pub(crate) has_format: bool,
}

impl<'a> Reader<'a> {
    /// Reads the chain below `node` into the backend of the nth disk.
    pub(crate) fn read_nodes(&mut self, nth: usize, node: NodeAt<'a>) -> Nodes {
        let mut backend = Backend::new(BackendSource::Empty);
        let mut chain = Chain {
            nth,
            top: None,
            bottom: None,
            has_format: false,
        };
        let node = self.read_filters(nth, node, &mut backend);
        if let Some(node) = node {
            backend.source = self.read_top(&mut chain, node, &mut backend);
        }
        self.compare_nodes(&chain);
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
        Nodes {
            backend,
            // The node that opens the file decides.
            direct: bottom.direct.or(top.direct.map(|_| Switch::Off)).map(is_on),
            // The node that a flush reaches first.
            no_flush: top.no_flush.or(bottom.no_flush).map(is_on),
        }
    }

    /// The child of a node under a key: by name, or written inside.
    fn child(&mut self, nth: usize, node: &NodeAt<'a>, key: &'static str) -> Option<NodeAt<'a>> {
        if node.view.has_within(key) {
            return Some(NodeAt {
                option: node.option,
                view: node.view.inside(key),
            });
        }
        let is_name = key == "file" && self.is_drive(node.option) && node.view.prefix.is_empty();
        let property = node.view.peek(key).filter(|_| !is_name)?;
        if property.kind == Kind::Null {
            return None;
        }
        let property = node.view.get(key)?;
        let name = property.value.as_str();
        let Some(child) = self.nodes.get(name).cloned() else {
            let at = FieldPath::Disk(nth, DiskField::Source);
            let message = format!("no node is called `{name}`");
            self.problem(ProblemKind::MissingValue, at, property.span, message)
                .help = Some("write its -blockdev in front of this one".to_owned());
            return None;
        };
        self.owners
            .insert(child.option, FieldPath::Disk(nth, DiskField::Disk));
        Some(child)
    }

    /// Goes through filters, down to the first image.
    fn read_filters(
        &mut self,
        nth: usize,
        mut node: NodeAt<'a>,
        backend: &mut Backend,
    ) -> Option<NodeAt<'a>> {
        self.owners
            .insert(node.option, FieldPath::Disk(nth, DiskField::Disk));
        // No graph has more nodes than there are; a ring would have no end.
        for _ in 0..=self.options.len() {
            match node.view.peek("driver").map(|driver| driver.value.as_str()) {
                Some("throttle") => {
                    if let Some(group) = node.view.get("throttle-group") {
                        let at = FieldPath::Disk(nth, DiskField::Iotune);
                        self.record_option(at, node.option);
                        backend.iotune = self.read_throttle_group(nth, group);
                    }
                }
                Some("copy-on-read") => {
                    let at = FieldPath::Disk(nth, DiskField::CopyOnRead);
                    self.record_option(at, node.option);
                    backend.copy_on_read = Some(Switch::On);
                }
                Some("compress" | "preallocate" | "blkdebug" | "blkverify" | "blkreplay") => {
                    let driver = node.view.get("driver");
                    if let Some(driver) = driver {
                        let at = FieldPath::Disk(nth, DiskField::Source);
                        self.keep(at, driver.value.as_str(), driver.span);
                    }
                }
                Some(_) | None => return Some(node),
            }
            for key in [
                "driver",
                "node-name",
                "read-only",
                "auto-read-only",
                "discard",
                "cache.direct",
                "cache.no-flush",
                "detect-zeroes",
            ] {
                node.view.get(key);
            }
            node = self.child(nth, &node, "file")?;
        }
        None
    }

    fn read_top(
        &mut self,
        chain: &mut Chain,
        node: NodeAt<'a>,
        backend: &mut Backend,
    ) -> BackendSource {
        let image = self.read_image(chain, 0, node, NodeSwitches::default(), backend);
        match image {
            Some(Image {
                format,
                protocol: Protocol::Other(source_type),
                ..
            }) => BackendSource::Other(OtherSource {
                source_type,
                format,
            }),
            Some(image) => BackendSource::Image(image),
            None => BackendSource::Empty,
        }
    }

    /// What a node says of itself, and what it has from its parent.
    fn switches(
        &mut self,
        nth: usize,
        depth: usize,
        node: &NodeAt<'a>,
        parent: NodeSwitches,
    ) -> NodeSwitches {
        let at = |field| match depth {
            0 => FieldPath::Disk(nth, field),
            // The switches of a backing image are no field of the disk.
            below => FieldPath::Image(nth, below, ImageField::Image),
        };
        let mut read = |key: &str, field: DiskField| {
            let property = node.view.get(key)?;
            self.switch(at(field), property)
        };
        let direct = read("cache.direct", DiskField::Cache);
        let no_flush = read("cache.no-flush", DiskField::Cache);
        let read_only = read("read-only", DiskField::ReadOnly)
            .or_else(|| read("readonly", DiskField::ReadOnly));
        let auto_read_only = node.view.text("auto-read-only").and_then(switch_of);
        let discard = node.view.get("discard").and_then(|property| {
            self.word(
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

    /// Reads an image and those below it; `None` if its node opens nothing that is known.
    fn read_image(
        &mut self,
        chain: &mut Chain,
        depth: usize,
        node: NodeAt<'a>,
        parent: NodeSwitches,
        backend: &mut Backend,
    ) -> Option<Image> {
        let nth = chain.nth;
        if depth > self.options.len() || depth > crate::names::DEEPEST {
            let at = FieldPath::Disk(nth, DiskField::Source);
            let span = self.options[node.option].span;
            self.problem(
                ProblemKind::InvalidValue,
                at,
                span,
                "the backing images have no end",
            );
            return None;
        }
        node.view.get("node-name");
        self.record_option(FieldPath::Image(nth, depth, ImageField::Image), node.option);
        let switches = self.switches(nth, depth, &node, parent);
        let drive_format = node
            .view
            .peek("format")
            .filter(|_| self.is_drive(node.option));
        let driver = node.view.peek("driver").or(drive_format);
        let format = driver.and_then(|driver| format_of(driver.value.as_str()));
        if depth == 0 {
            chain.top = Some((switches, node.option));
            let at = FieldPath::Disk(nth, DiskField::Driver);
            self.record_option(at, node.option);
            self.slots.top.insert(nth, node.option);
            self.read_top_options(nth, &node, backend);
        } else {
            // Nothing writes to a backing image.
            node.view.get("detect-zeroes");
        }
        let is_drive = self.is_drive(node.option) && node.view.prefix.is_empty();
        let names_protocol = driver.is_some_and(|driver| driver.key == "driver");
        if format.is_none() && (!is_drive || names_protocol) {
            // A protocol node without a format above it: the bytes are the disk.
            let protocol = self.read_protocol(chain, depth, &node, switches, backend);
            return Some(Image {
                format: Some(Format::Raw),
                protocol: protocol?,
                backing: Backing::Unspecified,
                creation: None,
            });
        }
        if let Some(driver) = driver {
            driver.is_used.set(true);
            let at = FieldPath::Image(nth, depth, ImageField::Format);
            self.record(at, driver);
            if format.is_none() {
                let text = driver.value.as_str();
                if !crate::reader::is_open(text) {
                    let message = format!("format `{text}` is not known");
                    self.problem(ProblemKind::InvalidValue, at, driver.span, message);
                }
            }
        }
        chain.has_format |= depth == 0;
        let below = self.child(nth, &node, "file");
        let is_inline = node.view.has_within("file");
        let handed = if is_inline || is_drive {
            switches.handed_down()
        } else {
            NodeSwitches::default()
        };
        let protocol = match below {
            Some(below) => {
                below.view.get("node-name");
                let switches = self.switches(nth, depth, &below, handed);
                self.read_protocol(chain, depth, &below, switches, backend)
            }
            None if is_drive => self.read_file_name(chain, depth, &node, handed, backend),
            None => None,
        };
        let backing = self.read_backing(chain, depth, &node, switches, backend);
        Some(Image {
            format,
            protocol: protocol?,
            backing,
            creation: None,
        })
    }

    fn is_drive(&self, option: usize) -> bool {
        self.options[option].name != "blockdev"
    }

    fn read_backing(
        &mut self,
        chain: &mut Chain,
        depth: usize,
        node: &NodeAt<'a>,
        switches: NodeSwitches,
        backend: &mut Backend,
    ) -> Backing {
        if let Some(property) = node.view.peek("backing")
            && (property.kind == Kind::Null || property.value.as_str().is_empty())
        {
            property.is_used.set(true);
            return Backing::Terminated;
        }
        let handed = if node.view.has_within("backing") {
            // A backing image is opened for reading whatever its overlay is.
            NodeSwitches {
                read_only: Some(Switch::On),
                ..switches.handed_down()
            }
        } else {
            NodeSwitches::default()
        };
        match self.child(chain.nth, node, "backing") {
            Some(below) => self
                .read_image(chain, depth + 1, below, handed, backend)
                .map_or(Backing::Unspecified, |image| {
                    Backing::Image(Box::new(image))
                }),
            None => Backing::Unspecified,
        }
    }

    /// Options that only the topmost node has.
    fn read_top_options(&mut self, nth: usize, node: &NodeAt<'a>, backend: &mut Backend) {
        let at = |field| FieldPath::Disk(nth, field);
        if let Some(property) = node.view.get("detect-zeroes") {
            let at = at(DiskField::DetectZeroes);
            backend.detect_zeroes =
                self.word(at, property, DetectZeroes::WORDS, DetectZeroes::from_wire);
        }
        if let Some(property) = node.view.get("cache-size") {
            let size = self.number(at(DiskField::MetadataCacheSize), property);
            backend.metadata_cache_size = size.map(Bytes);
        }
        if let Some(property) = node.view.get("discard-no-unref") {
            backend.discard_no_unref = self.switch(at(DiskField::DiscardNoUnref), property);
        }
    }

    /// The file name of a `-drive`, which may name another protocol.
    fn read_file_name(
        &mut self,
        chain: &mut Chain,
        depth: usize,
        node: &NodeAt<'a>,
        switches: NodeSwitches,
        backend: &mut Backend,
    ) -> Option<Protocol> {
        let property = node
            .view
            .get("file")
            .or_else(|| node.view.get("filename"))?;
        let name = property.value.as_str();
        if name.is_empty() {
            return None;
        }
        let (driver, path) = driver_of_name(name).unwrap_or_else(|| (driver_of_path(name), name));
        Some(self.protocol(
            chain,
            depth,
            node,
            switches,
            backend,
            driver,
            Some((property, path)),
        ))
    }

    fn read_protocol(
        &mut self,
        chain: &mut Chain,
        depth: usize,
        node: &NodeAt<'a>,
        switches: NodeSwitches,
        backend: &mut Backend,
    ) -> Option<Protocol> {
        let name = node.view.get("filename");
        let path = name.map(|property| (property, property.value.as_str()));
        let driver = match node.view.text("driver") {
            Some(driver) => driver,
            None => driver_of_path(path?.1),
        };
        if driver == "raw" {
            // A raw node below a format node, such as one that cuts a window out of a file.
            let below = self.child(chain.nth, node, "file")?;
            let at = FieldPath::Image(chain.nth, depth, ImageField::Source);
            let span = self.options[node.option].span;
            self.keep(at, "raw", span);
            below.view.get("node-name");
            let below_switches = self.switches(chain.nth, depth, &below, NodeSwitches::default());
            if depth > 0
                || below
                    .view
                    .peek("driver")
                    .is_some_and(|it| it.value.as_str() == "raw")
            {
                return None;
            }
            return self.read_protocol(chain, depth, &below, below_switches, backend);
        }
        Some(self.protocol(chain, depth, node, switches, backend, driver, path))
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the node and all that is known of it"
    )]
    fn protocol(
        &mut self,
        chain: &mut Chain,
        depth: usize,
        node: &NodeAt<'a>,
        switches: NodeSwitches,
        backend: &mut Backend,
        driver: &str,
        path: Option<(&'a Property, &str)>,
    ) -> Protocol {
        let nth = chain.nth;
        self.record_option(
            FieldPath::Image(nth, depth, ImageField::Source),
            node.option,
        );
        if depth == 0 {
            chain.bottom = Some((switches, node.option));
            self.record_option(FieldPath::Disk(nth, DiskField::Source), node.option);
            self.slots.bottom.insert(nth, node.option);
        }
        let aio = node.view.get("aio");
        // A -drive says it once for all of its nodes.
        let of_drive = || {
            node.view
                .properties
                .get("aio")
                .filter(|_| self.is_drive(node.option))
        };
        if let Some(property) = aio.or_else(of_drive) {
            let at = FieldPath::Disk(nth, DiskField::Aio);
            let aio = self.word(at, property, AioMode::WORDS, AioMode::from_wire);
            if depth == 0 {
                backend.aio = aio;
            }
        }
        // What every reader and writer of disks has, and QEMU's own default.
        for key in ["detect-zeroes", "locking"] {
            if node
                .view
                .peek(key)
                .is_some_and(|it| key != "locking" || it.value.as_str() == "auto")
            {
                node.view.get(key);
            }
        }
        let path_at = FieldPath::Image(nth, depth, ImageField::Path);
        if let Some((property, _)) = path {
            self.record(path_at, property);
        }
        match (driver, path) {
            ("file", Some((_, path))) => Protocol::File {
                path: path.to_owned(),
            },
            ("host_device" | "host_cdrom", Some((_, path))) => Protocol::HostDevice {
                path: DevicePath::new(path),
            },
            ("file" | "host_device" | "host_cdrom", None) => {
                let span = self.options[node.option].span;
                let message = "the node does not say which file it opens";
                self.problem(ProblemKind::MissingValue, path_at, span, message)
                    .help = Some("write filename".to_owned());
                Protocol::Other(driver.to_owned())
            }
            (other, _) => Protocol::Other(source_type(other).to_owned()),
        }
    }
}

fn discard_of(word: &str) -> Option<Discard> {
    match word {
        "unmap" | "on" => Some(Discard::Unmap),
        "ignore" | "off" => Some(Discard::Ignore),
        _ => None,
    }
}
