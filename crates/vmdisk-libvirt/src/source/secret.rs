//! `<secret>`: a reference to a secret that libvirt stores.

use vmdisk_model::{Secret, SecretReference};

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::writer::Writer;

/// Reads the secrets in an element; a secret without a reference is kept unchanged.
pub(super) fn read(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_>,
    (path, depth): (&'static str, usize),
    most: usize,
    kept: &mut UnmodeledContent,
) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for node in parent.children("secret") {
        let has = |name| node.attribute(name).is_some();
        if secrets.len() == most || !(has("uuid") || has("usage")) {
            parent.give_back(node);
            continue;
        }
        let mut secret = reader.open_child(parent, node, parent.owner);
        let reference = match secret.take_text("uuid") {
            Some(uuid) => SecretReference::Uuid(uuid),
            None => SecretReference::Usage(secret.take_text("usage").unwrap_or_default()),
        };
        let secret_type = secret.take_text("type");
        let at = UnmodeledPath {
            nth: secrets.len(),
            ..UnmodeledPath::deep(path, depth)
        };
        kept.note(at, reader.close(secret));
        secrets.push(Secret {
            secret_type,
            reference,
        });
    }
    secrets
}

/// Writes a secret. The id of a secret object of QEMU becomes the usage that libvirt's secret must have.
pub(super) fn write<'k>(
    writer: &mut Writer<'k>,
    secret: &Secret,
    at: UnmodeledPath,
    kept: &'k UnmodeledContent,
) {
    let Secret {
        secret_type,
        reference,
    } = secret;
    writer.start("secret", kept.at(at));
    writer.optional("type", secret_type.as_ref());
    match reference {
        SecretReference::Uuid(uuid) => writer.attribute("uuid", uuid),
        SecretReference::Usage(usage) => writer.attribute("usage", usage),
        SecretReference::File { path, .. } => writer.attribute("usage", path),
        SecretReference::Object(id) => writer.attribute("usage", id),
    }
    writer.end();
}
