//! `<source>`: the storage of an image, or the daemon that serves the disk.

pub(crate) mod authentication;
mod data_store;
pub(crate) mod encryption;
mod network;
mod nvme;
mod reservations;
mod secret;
mod slices;
mod vhost_user;
mod volume;

use vmdisk_model::{
    Backend, BackendSource, Device, DevicePath, Disk, DiskField, FieldPath, Image, ImageField,
    Protocol, StartupPolicy,
};
use vmdisk_rule::Severity;
use vmdisk_rule::reading::{DUPLICATE_VALUE, MISSING_VALUE};

use crate::backing_store;
use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::writer::Writer;

const AT: &str = "source";

/// Reads the source of a disk; the format is read with the driver element.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    element: &mut Element<'_>,
    disk: &mut Disk,
    kept: &mut UnmodeledContent,
) {
    let startup_policy = &mut disk.backend.startup_policy;
    let source = match element.peek("type").unwrap_or("file") {
        "vhostuser" => {
            vhost_user::read(reader, element, startup_policy, kept).map(BackendSource::VhostUser)
        }
        _ => read_image(reader, element, 0, startup_policy, kept).map(|mut image| {
            authentication::read_in_old_place(reader, element, &mut image, kept);
            encryption::read_in_old_place(reader, element, &mut image, kept);
            image.backing = backing_store::read(reader, element, kept);
            BackendSource::Image(Box::new(image))
        }),
    };
    match source {
        Some(source) => {
            element.take_known("type");
            disk.backend.source = source;
        }
        None => report_missing(reader, element, disk.frontend.effective_device()),
    }
}

fn report_missing(reader: &mut Reader<'_>, disk: &Element<'_>, device: Device) {
    let may_be_empty = matches!(device, Device::Cdrom | Device::Floppy);
    let source_type = disk.peek("type").unwrap_or("file");
    // An empty drive is valid, but the socket of a daemon is required for every device.
    if !may_be_empty || source_type == "vhostuser" {
        let at = FieldPath::Disk(disk.owner.index, DiskField::Source);
        let span = reader.map.place(at).map_or(disk.tag, |place| place.span);
        let attribute = main_attribute(source_type);
        let message = format!("the disk has no source: `<source {attribute}=…>` is missing");
        reader.problem(&MISSING_VALUE, at, span, message);
    }
}

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
pub(crate) fn read_image(
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
    let Some(node) = parent.child(AT) else {
        return (!is_known).then(|| Image::new(None, Protocol::Other(source_type)));
    };
    let mut source = reader.open_child(parent, node, parent.owner);
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
            *startup_policy = source.take("startupPolicy", StartupPolicy::from_wire);
            image.slice = slices::read(reader, &mut source, depth, kept);
            image.authentication = authentication::read(reader, &mut source, depth, kept);
            image.encryption = encryption::read(reader, &mut source, depth, kept);
            image.reservations = reservations::read(reader, &mut source, depth, kept);
            image.data_file = data_store::read(reader, &mut source, depth, kept);
        }
        image
    });
    kept.note(UnmodeledPath::deep(AT, depth), reader.close(source));
    image
}

/// True if an element of the source is only in the disk; an element in both places is reported.
fn is_in_old_place(
    reader: &mut Reader<'_>,
    disk: &Element<'_>,
    name: &str,
    field: ImageField,
    is_in_source: bool,
) -> bool {
    let Some(child) = disk.children.iter().find(|child| child.name() == name) else {
        return false;
    };
    if is_in_source {
        let at = FieldPath::Image(disk.owner.index, 0, field);
        let message =
            format!("`<{name}>` is both in the disk and in its source; libvirt accepts only one");
        reader
            .problem(&DUPLICATE_VALUE, at, child.node.span(), message)
            .severity = Severity::Error;
    }
    !is_in_source
}

/// The value of `disk/@type`, `backingStore/@type` or `dataStore/@type`.
pub(crate) fn type_of(protocol: &Protocol) -> &str {
    match protocol {
        Protocol::Other(word) => word,
        _ => protocol.source_type().unwrap_or("file"),
    }
}

/// The value of `disk/@type` of a disk.
pub(crate) fn type_of_disk(source: &BackendSource) -> &str {
    match source {
        BackendSource::Image(image) => type_of(&image.protocol),
        BackendSource::VhostUser(_) => "vhostuser",
        BackendSource::Empty => "file",
    }
}

/// Writes the `<source>` of a disk, with the images below it.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, backend: &Backend, kept: &'k UnmodeledContent) {
    match &backend.source {
        BackendSource::Image(image) => {
            authentication::write_in_old_place(writer, image, kept);
            write_image(writer, image, 0, backend.startup_policy, kept);
            backing_store::write(writer, &image.backing, kept);
        }
        BackendSource::VhostUser(socket) => {
            vhost_user::write(writer, socket, backend.startup_policy, kept);
        }
        BackendSource::Empty => {
            let parts = kept.at(UnmodeledPath::path(AT));
            if !parts.is_empty() {
                writer.start(AT, parts);
                writer.end();
            }
        }
    }
}

/// Writes the parts of a disk's image that are outside its `<source>`, after everything else, as libvirt does.
pub(crate) fn write_behind<'k>(
    writer: &mut Writer<'k>,
    backend: &Backend,
    kept: &'k UnmodeledContent,
) {
    if let BackendSource::Image(image) = &backend.source {
        encryption::write_in_old_place(writer, image, kept);
    }
}

/// Writes the `<source>` of an image; the caller writes format and backing images.
pub(crate) fn write_image<'k>(
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
        authentication::write(writer, authentication.as_ref(), depth, kept);
    }
    if !kept.is_in_old_place(depth, encryption::OLD) {
        encryption::write(writer, encryption.as_ref(), depth, kept);
    }
    reservations::write(writer, reservations.as_ref(), depth, kept);
    data_store::write(writer, data_file.as_deref(), depth, kept);
    writer.end();
}
