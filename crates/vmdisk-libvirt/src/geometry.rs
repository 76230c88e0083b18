//! `<geometry>`: the cylinders, heads and sectors that the guest sees.

use vmdisk_model::{Geometry, GeometryTranslation};

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::unsigned32;
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("geometry");

/// Reads the geometry.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Option<Geometry> {
    let mut element = reader.child(disk, "geometry")?;
    let geometry = Geometry {
        cylinders: element.take("cyls", unsigned32),
        heads: element.take("heads", unsigned32),
        sectors: element.take("secs", unsigned32),
        translation: element.take("trans", GeometryTranslation::from_word),
    };
    kept.note(AT, reader.close(element));
    Some(geometry)
}

/// Writes the geometry.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    geometry: Option<&Geometry>,
    kept: &'k UnmodeledContent,
) {
    let Some(geometry) = geometry else {
        return;
    };
    let Geometry {
        cylinders,
        heads,
        sectors,
        translation,
    } = geometry;
    writer.start("geometry", kept.at(AT));
    writer.optional("cyls", *cylinders);
    writer.optional("heads", *heads);
    writer.optional("secs", *sectors);
    writer.optional("trans", *translation);
    writer.end();
}
