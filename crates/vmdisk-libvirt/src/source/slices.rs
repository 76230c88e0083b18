//! `<slices>`: the part of the storage that contains the image.

use vmdisk_model::Slice;

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::unsigned64;
use crate::writer::Writer;

const AT: &str = "source/slices";
const SLICE: &str = "source/slices/slice";

/// Reads the first slice of type `storage`, the only one that libvirt uses.
pub(super) fn read(
    reader: &mut Reader<'_>,
    source: &mut Element<'_>,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Option<Slice> {
    let mut element = reader.child(source, "slices")?;
    let mut slice = None;
    for node in element.children("slice") {
        let number = |name| node.attribute(name).and_then(unsigned64);
        let is_storage = node.attribute("type") == Some("storage");
        let (Some(offset), Some(size), true, None) =
            (number("offset"), number("size"), is_storage, slice)
        else {
            element.give_back(node);
            continue;
        };
        let mut inner = reader.open_child(&element, node, element.owner);
        for name in ["type", "offset", "size"] {
            inner.take_known(name);
        }
        kept.note(UnmodeledPath::deep(SLICE, depth), reader.close(inner));
        slice = Some(Slice { offset, size });
    }
    kept.note(UnmodeledPath::deep(AT, depth), reader.close(element));
    slice
}

/// Writes a slice.
pub(super) fn write<'k>(
    writer: &mut Writer<'k>,
    slice: Option<Slice>,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    let parts = kept.at(UnmodeledPath::deep(AT, depth));
    if slice.is_none() && parts.is_empty() {
        return;
    }
    writer.start("slices", parts);
    if let Some(Slice { offset, size }) = slice {
        writer.start("slice", kept.at(UnmodeledPath::deep(SLICE, depth)));
        writer.attribute("type", "storage");
        writer.attribute("offset", offset);
        writer.attribute("size", size);
        writer.end();
    }
    writer.end();
}
