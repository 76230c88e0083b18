//! Reads the node that opens an image's storage.

use vmdisk_fields::IMAGE_FIELDS;
use vmdisk_model::{
    AioMode, Backend, DevicePath, DiskField, FieldPath, Image, ImageField, NetworkProtocol,
    NvmeSource, PciAddress, Protocol, Switch,
};
use vmdisk_rule::reading::MISSING_VALUE;

use super::read::{BelowNode, Chain, NodeReader, NodeSwitches, slice_of};
use crate::index::NodeAt;
use crate::object::helper::read_reservations;
use crate::syntax::properties::Property;
use crate::syntax::value::{number_of, switch_of};

/// The driver that the prefix of a `-drive` file name selects.
fn driver_of_name(name: &str) -> Option<(&'static str, &str)> {
    const PREFIXES: [&str; 14] = [
        "nbd", "rbd", "iscsi", "ssh", "http", "https", "ftp", "ftps", "tftp", "gluster",
        "sheepdog", "nfs", "nvme", "fat",
    ];
    let (prefix, rest) = name.split_once(':')?;
    // QEMU removes these words.
    let of_host = ["file", "host_device", "host_cdrom"];
    if let Some(driver) = of_host.into_iter().find(|driver| *driver == prefix) {
        return Some((driver, rest));
    }
    let prefix = prefix.split('+').next().unwrap_or(prefix);
    PREFIXES
        .iter()
        .find(|known| **known == prefix)
        .map(|known| (*known, name))
}

/// Members of protocol nodes with their fields, beside those of the rows.
const PLACES: &[(&str, ImageField)] = &[
    ("dir", ImageField::Path),
    ("path", ImageField::Path),
    ("export", ImageField::NetworkName),
    ("target", ImageField::NetworkName),
    ("image", ImageField::NetworkName),
    ("url", ImageField::NetworkName),
    ("server.host", ImageField::Hosts),
    ("portal", ImageField::Hosts),
    ("user", ImageField::Authentication),
    ("username", ImageField::Authentication),
];

