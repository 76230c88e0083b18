//! `<source pool='…' volume='…'>`: a volume of a storage pool.

use vmdisk_model::{VolumeMode, VolumeSource};
use vmdisk_rule::reading::MISSING_VALUE;

use crate::element::Element;
use crate::reader::Reader;
use crate::writer::Writer;

/// A problem was reported.
pub(super) struct ErrorReported;

/// Reads a volume; `None` without a name.
pub(super) fn read(
    reader: &mut Reader<'_>,
    source: &mut Element<'_>,
) -> Result<Option<VolumeSource>, ErrorReported> {
    let is_named = |name| source.peek(name).is_some_and(|text| !text.is_empty());
    match (is_named("pool"), is_named("volume")) {
        (true, true) => Ok(source
            .take_text("pool")
            .zip(source.take_text("volume"))
            .map(|(pool, volume)| VolumeSource {
                pool,
                volume,
                mode: source.take("mode", VolumeMode::from_word),
            })),
        (false, false) => Ok(None),
        (has_pool, _) => {
            let missing = if has_pool { "volume" } else { "pool" };
            let message =
                format!("`{missing}` is missing: a volume source requires pool and volume");
            let (at, tag) = (source.at, source.tag);
            reader.problem(&MISSING_VALUE, at, tag, message);
            Err(ErrorReported)
        }
    }
}

/// Writes the attributes of a volume.
pub(super) fn write(writer: &mut Writer<'_>, source: &VolumeSource) {
    let VolumeSource { pool, volume, mode } = source;
    writer.attribute("pool", pool);
    writer.attribute("volume", volume);
    writer.optional("mode", *mode);
}
