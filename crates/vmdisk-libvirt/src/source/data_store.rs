//! `<dataStore>`: the external data file of a qcow2 image.

use vmdisk_model::{Format, Image, Protocol};
use vmdisk_rule::reading::{INVALID_VALUE, MISSING_VALUE};

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::writer::Writer;

const AT: &str = "source/dataStore";
const FORMAT: &str = "source/dataStore/format";

/// The depth for the kept parts of a data store, separate from those of the chain.
const fn depth_of_data(depth: usize) -> usize {
    depth + usize::MAX / 2
}

/// Reads a data store. It is not an image of the chain, so its fields have no recorded spans.
pub(super) fn read(
    reader: &mut Reader<'_>,
    source: &mut Element<'_>,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Option<Box<Image>> {
    if depth >= depth_of_data(0) {
        // libvirt does not allow nested ones; it is kept.
        if source
            .children
            .iter()
            .any(|child| child.name() == "dataStore")
        {
            let message = "a data store cannot contain another data store".to_owned();
            reader.problem(&INVALID_VALUE, source.at, source.tag, message);
        }
        return None;
    }
    let node = source.child("dataStore")?;
    let mut element = reader.open_child(source, node, source.owner);
    let image = reader.unrecorded(|reader| {
        let source_type = element.peek("type").unwrap_or("file").to_owned();
        let inner = depth_of_data(depth);
        let image = super::read_image(reader, &mut element, inner, &mut None, kept);
        let mut image = image.unwrap_or_else(|| {
            let attribute = super::main_attribute(&source_type);
            let message =
                format!("the data store has no source: `<source {attribute}=…>` is missing");
            let (at, tag) = (element.at, element.tag);
            reader.problem(&MISSING_VALUE, at, tag, message);
            Image::new(None, Protocol::Other(source_type))
        });
        element.take_known("type");
        if let Some(node) = element.child("format") {
            let mut format = reader.open_child(&element, node, element.owner);
            image.format = format.take("type", Format::from_wire);
            kept.note(UnmodeledPath::deep(FORMAT, depth), reader.close(format));
        }
        kept.note(UnmodeledPath::deep(AT, depth), reader.close(element));
        image
    });
    Some(Box::new(image))
}

/// Writes a data store.
pub(super) fn write<'k>(
    writer: &mut Writer<'k>,
    data_file: Option<&Image>,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    let Some(image) = data_file else { return };
    writer.start("dataStore", kept.at(UnmodeledPath::deep(AT, depth)));
    writer.attribute("type", super::type_of(&image.protocol));
    let parts = kept.at(UnmodeledPath::deep(FORMAT, depth));
    if image.format.is_some() || !parts.is_empty() {
        writer.start("format", parts);
        writer.optional("type", image.format);
        writer.end();
    }
    super::write_image(writer, image, depth_of_data(depth), None, kept);
    writer.end();
}
