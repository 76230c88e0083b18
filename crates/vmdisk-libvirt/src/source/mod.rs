//! `<source>`: the storage of an image, or the daemon that serves the disk.

pub(crate) mod authentication;
pub(crate) mod encryption;
pub(crate) mod image;
mod network;
mod nvme;
mod reservations;
mod secret;
mod slices;
mod vhost_user;
mod volume;

use vmdisk_model::{Backend, BackendSource, Device, Disk, DiskField, FieldPath, Image, ImageField};
use vmdisk_rule::Severity;
use vmdisk_rule::reading::{DUPLICATE_VALUE, MISSING_VALUE};

use crate::backing_store;
use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::writer::Writer;

use authentication::OLD as AUTH;
use encryption::OLD as ENCRYPTION;

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
        _ => image::read(reader, element, 0, startup_policy, kept).map(|mut image| {
            read_old_places(reader, element, &mut image, kept);
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
        let attribute = image::main_attribute(source_type);
        let message = format!("the disk has no source: `<source {attribute}=…>` is missing");
        reader.problem(&MISSING_VALUE, at, span, message);
    }
}

/// Reads what was in the disk, outside its source, before libvirt 3.9.
fn read_old_places(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_>,
    image: &mut Image,
    kept: &mut UnmodeledContent,
) {
    let field = ImageField::Authentication;
    if is_only_in_disk(reader, disk, AUTH, field, image.authentication.is_some()) {
        image.authentication = authentication::read(reader, disk, 0, kept);
        kept.note_old_place(AUTH);
    }
    let field = ImageField::Encryption;
    if is_only_in_disk(reader, disk, ENCRYPTION, field, image.encryption.is_some()) {
        image.encryption = encryption::read(reader, disk, 0, kept);
        kept.note_old_place(ENCRYPTION);
    }
}

/// True if an element of the source is only in the disk; an element in both places is reported.
fn is_only_in_disk(
    reader: &mut Reader<'_>,
    disk: &Element<'_>,
    name: &str,
    field: ImageField,
    is_in_source: bool,
) -> bool {
    let Some(child) = disk.children.iter().find(|child| child.is_named(name)) else {
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

/// The value of `disk/@type` of a disk.
pub(crate) fn type_of_disk(source: &BackendSource) -> &str {
    match source {
        BackendSource::Image(image) => image::type_of(&image.protocol),
        BackendSource::VhostUser(_) => "vhostuser",
        BackendSource::Empty => "file",
    }
}

/// Writes the `<source>` of a disk, with the images below it.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, backend: &Backend, kept: &'k UnmodeledContent) {
    match &backend.source {
        BackendSource::Image(image) => {
            if kept.is_in_old_place(0, AUTH) {
                authentication::write(writer, image.authentication.as_deref(), 0, kept);
            }
            image::write(writer, image, 0, backend.startup_policy, kept);
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
    if let BackendSource::Image(image) = &backend.source
        && kept.is_in_old_place(0, ENCRYPTION)
    {
        encryption::write(writer, image.encryption.as_deref(), 0, kept);
    }
}
