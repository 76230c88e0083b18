//! `<source>` of an image, and in it `<dataStore>`: the external data file of a qcow2 image, which has a source too.

use vmdisk_model::{DevicePath, Format, Image, Protocol, StartupPolicy};
use vmdisk_rule::reading::{INVALID_VALUE, MISSING_VALUE};

use super::{authentication, encryption, network, nvme, reservations, slices, volume};
use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::writer::Writer;

const AT: &str = "source";
const DATA_STORE: &str = "source/dataStore";
const DATA_STORE_FORMAT: &str = "source/dataStore/format";

/// The attribute that a source of this type requires.
pub(crate) fn main_attribute(source_type: &str) -> &'static str {
    match source_type {
        "block" | "vhostvdpa" => "dev",
        "dir" => "dir",
        "network" => "protocol",
        "nvme" => "namespace",
        "vhostuser" => "path",
        "volume" => "pool",
        _ => "file",
    }
}

/// Reads the `<source>` of a disk, backing store or data store as an image without a format; `None` if it names no
/// storage.
///
/// The caller consumes the `type` of the parent if this returns an image.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_>,
    depth: usize,
    startup_policy: &mut Option<StartupPolicy>,
    kept: &mut UnmodeledContent,
) -> Option<Image> {
    let source_type = parent.peek("type").unwrap_or("file").to_owned();
    let is_known = matches!(
        source_type.as_str(),
        "file" | "block" | "dir" | "network" | "volume" | "nvme" | "vhostvdpa"
    );
    let Some(mut source) = reader.child(parent, AT) else {
        return (!is_known).then(|| Image::new(None, Protocol::Other(source_type)));
    };
    // libvirt treats an empty path as unset.
    let path = |path: &str| (!path.is_empty()).then(|| path.to_owned());
    let other = || Some(Protocol::Other(source_type.clone()));
    let protocol = match source_type.as_str() {
        "file" => source
            .take("file", path)
            .map(|path| Protocol::File { path }),
        "block" => source.take("dev", path).map(|path| Protocol::HostDevice {
            path: DevicePath::new(path),
        }),
        "dir" => source
            .take("dir", path)
            .map(|path| Protocol::Directory { path }),
        "network" => network::read(reader, &mut source, depth, kept)
            .map(|network| Protocol::Network(Box::new(network)))
            // An unknown word has already been reported.
            .or_else(|| source.peek("protocol").and(other())),
        "volume" => match volume::read(reader, &mut source) {
            Ok(source) => source.map(Protocol::Volume),
            Err(volume::ErrorReported) => other(),
        },
        "nvme" => match nvme::read(reader, &mut source, depth, kept) {
            Some(source) => Some(Protocol::Nvme(source)),
            // A missing value has already been reported.
            None => other(),
        },
        "vhostvdpa" => source
            .take("dev", path)
            .map(|path| Protocol::VhostVdpa { path }),
        _ => other(),
    };
    let image = protocol.map(|protocol| {
        let is_known = !matches!(protocol, Protocol::Other(_));
        let mut image = Image::new(None, protocol);
        if is_known {
            image.fd_group = source.take_text("fdgroup");
            *startup_policy = source.take("startupPolicy", StartupPolicy::from_word);
            image.slice = slices::read(reader, &mut source, depth, kept);
            image.authentication = authentication::read(reader, &mut source, depth, kept);
            image.encryption = encryption::read(reader, &mut source, depth, kept);
            image.reservations = reservations::read(reader, &mut source, depth, kept);
            image.data_file = read_data_store(reader, &mut source, depth, kept);
        }
        image
    });
    kept.note(UnmodeledPath::deep(AT, depth), reader.close(source));
    image
}

/// The value of `disk/@type`, `backingStore/@type` or `dataStore/@type`.
pub(crate) fn type_of(protocol: &Protocol) -> &str {
    match protocol {
        Protocol::Other(word) => word,
        _ => protocol.source_type().unwrap_or("file"),
    }
}

