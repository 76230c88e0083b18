//! The node that knows an image's format.

use vmdisk_facts::Capability;
use vmdisk_model::{
    Backing, Bytes, DetectZeroes, DiskField, FieldPath, Format, ImageField, Switch,
};

use super::Layer;
use crate::json::{Json, JsonObject};
use crate::writer::Writer;

/// QEMU's driver for a format, or why there is none.
fn driver(format: Format) -> Result<&'static str, &'static str> {
    match format {
        Format::Raw
        | Format::Qcow2
        | Format::Qcow
        | Format::Qed
        | Format::Vmdk
        | Format::Vdi
        | Format::Vpc
        | Format::Bochs
        | Format::Cloop
        | Format::Dmg => Ok(format.as_wire()),
        Format::Vhd => Ok("vhdx"),
        Format::Ploop => Ok("parallels"),
        Format::Fat => Err("a directory shown as a FAT file system cannot be written yet"),
        Format::Luks => Err("a LUKS container needs a secret, which cannot be written yet"),
        Format::Iso | Format::Cow | Format::Dir => Err("QEMU has no driver of this name"),
    }
}

impl Writer<'_> {
    /// The format node of one image. There is one for raw images too, so that every disk has the
    /// same shape; a format that is not said is raw, because probing lets a guest choose.
    pub(crate) fn format_node(
        &mut self,
        layer: &Layer<'_>,
        format: Option<Format>,
        backing: &Backing,
    ) -> JsonObject {
        let format = format.unwrap_or(Format::Raw);
        let at = layer.at(ImageField::Format);
        let driver = driver(format).unwrap_or_else(|reason| {
            self.problem(at, format!("format '{format}': {reason}"));
            format.as_wire()
        });
        let mut node = JsonObject::new()
            .with("driver", driver)
            .with("node-name", layer.names.format(layer.depth))
            .with("file", layer.names.protocol(layer.depth));
        match backing {
            Backing::Image(_) if format.has_backing() => {
                let below = layer.depth + 1;
                node.push(
                    "backing",
                    if layer.has_format_node_below {
                        layer.names.format(below)
                    } else {
                        layer.names.protocol(below)
                    },
                );
            }
            Backing::Image(_) => self.no_backing(layer, format),
            Backing::Terminated if format.has_backing() => node.push("backing", Json::Null),
            // Without an option for it there is nothing to end.
            Backing::Terminated => {}
            Backing::Unspecified => {}
        }
        layer.options.push_to(&mut node);
        // Where requests enter the image; below it QEMU would look for zeroes a second time, and in
        // its metadata. QEMU itself does not hand this option down to a child either.
        node.push_some(
            "detect-zeroes",
            layer.detect_zeroes.map(DetectZeroes::as_wire),
        );
        node.push("read-only", !layer.is_writable);
        node
    }

    fn no_backing(&mut self, layer: &Layer<'_>, format: Format) {
        self.problem(
            layer.at(ImageField::Format),
            format!("an image of format '{format}' has no backing image"),
        );
    }

    /// Notes a backing image below a raw one, whose node is not there to refuse it.
    pub(crate) fn check_raw_backing(&mut self, layer: &Layer<'_>, backing: &Backing) {
        match backing {
            Backing::Image(_) => self.no_backing(layer, Format::Raw),
            Backing::Terminated | Backing::Unspecified => {}
        }
    }

    /// Adds the options that only qcow2 has.
    pub(crate) fn qcow2_options(
        &mut self,
        nth: usize,
        node: &mut JsonObject,
        format: Option<Format>,
        metadata_cache_size: Option<Bytes>,
        discard_no_unref: Option<Switch>,
    ) {
        let at = |field| FieldPath::Disk(nth, field);
        if format != Some(Format::Qcow2) {
            for (field, is_set) in [
                (DiskField::MetadataCacheSize, metadata_cache_size.is_some()),
                (DiskField::DiscardNoUnref, discard_no_unref.is_some()),
            ] {
                if is_set {
                    self.problem(at(field), "only qcow2 images have this option");
                }
            }
            return;
        }
        node.push_some("cache-size", metadata_cache_size.map(|size| size.0));
        if discard_no_unref.is_some() {
            self.require(
                Capability::DiscardNoUnref,
                at(DiskField::DiscardNoUnref),
                "discard-no-unref",
            );
        }
        node.push_some(
            "discard-no-unref",
            discard_no_unref.map(|on| on == Switch::On),
        );
    }
}
