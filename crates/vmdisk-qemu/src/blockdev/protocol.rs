//! The node that opens a file, a device or a connection, and the node that selects a part of it.

use vmdisk_facts::Capability;
use vmdisk_model::{
    AioMode, DevicePath, DevicePathKind, DiskField, EncryptionEngine, FieldPath, ImageField,
    NvmeSource, Protocol, Slice,
};

use super::Layer;
use crate::json::JsonObject;
use crate::writer::Writer;

impl Writer<'_> {
    /// Writes the protocol node of one image.
    pub(crate) fn write_protocol(&mut self, layer: &Layer<'_>) {
        let Some(mut node) = self.protocol_node(layer) else {
            return;
        };
        // Written with the driver.
        node.insert(1, "node-name", layer.names.protocol());
        self.finish_storage(layer, node);
    }

    /// Writes the node that selects a slice of the storage.
    pub(super) fn write_slice(&mut self, layer: &Layer<'_>, slice: Slice) {
        let Slice { offset, size } = slice;
        let node = JsonObject::new()
            .with("driver", "raw")
            .with("node-name", layer.names.slice())
            .with("file", layer.names.protocol())
            .with("offset", offset)
            .with("size", size);
        self.finish_storage(layer, node);
    }

    /// Adds the options that every node needs, and writes the node.
    fn finish_storage(&mut self, layer: &Layer<'_>, mut node: JsonObject) {
        layer.options.push_to(&mut node);
        if layer.depth == 0 {
            node.push("read-only", !layer.is_writable);
        } else {
            // Opened for reading like `read-only`, but a block-commit into this image can still reopen it for writing;
            // with `read-only` QEMU refuses the job.
            node.push("auto-read-only", true);
        }
        self.blockdev(node, layer.at(ImageField::Source));
    }

    /// The driver of an image's storage and its specific members; `None` after a problem.
    fn protocol_node(&mut self, layer: &Layer<'_>) -> Option<JsonObject> {
        let node = match &layer.image.protocol {
            Protocol::File { path } => self.file_node(layer, "file", path)?,
            Protocol::HostDevice { path } if layer.is_optical && is_optical_drive(path) => {
                self.file_node(layer, "host_cdrom", &path.0)?
            }
            Protocol::HostDevice { path } => self.file_node(layer, "host_device", &path.0)?,
            Protocol::Directory { .. } if layer.is_writable && layer.depth == 0 => {
                self.problem_with_help(
                    layer.at(ImageField::Path),
                    "a directory is a disk only for reading",
                    "make the disk read-only",
                );
                return None;
            }
            Protocol::Directory { path } => JsonObject::new()
                .with("driver", "vvfat")
                .with("dir", self.path(layer, path)?)
                .with("floppy", layer.is_floppy)
                .with("rw", false),
            Protocol::VhostVdpa { path } => JsonObject::new()
                .with("driver", "virtio-blk-vhost-vdpa")
                .with("path", self.path(layer, path)?),
            Protocol::Nvme(source) => self.nvme_node(layer, source),
            Protocol::Network(source) => self.network_node(layer, source)?,
            Protocol::Volume(source) => {
                self.problem_with_help(
                    layer.at(ImageField::Volume),
                    format!(
                        "the path of volume '{}' of pool '{}' is not known",
                        source.volume, source.pool
                    ),
                    "name the file or the device of the volume instead, or pass the XML of the pool to `vmdisk convert` \
                     with `--storage`",
                );
                return None;
            }
            Protocol::Other(word) => {
                let message = format!("a source of type '{word}' cannot be written");
                self.problem(layer.at(ImageField::Source), message);
                return None;
            }
        };
        self.check_file_options(layer);
        Some(node)
    }

    fn path(&mut self, layer: &Layer<'_>, path: &str) -> Option<String> {
        if path.is_empty() {
            self.problem(layer.at(ImageField::Path), "the path is empty");
            return None;
        }
        Some(path.to_owned())
    }

    fn file_node(&mut self, layer: &Layer<'_>, driver: &str, path: &str) -> Option<JsonObject> {
        let mut node = JsonObject::new()
            .with("driver", driver)
            .with("filename", self.path(layer, path)?);
        node.push_some("aio", layer.aio.map(AioMode::as_str));
        if layer.aio == Some(AioMode::IoUring) && layer.depth == 0 {
            let at = FieldPath::Disk(layer.nth, DiskField::Aio);
            self.require(Capability::AioIoUring, at, "aio=io_uring");
        }
        node.push_some("pr-manager", self.reservations(layer));
        Some(node)
    }

    fn nvme_node(&mut self, layer: &Layer<'_>, source: &NvmeSource) -> JsonObject {
        let NvmeSource {
            address,
            namespace,
            managed,
        } = source;
        if managed.is_none_or(|managed| managed == vmdisk_model::Switch::On) {
            self.leave_out(
                layer.at(ImageField::Managed),
                "libvirt detaches the controller from the host's driver; bind it to vfio-pci before the start",
            );
        }
        JsonObject::new()
            .with("driver", "nvme")
            .with("device", address.to_string())
            .with("namespace", *namespace)
    }

    /// Reports settings that only the drivers of files and devices, or only those of servers, support.
    fn check_file_options(&mut self, layer: &Layer<'_>) {
        if !matches!(layer.image.protocol, Protocol::Network(_)) {
            let is_librbds =
                layer.image.encryption.is_some() && layer.engine() == EncryptionEngine::Librbd;
            for (field, is_set, message) in [
                (
                    ImageField::Authentication,
                    layer.image.authentication.is_some(),
                    "only servers need credentials",
                ),
                (
                    ImageField::Encryption,
                    is_librbds,
                    "librbd decrypts only images on rbd",
                ),
            ] {
                if is_set {
                    self.problem(layer.at(field), message);
                }
            }
        }
        match &layer.image.protocol {
            Protocol::File { .. } | Protocol::HostDevice { .. } => return,
            _ => {}
        }
        if layer.aio.is_some() && layer.depth == 0 && !layer.is_data {
            let message = "only files and block devices have a selectable I/O engine";
            self.leave_out(FieldPath::Disk(layer.nth, DiskField::Aio), message);
        }
        if layer.image.reservations.is_some() {
            let message = "only block devices support persistent reservations";
            self.problem(layer.at(ImageField::Reservations), message);
        }
    }
}

/// True for a drive with a tray, which has its own driver; decided by the name, because the host is not examined.
fn is_optical_drive(path: &DevicePath) -> bool {
    match path.kind() {
        DevicePathKind::KernelName(name) => name.starts_with("sr"),
        DevicePathKind::Other => matches!(path.0.as_str(), "/dev/cdrom" | "/dev/dvd"),
        _ => false,
    }
}