/// Writes the `<source>` of an image; the caller writes format and backing images.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    image: &Image,
    depth: usize,
    startup_policy: Option<StartupPolicy>,
    kept: &'k UnmodeledContent,
) {
    let Image {
        format: _, // on the driver element, or an element of its own
        protocol,
        backing: _, // an element of its own
        slice,
        data_file,
        encryption,
        authentication,
        reservations,
        fd_group,
        metadata_cache_size: _, // with the format
        creation: _,            // no running guest knows how its storage was made
        made_as: _,             // the same
    } = image;
    writer.start(AT, kept.at(UnmodeledPath::deep(AT, depth)));
    match protocol {
        Protocol::File { path } => writer.attribute("file", path),
        Protocol::HostDevice { path } => writer.attribute("dev", &path.0),
        Protocol::Directory { path } => writer.attribute("dir", path),
        Protocol::VhostVdpa { path } => writer.attribute("dev", path),
        Protocol::Network(network) => network::write_attributes(writer, network),
        Protocol::Volume(source) => volume::write(writer, source),
        Protocol::Nvme(source) => nvme::write_attributes(writer, source),
        // All of it was kept.
        Protocol::Other(_) => {}
    }
    writer.optional("fdgroup", fd_group.as_ref());
    writer.optional("startupPolicy", startup_policy);
    match protocol {
        Protocol::Network(network) => network::write_children(writer, network, depth, kept),
        Protocol::Nvme(source) => nvme::write_children(writer, source, depth, kept),
        _ => {}
    }
    slices::write(writer, *slice, depth, kept);
    if !kept.is_in_old_place(depth, authentication::OLD) {
        authentication::write(writer, authentication.as_deref(), depth, kept);
    }
    if !kept.is_in_old_place(depth, encryption::OLD) {
        encryption::write(writer, encryption.as_deref(), depth, kept);
    }
    reservations::write(writer, reservations.as_ref(), depth, kept);
    write_data_store(writer, data_file.as_deref(), depth, kept);
    writer.end();
}

/// The depth for the kept parts of a data store, separate from those of the chain.
const fn depth_of_data(depth: usize) -> usize {
    depth + usize::MAX / 2
}

/// Reads a data store. It is not an image of the chain, so its fields have no recorded spans.
fn read_data_store(
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
            .any(|child| child.is_named("dataStore"))
        {
            let message = "a data store cannot contain another data store".to_owned();
            reader.problem(&INVALID_VALUE, source.at, source.tag, message);
        }
        return None;
    }
    let node = source.child("dataStore")?;
    let known = reader.problems.len();
    let mut element = reader.open_child(source, node, source.owner);
    let image = reader.unrecorded(|reader| {
        let source_type = element.peek("type").unwrap_or("file").to_owned();
        let inner = depth_of_data(depth);
        let image = read(reader, &mut element, inner, &mut None, kept);
        let missing = image.is_none().then_some((element.at, element.tag));
        let attribute = main_attribute(&source_type);
        let mut image =
            image.unwrap_or_else(|| Image::new(None, Protocol::Other(source_type.clone())));
        element.take_known("type");
        if let Some(mut format) = reader.child(&mut element, "format") {
            image.format = format.take("type", Format::from_word);
            kept.note(
                UnmodeledPath::deep(DATA_STORE_FORMAT, depth),
                reader.close(format),
            );
        }
        kept.note(
            UnmodeledPath::deep(DATA_STORE, depth),
            reader.close(element),
        );
        if let Some((at, tag)) = missing {
            // One mistake: what is written here instead belongs into the source.
            reader.problems.truncate(known);
            let message =
                format!("the data store has no source: `<source {attribute}=…>` is missing");
            reader.problem(&MISSING_VALUE, at, tag, message);
        }
        image
    });
    Some(Box::new(image))
}

/// Writes a data store.
fn write_data_store<'k>(
    writer: &mut Writer<'k>,
    data_file: Option<&Image>,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    let Some(image) = data_file else { return };
    writer.start("dataStore", kept.at(UnmodeledPath::deep(DATA_STORE, depth)));
    writer.attribute("type", type_of(&image.protocol));
    let parts = kept.at(UnmodeledPath::deep(DATA_STORE_FORMAT, depth));
    if image.format.is_some() || !parts.is_empty() {
        writer.start("format", parts);
        writer.optional("type", image.format);
        writer.end();
    }
    write(writer, image, depth_of_data(depth), None, kept);
    writer.end();
}
