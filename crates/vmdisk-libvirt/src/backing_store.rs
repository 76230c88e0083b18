//! `<backingStore>`: the images below the top one.

use vmdisk_model::{Backing, Format, Image, Protocol};
use vmdisk_rule::reading::MISSING_VALUE;

use crate::element::Element;
use crate::metadata_cache;
use crate::reader::Reader;
use crate::source::image;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::vocabulary::FieldOwner;
use crate::writer::Writer;

const AT: &str = "backingStore";
const FORMAT: &str = "backingStore/format";
const CACHE: metadata_cache::Paths = [
    "backingStore/format/metadata_cache",
    "backingStore/format/metadata_cache/max_size",
];

/// Reads the chain below a disk's top image, without recursion: chains may be deep.
pub(crate) fn read<'d>(
    reader: &mut Reader<'_>,
    disk: &mut Element<'d>,
    kept: &mut UnmodeledContent,
) -> Backing {
    let mut stack: Vec<Element<'d>> = Vec::new();
    let mut backing = loop {
        let parent = stack.last_mut().unwrap_or(&mut *disk);
        let Some(node) = parent.child(AT) else {
            break Backing::Unspecified;
        };
        let owner = FieldOwner {
            index: parent.owner.index,
            depth: parent.owner.depth + 1,
        };
        let element = reader.open_child(parent, node, owner);
        if element.peek("type").is_some() {
            stack.push(element);
            continue;
        }
        if element.children.is_empty() {
            kept.note(UnmodeledPath::deep(AT, owner.depth), reader.close(element));
            break Backing::Terminated;
        }
        let message =
            "`<backingStore>` has no `type`: libvirt treats it as the end of the chain".to_owned();
        let (at, tag) = (element.at, element.tag);
        reader.problem(&MISSING_VALUE, at, tag, message).help =
            Some("add `type='file'`, or make the element empty".to_owned());
        stack.push(element);
    };
    while let Some(element) = stack.pop() {
        backing = Backing::Image(Box::new(read_image(reader, element, backing, kept)));
    }
    backing
}

fn read_image(
    reader: &mut Reader<'_>,
    mut element: Element<'_>,
    backing: Backing,
    kept: &mut UnmodeledContent,
) -> Image {
    let depth = element.owner.depth;
    let mut format = None;
    let mut metadata_cache_size = None;
    if let Some(mut inner) = reader.child(&mut element, "format") {
        format = inner.take("type", Format::from_word);
        metadata_cache_size = metadata_cache::read(reader, &mut inner, CACHE, kept);
        kept.note(UnmodeledPath::deep(FORMAT, depth), reader.close(inner));
    } else if element.peek("type").is_some() {
        let message = "the backing store has no format: `<format type=…/>` is missing".to_owned();
        reader.problem(&MISSING_VALUE, element.at, element.tag, message);
    }
    let source_type = element.peek("type").unwrap_or("file").to_owned();
    let image = image::read(reader, &mut element, depth, &mut None, kept);
    element.take_known("type");
    let image = image.unwrap_or_else(|| {
        let attribute = image::main_attribute(&source_type);
        let message =
            format!("the backing store has no source: `<source {attribute}=…>` is missing");
        let (at, tag) = (element.at, element.tag);
        reader.problem(&MISSING_VALUE, at, tag, message);
        Image::new(None, Protocol::Other(source_type))
    });
    kept.note(UnmodeledPath::deep(AT, depth), reader.close(element));
    Image {
        format,
        backing,
        metadata_cache_size,
        ..image
    }
}

/// Writes the chain below a disk's top image, without recursion.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    mut backing: &Backing,
    kept: &'k UnmodeledContent,
) {
    let mut depth = 0;
    loop {
        match backing {
            Backing::Unspecified => break,
            Backing::Terminated => {
                writer.start(AT, kept.at(UnmodeledPath::deep(AT, depth + 1)));
                writer.end();
                break;
            }
            Backing::Image(image) => {
                depth += 1;
                writer.start(AT, kept.at(UnmodeledPath::deep(AT, depth)));
                writer.attribute("type", image::type_of(&image.protocol));
                let parts = kept.at(UnmodeledPath::deep(FORMAT, depth));
                let cache = image.metadata_cache_size;
                if image.format.is_some() || cache.is_some() || kept.has_within(FORMAT, depth) {
                    writer.start("format", parts);
                    writer.optional("type", image.format);
                    metadata_cache::write(writer, cache, CACHE, depth, kept);
                    writer.end();
                }
                image::write(writer, image, depth, None, kept);
                backing = &image.backing;
            }
        }
    }
    for _ in 0..depth {
        writer.end();
    }
}
