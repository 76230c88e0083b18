//! `-blockdev`: the nodes of a backend, base image first.

pub(crate) mod filter;
pub(crate) mod format;
mod one_node;
pub(crate) mod protocol;
pub(crate) mod read;

use vmdisk_facts::Capability;
use vmdisk_model::{
    AioMode, Backend, BackendSource, Backing, CacheSwitches, DetectZeroes, Device, Discard, Disk,
    DiskField, FieldPath, Format, Image, ImageField, Switch,
};

use crate::json::JsonObject;
use crate::names::{DEEPEST, NodeNames};
use crate::writer::Writer;

/// What holds for every node of a chain.
///
/// QEMU hands these down to children that are written inside their parent, and not to children that
/// are named: with named nodes each must say them itself, or `O_DIRECT`, discard and read-only stop
/// at the first layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeOptions {
    pub(crate) cache: Option<CacheSwitches>,
    pub(crate) discard: Option<Discard>,
}

impl NodeOptions {
    /// Adds the options to a node.
    fn push_to(self, node: &mut JsonObject) {
        if let Some(CacheSwitches {
            // The frontend's switch.
            write_cache: _,
            direct,
            no_flush,
        }) = self.cache
        {
            let cache = JsonObject::new()
                .with("direct", direct)
                .with("no-flush", no_flush);
            node.push("cache", cache);
        }
        node.push_some("discard", self.discard.map(Discard::as_wire));
    }
}

/// The cache switches to write: none where QEMU's default is meant.
pub(crate) fn written_cache(backend: &Backend) -> Option<CacheSwitches> {
    let effective = backend.effective_cache();
    // A shareable disk without a mode is meant to be uncached, which is not QEMU's default.
    let is_default = backend.cache.is_none() && effective == vmdisk_model::CacheMode::Writeback;
    (!is_default).then(|| effective.switches())
}

/// Zero detection as QEMU takes it: `unmap` is refused where discards are not passed on, and libvirt
/// writes `on` then (`virDomainDiskGetDetectZeroesMode`).
fn written_detect_zeroes(backend: &Backend) -> Option<DetectZeroes> {
    match (backend.detect_zeroes?, backend.discard) {
        (DetectZeroes::Unmap, Some(Discard::Ignore) | None) => Some(DetectZeroes::On),
        (mode, _) => Some(mode),
    }
}

impl<'a> Writer<'a> {
    /// Writes the nodes of a disk and hands back the name of the topmost, which the device is to use;
    /// `None` for an empty drive, or after a problem.
    pub(crate) fn write_backend(
        &mut self,
        nth: usize,
        disk: &'a Disk,
        stem: &str,
        names: NodeNames<'_>,
    ) -> Option<String> {
        let backend = &disk.backend;
        let Backend {
            source,
            // Read through `written_cache`, here and for the device's `write-cache`.
            cache: _,
            aio,
            discard,
            // Read through `written_detect_zeroes`.
            detect_zeroes: _,
            copy_on_read,
            discard_no_unref,
            metadata_cache_size,
            iotune,
            // Read through `is_writable`.
            is_read_only: _,
            // The device's `share-rw`.
            is_shareable: _,
            is_transient,
        } = backend;
        let at = |field| FieldPath::Disk(nth, field);
        if *is_transient {
            self.problem_with_help(
                at(DiskField::Transient),
                "a transient disk is an overlay that is made at each start, which no option of QEMU does for -blockdev",
                "make an overlay with qemu-img create and delete it afterwards",
            );
        }
        let image = match source {
            BackendSource::Image(image) => image,
            BackendSource::Empty => {
                self.empty_drive(nth, disk);
                return None;
            }
            BackendSource::Other(other) => {
                let message = format!(
                    "a source of type '{}' cannot be written yet",
                    other.source_type
                );
                self.problem(at(DiskField::SourceType), message);
                return None;
            }
            // Has no nodes: the daemon does the I/O.
            BackendSource::VhostUser(_) => return None,
        };
        let options = NodeOptions {
            cache: written_cache(backend),
            discard: *discard,
        };
        let is_writable = disk.is_writable();
        let chain: Vec<&Image> = image.chain().collect();
        if chain.len() > DEEPEST {
            let message = format!("a chain of more than {DEEPEST} images cannot be written");
            self.problem(at(DiskField::Source), message);
            return None;
        }
        let mut top = names.format(0);
        let detect_zeroes = written_detect_zeroes(backend);
        let is_for_every_layer =
            !self.is_libvirt_style() || self.can(Capability::LibvirtDetectZeroesEveryLayer);
        for (depth, image) in chain.iter().enumerate().rev() {
            let layer = Layer {
                nth,
                depth,
                names,
                options,
                is_writable: is_writable && depth == 0,
                is_optical: disk.frontend.effective_device() == Device::Cdrom,
                aio: *aio,
                detect_zeroes: detect_zeroes.filter(|_| depth == 0 || is_for_every_layer),
                has_format_node: self.needs_format_node(image),
                has_format_node_below: match &image.backing {
                    Backing::Image(below) => self.needs_format_node(below),
                    Backing::Unspecified | Backing::Terminated => false,
                },
            };
            let Image {
                format,
                protocol,
                backing,
                // How the storage is made goes to a script, not to a guest.
                creation: _,
            } = image;
            self.write_protocol(&layer, protocol);
            if !layer.has_format_node {
                if depth == 0 {
                    top = names.protocol(0);
                    let mut unused = JsonObject::new();
                    self.qcow2_options(
                        nth,
                        &mut unused,
                        *format,
                        *metadata_cache_size,
                        *discard_no_unref,
                    );
                }
                self.check_raw_backing(&layer, backing);
                continue;
            }
            let mut node = self.format_node(&layer, *format, backing);
            if depth == 0 {
                self.qcow2_options(
                    nth,
                    &mut node,
                    *format,
                    *metadata_cache_size,
                    *discard_no_unref,
                );
            }
            self.blockdev(node, FieldPath::Image(nth, depth, ImageField::Format));
        }
        if *copy_on_read == Some(Switch::On) {
            top = self.write_copy_on_read(nth, names, options, is_writable, &top);
        }
        if iotune.is_some() && self.is_libvirt_style() {
            self.leave_out(
                at(DiskField::Iotune),
                "libvirt sets limits over QMP, after the start",
            );
        } else if let Some(iotune) = iotune {
            let group = self.write_throttle_group(nth, stem, iotune);
            top = self.write_throttle(nth, names, options, is_writable, &group, &top);
        }
        Some(top)
    }

