//! The nodes of one image: storage, slice, format.

use vmdisk_facts::Capability;
use vmdisk_model::{
    AioMode, Backing, Bytes, DetectZeroes, EncryptionEngine, FieldPath, Format, Image, ImageField,
    Protocol, Switch,
};

use super::NodeOptions;
use crate::names::ImageNames;
use crate::writer::Writer;

/// One image of a disk, with the facts that its nodes depend on.
pub(crate) struct Layer<'a> {
    pub(crate) nth: usize,
    /// 0 is the top image.
    pub(crate) depth: usize,
    pub(crate) image: &'a Image,
    /// True for the external data file of the image at this depth.
    pub(crate) is_data: bool,
    pub(crate) names: ImageNames<'a>,
    pub(crate) options: NodeOptions,
    /// True for the top image of a disk that the guest may write.
    pub(crate) is_writable: bool,
    /// True in a CD drive.
    pub(crate) is_optical: bool,
    /// True in a floppy drive.
    pub(crate) is_floppy: bool,
    pub(crate) aio: Option<AioMode>,
    pub(crate) detect_zeroes: Option<DetectZeroes>,
    pub(crate) metadata_cache_size: Option<Bytes>,
    pub(crate) discard_no_unref: Option<Switch>,
    /// False for a raw image if libvirt omits the node.
    pub(crate) has_format_node: bool,
    /// The topmost node of the image below.
    pub(crate) below: Option<String>,
}

impl Layer<'_> {
    pub(crate) fn at(&self, field: ImageField) -> FieldPath {
        let field = if self.is_data {
            ImageField::DataFile
        } else {
            field
        };
        FieldPath::Image(self.nth, self.depth, field)
    }

    /// The program that decrypts the image, if it is encrypted.
    pub(crate) fn engine(&self) -> EncryptionEngine {
        engine(self.image)
    }

    /// The name of the node with the bytes of the image.
    pub(super) fn storage(&self) -> String {
        match self.image.slice {
            Some(_) => self.names.slice(),
            None => self.names.protocol(),
        }
    }
}

fn engine(image: &Image) -> EncryptionEngine {
    let encryption = image.encryption.as_ref();
    encryption
        .and_then(|encryption| encryption.engine)
        .unwrap_or(EncryptionEngine::Qemu)
}

/// True if QEMU decrypts the image in its format node.
pub(super) fn is_encrypted_for_qemu(image: &Image) -> bool {
    image.encryption.is_some() && engine(image) == EncryptionEngine::Qemu
}

impl Writer<'_> {
    /// Writes the nodes of an image and returns the name of the topmost.
    pub(super) fn write_image(&mut self, layer: &Layer<'_>) -> String {
        let Image {
            // Written with the format node.
            format: _,
            // Written with the protocol node.
            protocol: _,
            backing,
            slice,
            data_file,
            // Written with the nodes that they affect, like the next two.
            encryption: _,
            authentication: _,
            reservations: _,
            fd_group,
            // Written with the layer.
            metadata_cache_size: _,
            // Creation options belong in a script, not in a guest.
            creation: _,
        } = layer.image;
        let data_file = data_file.as_deref().map(|image| {
            self.write_image(&Layer {
                image,
                is_data: true,
                names: layer.names.data_file(),
                below: None,
                metadata_cache_size: None,
                discard_no_unref: None,
                has_format_node: self.needs_format_node(image),
                ..*layer
            })
        });
        if fd_group.is_some() {
            self.leave_out(
                layer.at(ImageField::FdGroup),
                "file descriptors are passed to libvirt; QEMU opens the path",
            );
        }
        self.write_protocol(layer);
        if let Some(slice) = slice {
            self.write_slice(layer, *slice);
        }
        if !layer.has_format_node {
            self.check_no_format_node(layer, backing);
            return layer.storage();
        }
        let node = self.format_node(layer, backing, data_file);
        self.blockdev(node, layer.at(ImageField::Format));
        layer.names.format()
    }

    /// True unless the image is raw and libvirt would omit its format node, as it does with a QEMU that excludes
    /// protocol nodes from backing file strings (`qemuBlockStorageSourceNeedsFormatLayer`).
    pub(super) fn needs_format_node(&self, image: &Image) -> bool {
        let is_raw = matches!(image.format, Some(Format::Raw) | None)
            && !is_encrypted_for_qemu(image)
            && !matches!(image.protocol, Protocol::Directory { .. });
        !(is_raw
            && self.is_libvirt_style()
            && self.can(Capability::BackingMaskProtocol)
            && self.can(Capability::LibvirtDropsRawLayer))
    }

    /// Reports settings that an image without a format node cannot have.
    fn check_no_format_node(&mut self, layer: &Layer<'_>, backing: &Backing) {
        if let Backing::Image(_) = backing {
            self.no_backing(layer, Format::Raw);
        }
        self.check_qcow2_options(layer, Format::Raw);
    }
}
