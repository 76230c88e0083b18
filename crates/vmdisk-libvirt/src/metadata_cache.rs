//! `<metadata_cache>`: the amount of a qcow2 image's metadata that is kept in memory.

use vmdisk_model::{Bytes, DiskField, FieldPath, ImageField};

use crate::element::Element;
use crate::reader::Reader;
use crate::scaled;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::writer::Writer;

/// The locations of the element and of its child.
pub(crate) type Paths = [&'static str; 2];

/// Reads a cache in a driver element, or in the format of a backing store.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_>,
    [path, size_path]: Paths,
    kept: &mut UnmodeledContent,
) -> Option<Bytes> {
    let mut cache = reader.child(parent, "metadata_cache")?;
    let owner = parent.owner;
    let at = match owner.depth {
        0 => FieldPath::Disk(owner.index, DiskField::MetadataCacheSize),
        depth => FieldPath::Image(owner.index, depth, ImageField::MetadataCacheSize),
    };
    let size = reader
        .child(&mut cache, "max_size")
        .and_then(|mut element| {
            let (size, text) = scaled::read(reader, &mut element, "bytes", at);
            let mut parts = reader.close(element);
            parts.text = text;
            kept.note(UnmodeledPath::deep(size_path, owner.depth), parts);
            size
        });
    kept.note(UnmodeledPath::deep(path, owner.depth), reader.close(cache));
    size
}

/// Writes a cache, if there is one.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    size: Option<Bytes>,
    [path, size_path]: Paths,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    if size.is_some() || kept.has_within(path, depth) {
        writer.start("metadata_cache", kept.at(UnmodeledPath::deep(path, depth)));
        let at = UnmodeledPath::deep(size_path, depth);
        scaled::write(writer, "max_size", size, kept, at);
        writer.end();
    }
}
