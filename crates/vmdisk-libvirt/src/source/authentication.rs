//! `<auth>`: the credentials for the server of an image.

use vmdisk_model::{Authentication, Image, ImageField};

use super::secret;
use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::writer::Writer;

const AT: &str = "source/auth";
const SECRET: &str = "source/auth/secret";

/// Its location before libvirt 3.9: in the disk.
pub(super) const OLD: &str = "auth";

/// Reads an `<auth>`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_>,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Option<Authentication> {
    let node = parent.child("auth")?;
    let mut element = reader.open_child(parent, node, parent.owner);
    let secret = secret::read(reader, &mut element, (SECRET, depth), 1, kept).pop();
    let username = element.take_text("username");
    kept.note(UnmodeledPath::deep(AT, depth), reader.close(element));
    Some(Authentication { username, secret })
}

/// Reads the `<auth>` of a disk that is outside its source.
pub(super) fn read_in_old_place(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_>,
    image: &mut Image,
    kept: &mut UnmodeledContent,
) {
    let is_there = image.authentication.is_some();
    if super::is_in_old_place(reader, disk, OLD, ImageField::Authentication, is_there) {
        image.authentication = read(reader, disk, 0, kept);
        kept.note_old_place(OLD);
    }
}

/// Writes an `<auth>` that was read from the disk back there.
pub(super) fn write_in_old_place<'k>(
    writer: &mut Writer<'k>,
    image: &Image,
    kept: &'k UnmodeledContent,
) {
    if kept.is_in_old_place(0, OLD) {
        write(writer, image.authentication.as_ref(), 0, kept);
    }
}

/// Writes an `<auth>`.
pub(super) fn write<'k>(
    writer: &mut Writer<'k>,
    authentication: Option<&Authentication>,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    let Some(Authentication { username, secret }) = authentication else {
        return;
    };
    writer.start("auth", kept.at(UnmodeledPath::deep(AT, depth)));
    writer.optional("username", username.as_ref());
    if let Some(secret) = secret {
        secret::write(writer, secret, UnmodeledPath::deep(SECRET, depth), kept);
    }
    writer.end();
}
