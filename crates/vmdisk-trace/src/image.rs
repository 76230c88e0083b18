//! The format of an image, and its backing chain.

use vmdisk_model::{Discard, DiskField, Format, Image, Switch};
use vmdisk_rule::Missing;
use vmdisk_rule::image_facts::{format_in_use, header};

use crate::chain::Below;
use crate::path::{Layer, Property, RequestOutcome, Statement, StatementBasis};
use crate::tracer::{
    FactProperties, Tracer, bytes, collect, lacking, not_written, property, unknown,
};

const RAW: &str = "QEMU block/raw-format.c: a request has the same offset in the storage";

impl<'a> Tracer<'a> {
    /// Adds the format of an image, its storage and the images below it.
    pub(crate) fn image(&mut self, above: usize, image: &'a Image, depth: usize) {
        let format = match format_in_use(self.context, image) {
            Ok(format) => format,
            Err(missing) => return self.probed(above, image, depth, &missing),
        };
        let below = self.below(image, format);
        let number = self.format(above, image, format, depth, &below);
        let storage = self.backend(number, image, depth);
        self.steps[storage].image = Some(depth);
        let path = image.host_path();
        match (&image.data_file, path) {
            (Some(data), _) => {
                self.backend(number, data, depth);
            }
            (None, Some(path)) if image.creation.is_none() && image.is_headed_by_its_format() => {
                self.recorded_data_file(number, path, format);
            }
            (None, _) => {}
        }
        match (below, path) {
            (Below::Configured(below), _) => self.image(number, below, depth + 1),
            (Below::Recorded(recorded), Some(path)) => {
                self.recorded_chain(number, path, recorded, depth + 1);
            }
            (Below::Recorded(_) | Below::Nothing | Below::Unknown(_), _) => {}
        }
    }

    /// Adds an image whose format is unknown, and its storage.
    fn probed(&mut self, above: usize, image: &'a Image, depth: usize, missing: &Missing) {
        let command = image
            .host_path()
            .map_or_else(Vec::new, |path| collect(&[], path));
        let change = || match depth {
            0 => unknown(missing.clone(), command.clone()),
            _ => not_written(),
        };
        let results = [
            unknown(missing.clone(), command.clone()),
            change(),
            format_flushes(Format::Raw, depth),
            change(),
        ];
        let number = self.add(Some(above), Layer::Format, "probed", Vec::new(), results);
        let storage = self.backend(number, image, depth);
        for step in [number, storage] {
            self.steps[step].image = Some(depth);
        }
    }

    /// Adds the overlay that takes what the guest writes to a transient disk.
    pub(crate) fn temporary_overlay(&mut self, above: usize) -> usize {
        let basis = || self.setting(DiskField::Transient);
        let flush = match self.context.has_unflushed_overlay(self.disk) {
            true => RequestOutcome::Dropped.by(
                "QEMU ignores flushes of its temporary file",
                StatementBasis::source("QEMU block.c, bdrv_temp_snapshot_options"),
            ),
            false => RequestOutcome::Passed.by("to the temporary file", basis()),
        };
        let results = [
            RequestOutcome::Split.by("clusters that the guest has written come from a temporary file, others from the image",
                basis(),
            ),
            RequestOutcome::Cached.by("to a temporary file, which is deleted when the guest stops",
                basis(),
            ),
            flush,
            RequestOutcome::Freed.by("in the temporary file", basis()),
        ];
        let name = "qcow2, temporary";
        self.add(Some(above), Layer::Format, name, Vec::new(), results)
    }

    /// Adds the format of an image, and returns the number of its step.
    pub(crate) fn format(
        &mut self,
        above: usize,
        image: &Image,
        format: Format,
        depth: usize,
        below: &Below<'_>,
    ) -> usize {
        let name = match depth {
            0 => format.to_string(),
            _ => format!("{format}, backing image {depth}"),
        };
        let results = [
            format_reads(image, format, below),
            format_writes(format, depth, below),
            format_flushes(format, depth),
            self.format_discards(image, format, depth),
        ];
        let properties = self.format_properties(image, format);
        let number = self.add(Some(above), Layer::Format, name, properties, results);
        self.steps[number].image = Some(depth);
        number
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
        match header(self.context, path) {
            Ok(Some(header)) => {
                let mut facts = FactProperties::new(format!("{path} image."), &[], path);
                facts.add("clusters", &header.cluster, "cluster", bytes);
                properties.extend(facts.properties);
            }
            Ok(None) => {}
            Err(missing) => {
                let basis = lacking(missing, collect(&[], path));
                properties.push(property("clusters", "unknown", basis));
            }
        }
        properties
    }

