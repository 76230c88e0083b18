//! Encryption of an image, and its secret.

use vmdisk_model::{Encryption, EncryptionEngine, EncryptionFormat, Secret, SecretReference};

use super::network::SecretSpec;
use super::section::section;

/// libvirt's word for what such a secret is for.
const PURPOSE: &str = "passphrase";

section! {
    /// Encryption of an image with LUKS.
    pub struct EncryptionSpec {
        /// The key; a spec never contains the value itself.
        secret: SecretSpec = "secret",
        /// Absolute path of a file with the key of a new image, which only its owner can read.
        key_file: Option<String> = "key-file",
    }
}

impl EncryptionSpec {
    /// The encryption in the model.
    pub(crate) fn to_model(&self) -> Encryption {
        let EncryptionSpec {
            secret,
            key_file: _, // only for creation
        } = self;
        Encryption {
            format: Some(EncryptionFormat::Luks),
            secrets: vec![Secret {
                secret_type: Some(PURPOSE.to_owned()),
                reference: secret.to_model(),
            }],
            ..Encryption::default()
        }
    }

    /// The same in a spec; `None` if a spec cannot express it.
    pub(crate) fn of_model(encryption: &Encryption) -> Option<Self> {
        let Encryption {
            format,
            engine,
            secrets,
            cipher,
            ivgen,
        } = encryption;
        let is_plain = *format == Some(EncryptionFormat::Luks)
            && matches!(engine, None | Some(EncryptionEngine::Qemu))
            && cipher.is_none()
            && ivgen.is_none();
        match &secrets[..] {
            [secret] if is_plain && secret.secret_type.as_deref() == Some(PURPOSE) => {
                SecretSpec::of_model(&secret.reference).map(|secret| EncryptionSpec {
                    secret,
                    key_file: None,
                })
            }
            _ => None,
        }
    }
}

impl SecretSpec {
    /// The secret in the model.
    pub(crate) fn to_model(&self) -> SecretReference {
        match self {
            SecretSpec {
                uuid: Some(uuid), ..
            } => SecretReference::Uuid(uuid.clone()),
            SecretSpec { uuid: None, usage } => {
                SecretReference::Usage(usage.clone().unwrap_or_default())
            }
        }
    }

    /// A secret of libvirt; `None` for a secret that libvirt does not have.
    pub(crate) fn of_model(reference: &SecretReference) -> Option<Self> {
        let (uuid, usage) = match reference {
            SecretReference::Uuid(uuid) => (Some(uuid.clone()), None),
            SecretReference::Usage(usage) => (None, Some(usage.clone())),
            SecretReference::File { .. } | SecretReference::Object(_) => return None,
        };
        Some(SecretSpec { uuid, usage })
    }
}