    /// True unless the image is raw and libvirt would leave out its format node: with a QEMU that
    /// keeps protocol nodes out of backing file strings it does (`qemuBlockStorageSourceNeedsFormatLayer`).
    fn needs_format_node(&self, image: &Image) -> bool {
        let is_raw = matches!(image.format, Some(Format::Raw) | None);
        !(is_raw
            && self.is_libvirt_style()
            && self.can(Capability::BackingMaskProtocol)
            && self.can(Capability::LibvirtDropsRawLayer))
    }

    fn empty_drive(&mut self, nth: usize, disk: &Disk) {
        let Backend {
            source: _,
            // The device's `write-cache`.
            cache: _,
            aio,
            discard,
            detect_zeroes,
            copy_on_read,
            discard_no_unref,
            metadata_cache_size,
            iotune,
            is_read_only: _,
            is_shareable: _,
            is_transient: _,
        } = &disk.backend;
        let at = |field| FieldPath::Disk(nth, field);
        match disk.frontend.effective_device() {
            Device::Cdrom | Device::Floppy => {}
            Device::Disk | Device::Lun => {
                self.problem_with_help(
                    at(DiskField::Source),
                    "the disk has no source, and only drives with removable media can be empty",
                    "name a file or device",
                );
            }
        }
        for (field, is_set) in [
            (DiskField::Aio, aio.is_some()),
            (DiskField::Discard, discard.is_some()),
            (DiskField::DetectZeroes, detect_zeroes.is_some()),
            (DiskField::CopyOnRead, copy_on_read.is_some()),
            (DiskField::DiscardNoUnref, discard_no_unref.is_some()),
            (DiskField::MetadataCacheSize, metadata_cache_size.is_some()),
            (DiskField::Iotune, iotune.is_some()),
        ] {
            if is_set {
                self.leave_out(
                    at(field),
                    "it belongs to the medium, and the drive is empty",
                );
            }
        }
    }
}

/// One image of a chain and what is known about all of them.
pub(crate) struct Layer<'a> {
    pub(crate) nth: usize,
    /// 0 is the top image.
    pub(crate) depth: usize,
    pub(crate) names: NodeNames<'a>,
    pub(crate) options: NodeOptions,
    /// True for the top image of a disk that the guest may write.
    pub(crate) is_writable: bool,
    /// True in a CD drive.
    pub(crate) is_optical: bool,
    pub(crate) aio: Option<AioMode>,
    pub(crate) detect_zeroes: Option<DetectZeroes>,
    /// False for a raw image where libvirt leaves the node out.
    pub(crate) has_format_node: bool,
    /// The same of the image below.
    pub(crate) has_format_node_below: bool,
}

impl Layer<'_> {
    fn at(&self, field: ImageField) -> FieldPath {
        FieldPath::Image(self.nth, self.depth, field)
    }
}
