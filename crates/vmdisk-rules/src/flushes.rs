//! Flushes that the storage of a disk loses, at any layer.

use vmdisk_facts::Fact;
use vmdisk_facts::stack::{FlushEffect, FlushLoss, LostFlush, UnknownFlush};
use vmdisk_model::{FieldPath, HostStorage, Image, ImageField};
use vmdisk_rule::{Context, Finding, Missing, Report};

use crate::host;

/// A layer under a disk that loses its flushes.
pub(crate) struct Lost<'a> {
    /// The image, or its data file.
    pub(crate) at: FieldPath,
    path: &'a str,
    /// The layer.
    pub(crate) lost: LostFlush<'a>,
}

impl Lost<'_> {
    /// Says how the image is on the layer, if others are between.
    pub(crate) fn note_depth(&self, finding: &mut Finding) {
        if self.lost.depth > 0 {
            let layer = self.lost.layer.name();
            finding.note(format!("{} is on {layer}, below other layers", self.path));
        }
    }
}

/// The layers that lose flushes for some reasons, of all disks whose data stays, also of those that drop flushes
/// themselves (`cache-unsafe`). A missing fact that could show one is not checked.
pub(crate) fn lost<'a>(
    context: &Context<'a>,
    report: &mut Report,
    losses: &[FlushLoss],
    what: &'static str,
) -> Vec<Lost<'a>> {
    let mut found = Vec::new();
    for (index, _, image, path) in host::kept(context) {
        let Some(facts) = host::facts(context, report, host::image_of(index), what) else {
            break;
        };
        let is_device = matches!(image.protocol.on_host(), Some(HostStorage::Device(_)));
        let data = data_file(context, image, path);
        let data = data.map(|path| (ImageField::DataFile, path, path.starts_with("/dev/")));
        let storage = [Some((ImageField::Path, path, is_device)), data];
        for (field, path, is_device) in storage.into_iter().flatten() {
            let at = FieldPath::Image(index, 0, field);
            let what = || format!("{what} under {path}");
            let layers = facts.lost_flushes(path, is_device);
            let layers = layers.map_err(|missing| missing_of(missing, what));
            for lost in report.require(at, layers).into_iter().flatten() {
                match &lost.effect {
                    FlushEffect::Dropped(reason) if losses.contains(reason) => {
                        found.push(Lost { at, path, lost });
                    }
                    FlushEffect::Unknown(UnknownFlush::Missing(reason, missing))
                        if reason.is_none_or(|reason| losses.contains(&reason)) =>
                    {
                        report.not_checked(at, missing_of(missing.clone(), what));
                    }
                    _ => {}
                }
            }
        }
    }
    found
}

fn missing_of(missing: Fact<()>, what: impl Fn() -> String) -> Missing {
    let missing = Context::known(missing, &what).err();
    missing.unwrap_or_else(|| Missing::new(what(), "absent"))
}

/// The external data file of an image: the configured one, or the one in its header.
pub(crate) fn data_file<'a>(
    context: &Context<'a>,
    image: &'a Image,
    path: &'a str,
) -> Option<&'a str> {
    if let Some(data) = &image.data_file {
        return data.host_path();
    }
    let is_headed = image.creation.is_none() && image.is_headed_by_its_format();
    let header = host::header(context, path)
        .ok()
        .flatten()
        .filter(|_| is_headed)?;
    header
        .data_file
        .value()
        .map(String::as_str)
        .filter(|path| path.starts_with('/'))
}
