//! `<auth>`: the credentials for the server of an image.

use vmdisk_model::Authentication;

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
) -> Option<Box<Authentication>> {
    let mut element = reader.child(parent, "auth")?;
    let secret = secret::read(reader, &mut element, (SECRET, depth), 1, kept).pop();
    let username = element.take_text("username");
    kept.note(UnmodeledPath::deep(AT, depth), reader.close(element));
    Some(Box::new(Authentication { username, secret }))
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
