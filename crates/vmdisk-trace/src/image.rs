//! The format of an image, and its backing chain.

use vmdisk_model::{Backing, Discard, DiskField, Format, Image, Switch};
use vmdisk_rule::image_facts::header;

use crate::path::{Layer, Property, RequestOutcome, Statement, StatementBasis};
use crate::tracer::{Tracer, collect, lacking, property, property_of, result};

const RAW: &str = "QEMU block/raw-format.c: a request has the same offset in the storage";

impl<'a> Tracer<'a> {
    /// Adds the format of an image, its storage and the images below it.
    pub(crate) fn image(&mut self, above: usize, image: &'a Image, depth: usize) {
        let format = image.format.unwrap_or(Format::Raw);
        let name = match depth {
            0 => format.to_string(),
            _ => format!("{format}, backing image {depth}"),
        };
        let results = [
            self.format_reads(image, format),
            self.format_writes(image, format, depth),
            format_flushes(format, depth),
            self.format_discards(image, format, depth),
        ];
        let properties = self.format_properties(image, format);
        let number = self.add(Some(above), Layer::Format, name, properties, results);
        self.steps[number].image = Some(depth);
        let storage = self.backend(number, image, depth);
        self.steps[storage].image = Some(depth);
        if let Some(data) = &image.data_file {
            self.backend(number, data, depth);
        }
        if let Backing::Image(below) = &image.backing {
            self.image(number, below, depth + 1);
        }
    }

    fn format_properties(&self, image: &Image, format: Format) -> Vec<Property> {
        let mut properties = Vec::new();
        if let Some(slice) = image.slice {
            let value = format!("{} bytes from byte {}", slice.size, slice.offset);
            properties.push(property("slice", value, StatementBasis::source(RAW)));
        }
        if image.encryption.is_some() {
            let basis = StatementBasis::source(
                "QEMU docs/system/qemu-block-drivers.rst: QEMU encrypts and decrypts",
            );
            properties.push(property("encryption", "by QEMU", basis));
        }
        let (Format::Qcow2, Some(path)) = (format, image.host_path()) else {
            return properties;
        };
        let command = collect(&[], path);
        match header(self.context, path) {
            Ok(Some(header)) => {
                let key = format!("{path} image.cluster");
                let show = |bytes: &u64| format!("{bytes} bytes");
                properties.extend(property_of(
                    "clusters",
                    header.cluster.clone(),
                    &key,
                    show,
                    &command,
                ));
            }
            Ok(None) => {}
            Err(missing) => {
                properties.push(property("clusters", "unknown", lacking(missing, command)));
            }
        }
        properties
    }

    fn format_reads(&self, image: &Image, format: Format) -> (RequestOutcome, Statement) {
        match (format, &image.backing) {
            (Format::Raw, _) => result(
                RequestOutcome::Passed,
                "at the same offset",
                StatementBasis::source(RAW),
            ),
            (_, Backing::Image(_)) => result(
                RequestOutcome::Split,
                "clusters that the image does not have are read from the backing image",
                StatementBasis::source("QEMU block/qcow2.c, qcow2_co_preadv_part"),
            ),
            (_, Backing::Unspecified | Backing::Terminated) => result(
                RequestOutcome::Split,
                "looked up cluster by cluster; clusters that were never written read as zeroes",
                StatementBasis::source("QEMU block/qcow2.c, qcow2_co_preadv_part"),
            ),
        }
    }

    fn format_writes(
        &self,
        image: &Image,
        format: Format,
        depth: usize,
    ) -> (RequestOutcome, Statement) {
        if depth > 0 {
            return not_written();
        }
        match (format, &image.backing) {
            (Format::Raw, _) => result(
                RequestOutcome::Passed,
                "at the same offset",
                StatementBasis::source(RAW),
            ),
            (_, Backing::Image(_)) => result(
                RequestOutcome::Split,
                "the first write to a cluster allocates it, and copies the rest of it from the backing image",
                StatementBasis::source("QEMU block/qcow2-cluster.c, perform_cow"),
            ),
            (_, Backing::Unspecified | Backing::Terminated) => result(
                RequestOutcome::Split,
                "the first write to a cluster allocates it, which writes metadata",
                StatementBasis::source("QEMU block/qcow2-cluster.c, qcow2_alloc_host_offset"),
            ),
        }
    }

    fn format_discards(
        &self,
        image: &Image,
        format: Format,
        depth: usize,
    ) -> (RequestOutcome, Statement) {
        if depth > 0 {
            return not_written();
        }
        let keeps = self.disk.backend.discard_no_unref == Some(Switch::On);
        match format {
            Format::Raw if image.encryption.is_none() => result(
                RequestOutcome::Passed,
                "at the same offset",
                StatementBasis::source(RAW),
            ),
            Format::Qcow2 if keeps => result(
                RequestOutcome::Passed,
                "whole clusters stay allocated in the image and are discarded in its storage",
                self.setting(DiskField::DiscardNoUnref),
            ),
            Format::Qcow2 => result(
                RequestOutcome::Split,
                "whole clusters are freed in the image and discarded in its storage",
                match self.disk.backend.discard {
                    Some(Discard::Unmap) => self.setting(DiskField::Discard),
                    Some(Discard::Ignore) | None => {
                        StatementBasis::source("QEMU block/qcow2-cluster.c, qcow2_cluster_discard")
                    }
                },
            ),
            _ => result(
                RequestOutcome::Dropped,
                "QEMU's driver of this format has no discards",
                StatementBasis::source(
                    "QEMU block/io.c, bdrv_co_pdiscard: no driver function is not an error",
                ),
            ),
        }
    }
}

/// The result of a request that changes data, on a backing image.
fn not_written() -> (RequestOutcome, Statement) {
    result(
        RequestOutcome::Absent,
        "a backing image is not written",
        StatementBasis::source("QEMU block.c: a backing image is opened read-only"),
    )
}

fn format_flushes(format: Format, depth: usize) -> (RequestOutcome, Statement) {
    if depth > 0 {
        return not_written();
    }
    match format {
        Format::Raw => result(
            RequestOutcome::Passed,
            "to the storage",
            StatementBasis::source(RAW),
        ),
        _ => result(
            RequestOutcome::Passed,
            "writes cached metadata, and flushes the storage",
            StatementBasis::source(
                "QEMU block/io.c, bdrv_co_flush; block/qcow2.c, qcow2_co_flush_to_os",
            ),
        ),
    }
}
