//! `<encryption>`: the encryption of an image.

use vmdisk_model::{
    Encryption, EncryptionCipher, EncryptionEngine, EncryptionFormat, EncryptionVector,
};
use vmdisk_rule::reading::{INVALID_VALUE, MISSING_VALUE};

use super::secret;
use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::unsigned32;
use crate::writer::Writer;

const AT: &str = "source/encryption";
const SECRET: &str = "source/encryption/secret";
const CIPHER: &str = "source/encryption/cipher";
const IVGEN: &str = "source/encryption/ivgen";

/// Its location before libvirt 3.9: in the disk.
pub(super) const OLD: &str = "encryption";

/// Reads an `<encryption>`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_>,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Option<Box<Encryption>> {
    let mut element = reader.child(parent, "encryption")?;
    let secrets = secret::read(reader, &mut element, (SECRET, depth), usize::MAX, kept);
    for secret in &secrets {
        let secret_type = secret.secret_type.as_deref();
        if secret_type != Some("passphrase") {
            let message = format!(
                "a secret of type `{}` cannot be used for encryption, expected `passphrase`",
                secret_type.unwrap_or_default()
            );
            reader.problem(&INVALID_VALUE, element.at, element.tag, message);
        }
    }
    let format = element.take("format", EncryptionFormat::from_word);
    let engine = element.take("engine", EncryptionEngine::from_word);
    let cipher = reader.child(&mut element, "cipher").map(|mut inner| {
        let cipher = EncryptionCipher {
            name: inner.take_text("name"),
            size: inner.take("size", unsigned32),
            mode: inner.take_text("mode"),
            hash: inner.take_text("hash"),
        };
        kept.note(UnmodeledPath::deep(CIPHER, depth), reader.close(inner));
        cipher
    });
    let ivgen = reader.child(&mut element, "ivgen").map(|mut inner| {
        let ivgen = EncryptionVector {
            name: inner.take_text("name"),
            hash: inner.take_text("hash"),
        };
        kept.note(UnmodeledPath::deep(IVGEN, depth), reader.close(inner));
        ivgen
    });
    if ivgen.is_some() && cipher.is_none() {
        let message = "`<ivgen>` requires a `<cipher>`".to_owned();
        reader.problem(&MISSING_VALUE, element.at, element.tag, message);
    }
    kept.note(UnmodeledPath::deep(AT, depth), reader.close(element));
    Some(Box::new(Encryption {
        format,
        engine,
        secrets,
        cipher,
        ivgen,
    }))
}

/// Writes an `<encryption>`.
pub(super) fn write<'k>(
    writer: &mut Writer<'k>,
    encryption: Option<&Encryption>,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    let Some(encryption) = encryption else { return };
    let Encryption {
        format,
        engine,
        secrets,
        cipher,
        ivgen,
    } = encryption;
    writer.start("encryption", kept.at(UnmodeledPath::deep(AT, depth)));
    writer.optional("format", *format);
    writer.optional("engine", *engine);
    for (nth, secret) in secrets.iter().enumerate() {
        let place = UnmodeledPath {
            nth,
            ..UnmodeledPath::deep(SECRET, depth)
        };
        secret::write(writer, secret, place, kept);
    }
    if let Some(cipher) = cipher {
        let EncryptionCipher {
            name,
            size,
            mode,
            hash,
        } = cipher;
        writer.start("cipher", kept.at(UnmodeledPath::deep(CIPHER, depth)));
        writer.optional("name", name.as_ref());
        writer.optional("size", *size);
        writer.optional("mode", mode.as_ref());
        writer.optional("hash", hash.as_ref());
        writer.end();
    }
    if let Some(EncryptionVector { name, hash }) = ivgen {
        writer.start("ivgen", kept.at(UnmodeledPath::deep(IVGEN, depth)));
        writer.optional("name", name.as_ref());
        writer.optional("hash", hash.as_ref());
        writer.end();
    }
    writer.end();
}
