//! The node of an image's format.

use vmdisk_facts::Capability;
use vmdisk_model::{
    Backing, DetectZeroes, DiskField, EncryptionFormat, FieldPath, Format, ImageField, Protocol,
    Switch,
};

use super::Layer;
use super::image::is_encrypted_for_qemu;
use crate::json::{Json, JsonObject};
use crate::writer::Writer;

/// QEMU's driver for a format, or the reason why there is none.
pub(crate) fn driver(format: Format) -> Result<&'static str, &'static str> {
    format.qemu_driver().ok_or(if format == Format::Fat {
        "only a directory is shown as a FAT file system"
    } else {
        "QEMU has no driver of this name"
    })
}

impl Writer<'_> {
    /// The format node of one image. Raw images have one too, so that every disk has the same shape. An unset format
    /// means raw, because with probing the guest could choose it.
    pub(super) fn format_node(
        &mut self,
        layer: &Layer<'_>,
        backing: &Backing,
        data_file: Option<String>,
    ) -> JsonObject {
        let format = layer.image.format.unwrap_or(Format::Raw);
        let at = layer.at(ImageField::Format);
        let is_directory = matches!(layer.image.protocol, Protocol::Directory { .. });
        let driver = if format == Format::Fat && is_directory {
            // The protocol node provides the file system.
            "raw"
        } else if format == Format::Raw && is_encrypted_for_qemu(layer.image) {
            "luks"
        } else {
            driver(format).unwrap_or_else(|reason| {
                self.problem(at, format!("format '{format}': {reason}"));
                format.as_str()
            })
        };
        let mut node = JsonObject::new()
            .with("driver", driver)
            .with("node-name", layer.names.format())
            .with("file", layer.storage());
        self.decryption(layer, driver, &mut node);
        if let Some(data_file) = data_file {
            if format == Format::Qcow2 {
                node.push("data-file", data_file);
            } else {
                let message = "only qcow2 images support an external data file";
                self.problem(layer.at(ImageField::DataFile), message);
            }
        }
        match backing {
            Backing::Image(_) if format.has_backing() => {
                node.push_some("backing", layer.below.clone());
            }
            Backing::Image(_) => self.no_backing(layer, format),
            Backing::Terminated if format.has_backing() => node.push("backing", Json::Null),
            // Without the option there is no limit to set.
            Backing::Terminated => {}
            Backing::Unspecified => {}
        }
        layer.options.push_to(&mut node);
        // Zero detection belongs to the node where requests enter the image; further down it would run a second time,
        // and on metadata. QEMU does not pass this option to a child either.
        node.push_some(
            "detect-zeroes",
            layer.detect_zeroes.map(DetectZeroes::as_str),
        );
        node.push("read-only", !layer.is_writable);
        self.check_qcow2_options(layer, format);
        if format == Format::Qcow2 {
            self.qcow2_options(layer, &mut node);
        }
        node
    }

    /// Adds the options that QEMU needs to decrypt an image.
    fn decryption(&mut self, layer: &Layer<'_>, driver: &str, node: &mut JsonObject) {
        let at = layer.at(ImageField::Encryption);
        if !is_encrypted_for_qemu(layer.image) {
            if driver == "luks" {
                self.problem_with_help(
                    layer.at(ImageField::Format),
                    "a LUKS container requires a secret",
                    "write `<encryption format='luks'>` with a `<secret>` in the source",
                );
            }
            return;
        }
        let format = layer
            .image
            .encryption
            .as_ref()
            .and_then(|encryption| encryption.format);
        match format {
            Some(EncryptionFormat::Luks) => {}
            Some(EncryptionFormat::Luks2 | EncryptionFormat::LuksAny) => {
                self.problem(at, "QEMU supports only LUKS version 1");
            }
            Some(EncryptionFormat::Default | EncryptionFormat::Qcow) | None => {
                self.problem(
                    at,
                    "QEMU does not support images with legacy encryption in guests",
                );
            }
        }
        let mut secrets = self.encryption_secrets(layer).into_iter();
        let (Some(secret), None) = (secrets.next(), secrets.next()) else {
            self.problem(at, "QEMU supports exactly one secret per image");
            return;
        };
        match driver {
            "luks" => node.push("key-secret", secret),
            "qcow2" => {
                let encrypt = JsonObject::new()
                    .with("format", "luks")
                    .with("key-secret", secret);
                node.push("encrypt", encrypt);
            }
            _ => self.problem(at, "QEMU supports encryption only of raw and qcow2 images"),
        }
    }

    /// Reports a backing image below a format that does not support one.
    pub(super) fn no_backing(&mut self, layer: &Layer<'_>, format: Format) {
        self.problem(
            layer.at(ImageField::Format),
            format!("an image of format '{format}' does not support a backing image"),
        );
    }

    /// Reports options of qcow2 on another format.
    pub(super) fn check_qcow2_options(&mut self, layer: &Layer<'_>, format: Format) {
        if format == Format::Qcow2 {
            return;
        }
        let cache = match layer.depth {
            0 => FieldPath::Disk(layer.nth, DiskField::MetadataCacheSize),
            _ => layer.at(ImageField::MetadataCacheSize),
        };
        let no_unref = FieldPath::Disk(layer.nth, DiskField::DiscardNoUnref);
        for (at, is_set) in [
            (cache, layer.metadata_cache_size.is_some()),
            (no_unref, layer.discard_no_unref.is_some()),
        ] {
            if is_set {
                self.problem(at, "this option is only for qcow2 images");
            }
        }
    }

    /// Adds the options that only qcow2 has.
    fn qcow2_options(&mut self, layer: &Layer<'_>, node: &mut JsonObject) {
        node.push_some("cache-size", layer.metadata_cache_size.map(|size| size.0));
        if layer.discard_no_unref.is_some() {
            self.require(
                Capability::DiscardNoUnref,
                FieldPath::Disk(layer.nth, DiskField::DiscardNoUnref),
                "discard-no-unref",
            );
        }
        node.push_some(
            "discard-no-unref",
            layer.discard_no_unref.map(|on| on == Switch::On),
        );
    }
}