    /// The path of an image and the number of its internal snapshots, if it is known to have some.
    fn internal_snapshots<'i>(&self, image: &'i Image) -> Option<(&'i str, u32)> {
        let path = image.host_path()?;
        let header = header(self.context, path).ok()??;
        let count = *header.snapshots.value()?;
        (count > 0).then_some((path, count))
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
        let shared = (format == Format::Qcow2 && !keeps).then(|| self.internal_snapshots(image));
        if let Some((path, count)) = shared.flatten() {
            let text = format!(
                "clusters that one of the {count} internal snapshots has stay; others are freed in the image and discarded in its \
                 storage"
            );
            let fact = format!("{path} image.snapshots = {count}");
            return RequestOutcome::Split.by(text, StatementBasis::fact(fact));
        }
        match format {
            Format::Raw if image.encryption.is_none() => {
                RequestOutcome::Passed.by("at the same offset", StatementBasis::source(RAW))
            }
            Format::Qcow2 if keeps => RequestOutcome::Passed.by(
                "whole clusters stay allocated in the image and are discarded in its storage",
                self.setting(DiskField::DiscardNoUnref),
            ),
            Format::Qcow2 => RequestOutcome::Split.by(
                "whole clusters are freed in the image and discarded in its storage",
                match self.disk.backend.discard {
                    Some(Discard::Unmap) => self.setting(DiskField::Discard),
                    Some(Discard::Ignore) | None => {
                        StatementBasis::source("QEMU block/qcow2-cluster.c, qcow2_cluster_discard")
                    }
                },
            ),
            _ => RequestOutcome::Dropped.by(
                "QEMU's driver of this format has no discards",
                StatementBasis::source(
                    "QEMU block/io.c, bdrv_co_pdiscard: no driver function is not an error",
                ),
            ),
        }
    }
}

/// The driver of a format, with its function in qcow2.
fn driver(format: Format, qcow2: &str) -> StatementBasis {
    let source = match format.qemu_driver() {
        None | Some("qcow2") => format!("QEMU block/{qcow2}"),
        Some("luks") => "QEMU block/crypto.c".to_owned(),
        Some(driver) => format!("QEMU block/{driver}.c"),
    };
    StatementBasis::Source { source }
}

fn format_reads(image: &Image, format: Format, below: &Below<'_>) -> (RequestOutcome, Statement) {
    const READ: &str = "qcow2.c, qcow2_co_preadv_part";
    const FROM_BELOW: &str =
        "clusters that the image does not have are read from the backing image";
    let split = |text: &str, basis| RequestOutcome::Split.by(text, basis);
    match (format, below) {
        (Format::Raw, _) => {
            RequestOutcome::Passed.by("at the same offset", StatementBasis::source(RAW))
        }
        (Format::Luks, _) => RequestOutcome::Passed.by("decrypted", driver(format, READ)),
        (_, Below::Configured(_)) => split(FROM_BELOW, driver(format, READ)),
        (_, Below::Recorded(recorded)) => {
            let path = image.host_path().unwrap_or_default();
            let fact = format!("{path} image.backing.path = {}", recorded.path);
            split(FROM_BELOW, StatementBasis::fact(fact))
        }
        (_, Below::Nothing) => split(
            "looked up cluster by cluster; clusters that were never written read as zeroes",
            driver(format, READ),
        ),
        (_, Below::Unknown(missing)) => {
            let path = image.host_path();
            let command = path.map_or_else(Vec::new, |path| collect(&[], path));
            split(
                "looked up cluster by cluster; there may be a backing image for the others",
                lacking(missing.clone(), command),
            )
        }
    }
}

fn format_writes(format: Format, depth: usize, below: &Below<'_>) -> (RequestOutcome, Statement) {
    if depth > 0 {
        return not_written();
    }
    match (format, below) {
        (Format::Raw, _) => RequestOutcome::Passed.by("at the same offset",
            StatementBasis::source(RAW),
        ),
        (Format::Luks, _) => RequestOutcome::Passed.by("encrypted", driver(format, "")),
        (_, Below::Configured(_) | Below::Recorded(_)) => RequestOutcome::Split.by("the first write to a cluster allocates it, and copies the rest of it from the backing image",
            driver(format, "qcow2-cluster.c, perform_cow"),
        ),
        (_, Below::Nothing | Below::Unknown(_)) => RequestOutcome::Split.by("the first write to a cluster allocates it, which writes metadata",
            driver(format, "qcow2-cluster.c, qcow2_alloc_host_offset"),
        ),
    }
}

fn format_flushes(format: Format, depth: usize) -> (RequestOutcome, Statement) {
    if depth > 0 {
        return not_written();
    }
    match format {
        Format::Raw => RequestOutcome::Passed.by("to the storage", StatementBasis::source(RAW)),
        Format::Qcow2 => RequestOutcome::Passed.by(
            "writes cached metadata, and flushes the storage",
            StatementBasis::source(
                "QEMU block/io.c, bdrv_co_flush; block/qcow2.c, qcow2_co_flush_to_os",
            ),
        ),
        _ => RequestOutcome::Passed.by(
            "to the storage",
            StatementBasis::source("QEMU block/io.c, bdrv_co_flush"),
        ),
    }
}
