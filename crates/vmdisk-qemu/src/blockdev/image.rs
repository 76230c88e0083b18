//! The nodes of one image: storage, slice, format.

use vmdisk_model::{
    AioMode, Bytes, DetectZeroes, EncryptionEngine, FieldPath, Image, ImageField, Switch,
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
            made_as: _,
        } = layer.image;
        let data_file = data_file.as_deref().map(|image| {
            self.write_image(&Layer {
                image,
                is_data: true,
                names: layer.names.data_file(),
                below: None,
                metadata_cache_size: None,
                discard_no_unref: None,
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
        let node = self.format_node(layer, backing, data_file);
        self.blockdev(node, layer.at(ImageField::Format));
        layer.names.format()
    }
}