impl<'a> NodeReader<'_, 'a> {
    /// The driver of a plain path: QEMU examines the file, but here only the path is known.
    fn driver_of_path(&mut self, nth: usize, path: &str) -> &'static str {
        let at = FieldPath::Disk(nth, DiskField::SourceType);
        self.notes.leave_open(at);
        let is_device = path.starts_with("/dev/")
            && !path.starts_with("/dev/shm/")
            && !path.starts_with("/dev/fdset/");
        if is_device { "host_device" } else { "file" }
    }

    /// The file name of a `-drive`, which may select another protocol.
    pub(super) fn read_file_name(
        &mut self,
        chain: &mut Chain,
        depth: usize,
        node: &NodeAt<'a>,
        switches: NodeSwitches,
        backend: &mut Backend,
    ) -> Option<Image> {
        let property = node
            .view
            .take("file")
            .or_else(|| node.view.take("filename"))?;
        let name = property.value.as_str();
        if name.is_empty() {
            return None;
        }
        let (driver, path) =
            driver_of_name(name).unwrap_or_else(|| (self.driver_of_path(chain.nth, name), name));
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

    pub(super) fn read_protocol(
        &mut self,
        chain: &mut Chain,
        depth: usize,
        node: &NodeAt<'a>,
        switches: NodeSwitches,
        backend: &mut Backend,
    ) -> Option<Image> {
        let name = node.view.get("filename");
        let path = name.map(|property| (property, property.value.as_str()));
        let driver = match node.view.take_text("driver") {
            Some(driver) => driver,
            None => self.driver_of_path(chain.nth, path?.1),
        };
        if driver == "raw" {
            // A raw node below a format node, such as one that selects a slice of a file.
            let below = self.child(chain.nth, node, "file")?;
            let slice = slice_of(node);
            if let (Some(_), Some(property)) = (slice, node.view.get("size")) {
                let at = FieldPath::Image(chain.nth, depth, ImageField::Slice);
                self.notes.record(at, property);
            }
            if slice.is_none() {
                let at = FieldPath::Image(chain.nth, depth, ImageField::Source);
                let span = self.index.span(node.option);
                self.notes.keep(at, "raw", span);
            }
            below.view.accept(&["node-name"]);
            let below_switches = self.switches(chain.nth, depth, &below, NodeSwitches::default());
            if below
                .view
                .get("driver")
                .is_some_and(|it| it.value.as_str() == "raw")
            {
                return None;
            }
            let image = self.read_protocol(chain, depth, &below, below_switches, backend)?;
            return Some(Image { slice, ..image });
        }
        Some(self.protocol(chain, depth, node, switches, backend, driver, path))
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the node and its inherited settings"
    )]
    pub(super) fn protocol(
        &mut self,
        chain: &mut Chain,
        depth: usize,
        node: &NodeAt<'a>,
        switches: NodeSwitches,
        backend: &mut Backend,
        driver: &str,
        path: Option<(&'a Property, &str)>,
    ) -> Image {
        let nth = chain.nth;
        self.notes.record_option(
            FieldPath::Image(nth, depth, ImageField::Source),
            node.option,
        );
        if depth == 0 {
            chain.bottom = Some((switches, node.option));
            self.notes
                .record_option(FieldPath::Disk(nth, DiskField::Source), node.option);
            self.notes.slots_mut().bottom.insert(nth, node.option);
        }
        let aio = node.view.take("aio");
        // A -drive sets it once for all of its nodes.
        let of_drive = || {
            node.view
                .members
                .take("aio")
                .filter(|_| self.index.is_drive(node.option))
        };
        let aio = aio.or_else(of_drive).and_then(|property| {
            let at = match depth {
                0 => FieldPath::Disk(nth, DiskField::Aio),
                below => FieldPath::Image(nth, below, ImageField::Image),
            };
            self.notes
                .word(at, property, AioMode::WORDS, AioMode::from_word)
        });
        if depth == 0 {
            backend.aio = aio.or(backend.aio);
        } else {
            chain.below.push(BelowNode {
                depth,
                option: node.option,
                switches,
                aio,
            });
        }
        // The value that readers and writers of disks share, which is QEMU's default.
        if node
            .view
            .get("locking")
            .is_some_and(|it| it.value.as_str() == "auto")
        {
            node.view.accept(&["locking"]);
        }
        // The image below its format has the value of the image.
        let zeroes = node.view.get("detect-zeroes");
        let of_image = backend
            .detect_zeroes
            .map(|mode| mode.as_str())
            .unwrap_or("off");
        if let Some(zeroes) =
            zeroes.filter(|it| it.value.as_str() == of_image || it.value.as_str() == "off")
        {
            node.view.members.accept_value(zeroes);
        }
        let path_at = FieldPath::Image(nth, depth, ImageField::Path);
        if let Some((property, _)) = path {
            self.notes.record(path_at, property);
        }
        let image = self.source_of(node, driver, path.map(|(_, path)| path));
        let is_nameless = matches!(
            &image.protocol,
            Protocol::Other(word) if matches!(word.as_str(), "file" | "host_device" | "host_cdrom")
        );
        if is_nameless {
            let span = self.index.span(node.option);
            let message = "the node sets no filename";
            self.notes
                .problem(&MISSING_VALUE, path_at, span, message)
                .help = Some("write filename".to_owned());
            return image;
        }
        let rows = IMAGE_FIELDS.iter();
        let rows = rows.filter_map(|field| Some((vmdisk_fields::image(*field).node?, *field)));
        for (key, field) in PLACES.iter().copied().chain(rows) {
            if let Some(property) = node.view.get(key) {
                self.notes
                    .record(FieldPath::Image(nth, depth, field), property);
            }
        }
        image
    }

    /// The storage of a protocol node, without places.
    pub(super) fn source_of(
        &mut self,
        node: &NodeAt<'a>,
        driver: &str,
        path: Option<&str>,
    ) -> Image {
        let view = &node.view;
        let is_drive = self.index.is_drive(node.option);
        let other = || Image::new(None, Protocol::Other(driver.to_owned()));
        let take_name = || {
            if !is_drive || view.get("filename").is_some() {
                view.accept(&["filename"]);
            }
        };
        match (driver, path) {
            ("file", Some(path)) => {
                take_name();
                let path = path.to_owned();
                Image::new(None, Protocol::File { path })
            }
            ("host_device" | "host_cdrom", Some(path)) => {
                take_name();
                let path = DevicePath::new(path);
                let mut image = Image::new(None, Protocol::HostDevice { path });
                if let Some(id) = view.take_text("pr-manager") {
                    image.reservations = Some(read_reservations(id, self.index, self.notes));
                }
                image
            }
            ("file" | "host_device" | "host_cdrom", None) => other(),
            ("vvfat" | "fat", name) => {
                let by_name = name.filter(|_| is_drive).and_then(|name| {
                    // QEMU takes all words before the last colon for options (`vvfat_parse_filename`).
                    let rest = name.strip_prefix("fat:")?;
                    let (options, path) = rest.rsplit_once(':').unwrap_or(("floppy", rest));
                    // 16 bits are the default of a disk. libvirt does not support other ones, nor a writable one.
                    let is_default = |option: &str| matches!(option, "floppy" | "16");
                    options.split(':').all(is_default).then_some(path)
                });
                let Some(path) = by_name.or_else(|| view.take_text("dir")) else {
                    return other();
                };
                for key in ["floppy", "rw"] {
                    // The type of the disk already shows that it is a floppy.
                    let is_default = view.get(key).is_some_and(|it| {
                        key == "floppy" || switch_of(it.value.as_str()) == Some(Switch::Off)
                    });
                    if is_default {
                        view.accept(&[key]);
                    }
                }
                let path = path.to_owned();
                Image::new(None, Protocol::Directory { path })
            }
            ("virtio-blk-vhost-vdpa", _) => match view.take_text("path") {
                Some(path) => Image::new(
                    None,
                    Protocol::VhostVdpa {
                        path: path.to_owned(),
                    },
                ),
                None => other(),
            },
            ("nvme", name) => {
                let by_name = name.filter(|_| is_drive).and_then(|name| {
                    let (device, namespace) = name.strip_prefix("nvme://")?.split_once('/')?;
                    nvme_at(device, number_of(namespace)?)
                });
                by_name
                    .or_else(|| nvme_of(node))
                    .map_or_else(other, |source| Image::new(None, Protocol::Nvme(source)))
            }
            (word, path) => {
                // The name of a -drive, unless it is a member of the driver.
                let by_name = path
                    .filter(|_| is_drive)
                    .and_then(super::read_network::from_name);
                let image = by_name.or_else(|| {
                    let protocol = NetworkProtocol::from_word(word)?;
                    self.read_network(view, protocol)
                });
                image.unwrap_or_else(other)
            }
        }
    }
}

fn nvme_of(node: &NodeAt<'_>) -> Option<NvmeSource> {
    let device = node.view.get("device")?.value.as_str();
    let namespace = number_of(node.view.get("namespace")?.value.as_str())?;
    let source = nvme_at(device, namespace)?;
    node.view.accept(&["device", "namespace"]);
    Some(source)
}

/// A controller by its PCI address on the host, such as `0000:01:00.0`.
fn nvme_at(device: &str, namespace: u64) -> Option<NvmeSource> {
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    let (rest, function) = device.rsplit_once('.')?;
    let (rest, slot) = rest.rsplit_once(':')?;
    let (domain, bus) = match rest.split_once(':') {
        Some((domain, bus)) => (hex(domain)?, bus),
        None => (0, rest),
    };
    let address = PciAddress {
        domain,
        bus: hex(bus)?,
        slot: hex(slot)?,
        function: hex(function)?,
        ..PciAddress::default()
    };
    Some(NvmeSource {
        address,
        namespace,
        managed: None,
    })
}
