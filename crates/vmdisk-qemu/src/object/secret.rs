//! `-object secret`: secrets, by reference only.

use vmdisk_model::{
    EncryptionEngine, EncryptionFormat, FieldPath, ImageField, Secret, SecretReference,
};

use crate::blockdev::Layer;
use crate::index::Index;
use crate::json::{Json, JsonObject};
use crate::members::Members;
use crate::notes::Notes;
use crate::options::Medium;
use crate::writer::Writer;

/// The directory of libvirt's secrets, each in a base64 file named by its UUID.
const LIBVIRT_SECRETS: &str = "/etc/libvirt/secrets/";

/// True for a UUID in libvirt's format, which only names a file.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

impl Writer<'_> {
    /// Writes the object of a secret whose file is known; returns its id.
    pub(crate) fn secret(&mut self, at: FieldPath, secret: &Secret, id: String) -> String {
        let Secret {
            // The id names the node that uses it.
            secret_type: _,
            reference,
        } = secret;
        let (path, is_base64) = match reference {
            SecretReference::Object(own) => {
                self.leave_out(
                    at,
                    match self.medium() {
                        Medium::Monitor => {
                            format!("create the secret `{own}` with object-add first")
                        }
                        Medium::CommandLine => {
                            format!("pass the secret `{own}` with -object before this option")
                        }
                    },
                );
                return own.clone();
            }
            SecretReference::File { path, is_base64 } => (path.clone(), *is_base64),
            SecretReference::Uuid(uuid) if is_uuid(uuid) => {
                let path = format!("{LIBVIRT_SECRETS}{}.base64", uuid.to_ascii_lowercase());
                (path, true)
            }
            SecretReference::Uuid(name) | SecretReference::Usage(name) => {
                let pass = self.passing(&[("id", &id), ("file", "…")]);
                self.leave_out(
                    at,
                    format!(
                        "only libvirt has the secret `{name}`: write it to a file and pass it with {pass}"
                    ),
                );
                return id;
            }
        };
        let mut object = JsonObject::new()
            .with("qom-type", "secret")
            .with("id", id.as_str())
            .with("file", path);
        if is_base64 {
            object.push("format", "base64");
        }
        self.object(object, at);
        id
    }

    /// Reports the cookies of a web server, whose values are secrets; returns the id for their secret.
    pub(crate) fn cookies(&mut self, layer: &Layer<'_>) -> String {
        let id = layer.names.cookie_secret();
        let pass = self.passing(&[("id", &id), ("file", "…")]);
        self.leave_out(
            layer.at(ImageField::Cookies),
            format!(
                "cookies are secrets: write them to a file as `name=value; …` and pass it with {pass}"
            ),
        );
        id
    }

    /// The option, or the command for a running QEMU, that passes a secret.
    fn passing(&self, properties: &[(&'static str, &str)]) -> String {
        match self.medium() {
            Medium::Monitor => {
                let mut object = JsonObject::new().with("qom-type", "secret");
                for (key, value) in properties {
                    object.push(*key, *value);
                }
                let command = JsonObject::new().with("execute", "object-add");
                command.with("arguments", object).to_string()
            }
            Medium::CommandLine => {
                let pairs = properties
                    .iter()
                    .map(|(key, value)| format!(",{key}={value}"));
                format!("-object secret{}", pairs.collect::<String>())
            }
        }
    }

    /// The ids of the secrets of an encrypted image, the image's own first.
    pub(crate) fn encryption_secrets(&mut self, layer: &Layer<'_>) -> Vec<String> {
        let Some(encryption) = &layer.image.encryption else {
            return Vec::new();
        };
        let at = layer.at(ImageField::Encryption);
        if encryption.cipher.is_some() || encryption.ivgen.is_some() {
            self.leave_out(at, "the header of the image decides the encryption");
        }
        let secrets = encryption.secrets.iter().enumerate();
        secrets
            .map(|(nth, secret)| {
                let id = layer.names.encryption_secret(nth);
                self.secret(at, secret, id)
            })
            .collect()
    }

    /// The encryption options of an rbd image that librbd decrypts: the secret of the image, and nested in them those
    /// of its parent images.
    pub(crate) fn librbd_encryption(&mut self, layer: &Layer<'_>) -> Option<JsonObject> {
        let encryption = layer.image.encryption.as_ref()?;
        if layer.engine() != EncryptionEngine::Librbd {
            return None;
        }
        let format = match encryption.format {
            Some(
                format @ (EncryptionFormat::Luks
                | EncryptionFormat::Luks2
                | EncryptionFormat::LuksAny),
            ) => format,
            Some(EncryptionFormat::Default | EncryptionFormat::Qcow) | None => {
                let message = "librbd supports luks, luks2 and luks-any";
                self.problem(layer.at(ImageField::Encryption), message);
                return None;
            }
        };
        let secrets = self.encryption_secrets(layer);
        let mut outer: Option<JsonObject> = None;
        for secret in secrets.into_iter().rev() {
            let mut object = JsonObject::new()
                .with("format", format.as_str())
                .with("key-secret", secret);
            object.push_some("parent", outer.take().map(Json::Object));
            outer = Some(object);
        }
        outer
    }
}

/// The secret of an id in a node.
pub(crate) fn read_secret(id: &str, index: &Index<'_>, notes: &mut Notes<'_>) -> Secret {
    let object = index.object(id);
    let reference = object.and_then(|option| reference_of(index.properties(option)?));
    if let (Some(option), Some(_)) = (object, &reference) {
        notes.read_object(option);
    }
    Secret {
        secret_type: None,
        reference: reference.unwrap_or_else(|| SecretReference::Object(id.to_owned())),
    }
}

/// The file of a secret, or libvirt's UUID in its name.
fn reference_of(object: Members<'_>) -> Option<SecretReference> {
    let path = object.take_text("file")?;
    // A file that is encrypted with another secret does not contain the plain secret.
    if object.get("keyid").is_some() {
        return None;
    }
    let is_base64 = object.take_text("format") == Some("base64");
    let uuid = path
        .strip_prefix(LIBVIRT_SECRETS)
        .and_then(|name| name.strip_suffix(".base64"))
        .filter(|uuid| is_uuid(uuid) && is_base64);
    Some(match uuid {
        Some(uuid) => SecretReference::Uuid(uuid.to_owned()),
        None => SecretReference::File {
            path: path.to_owned(),
            is_base64,
        },
    })
}
