//! The node that opens a file or device.

use vmdisk_facts::Capability;
use vmdisk_model::{
    AioMode, DetectZeroes, DevicePath, DevicePathKind, Discard, DiskField, FieldPath, ImageField,
    Protocol,
};

use super::{Layer, NodeOptions};
use crate::json::JsonObject;
use crate::writer::Writer;

impl Writer<'_> {
    /// Writes the protocol node of one image.
    pub(crate) fn write_protocol(&mut self, layer: &Layer<'_>, protocol: &Protocol) {
        let at = layer.at(ImageField::Source);
        let (driver, path) = match protocol {
            Protocol::File { path } => ("file", path),
            Protocol::HostDevice { path } if layer.is_optical && is_optical_drive(path) => {
                ("host_cdrom", &path.0)
            }
            Protocol::HostDevice { path } => ("host_device", &path.0),
            Protocol::Other(word) => {
                self.problem(
                    at,
                    format!("a source of type '{word}' cannot be written yet"),
                );
                return;
            }
        };
        if path.is_empty() {
            self.problem(layer.at(ImageField::Path), "the path is empty");
            return;
        }
        let mut node = JsonObject::new()
            .with("driver", driver)
            .with("node-name", layer.names.protocol(layer.depth))
            .with("filename", path.as_str());
        node.push_some("aio", layer.aio.map(AioMode::as_wire));
        if layer.aio == Some(AioMode::IoUring) && layer.depth == 0 {
            let at = FieldPath::Disk(layer.nth, DiskField::Aio);
            self.require(Capability::AioIoUring, at, "aio=io_uring");
        }
        if self.is_libvirt_style() {
            libvirt_protocol_options(layer, &mut node);
            self.blockdev(node, at);
            return;
        }
        layer.options.push_to(&mut node);
        if layer.depth == 0 {
            node.push("read-only", !layer.is_writable);
        } else {
            // Opened for reading, as `read-only` would have it, but a block-commit into this image
            // may still reopen it for writing; under `read-only` QEMU refuses the job.
            node.push("auto-read-only", true);
        }
        self.blockdev(node, at);
    }
}

/// The options of a protocol node as libvirt writes them: under a format node it may always be
/// opened either way and always discards; on its own it says what the disk says.
fn libvirt_protocol_options(layer: &Layer<'_>, node: &mut JsonObject) {
    let NodeOptions { cache, discard } = layer.options;
    if layer.has_format_node {
        node.push("auto-read-only", true);
        let discard = Some(Discard::Unmap);
        NodeOptions { cache, discard }.push_to(node);
    } else {
        node.push("read-only", !layer.is_writable);
        NodeOptions { cache, discard }.push_to(node);
        node.push_some(
            "detect-zeroes",
            layer.detect_zeroes.map(DetectZeroes::as_wire),
        );
    }
}

/// True for a drive with a tray, which its own driver handles; told by the name, as nothing is
/// looked at here.
fn is_optical_drive(path: &DevicePath) -> bool {
    match path.kind() {
        DevicePathKind::KernelName(name) => name.starts_with("sr"),
        DevicePathKind::Other => matches!(path.0.as_str(), "/dev/cdrom" | "/dev/dvd"),
        DevicePathKind::Persistent { .. }
        | DevicePathKind::Mapper(_)
        | DevicePathKind::LogicalVolume { .. }
        | DevicePathKind::Zvol(_) => false,
    }
}
