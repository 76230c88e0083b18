//! Encryption of images, logging in to servers, and the secrets of both.

use vmdisk_source::words;

/// A secret, which is only ever referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Purpose; libvirt `secret/@type`: `passphrase`, `ceph`, `iscsi`, …
    pub secret_type: Option<String>,
    /// Where it is.
    pub reference: SecretReference,
}

/// Where a secret is; its value is in no model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretReference {
    /// A secret of libvirt by its number.
    Uuid(String),
    /// A secret of libvirt by its usage.
    Usage(String),
    /// A file that QEMU reads; QEMU `-object secret,file=…`.
    File {
        /// Path on the host.
        path: String,
        /// True if the file holds base64.
        is_base64: bool,
    },
    /// A QEMU object that whoever starts QEMU defines, by its id.
    Object(String),
}

words! {
    /// How an image is encrypted; libvirt `encryption/@format`.
    pub enum EncryptionFormat as as_str {
        /// libvirt's word for whatever fits.
        Default = "default",
        /// AES-CBC in qcow and qcow2, which QEMU refuses in guests.
        Qcow = "qcow",
        /// LUKS, version 1.
        Luks = "luks",
        /// LUKS, version 2; only librbd knows it.
        Luks2 = "luks2",
        /// Whichever LUKS the image has; only librbd knows it (libvirt 9.3, QEMU 8.0).
        LuksAny = "luks-any",
    }
}

words! {
    /// Who decrypts; libvirt `encryption/@engine` (8.0). Default: `qemu`.
    pub enum EncryptionEngine as as_str {
        /// QEMU, in the format node.
        Qemu = "qemu",
        /// The Ceph library, in the protocol node.
        Librbd = "librbd",
    }
}

/// How an image is encrypted; libvirt `<encryption>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encryption {
    /// Format.
    pub format: Option<EncryptionFormat>,
    /// Who decrypts.
    pub engine: Option<EncryptionEngine>,
    /// The secrets: one, but for librbd, where each parent of a clone may have its own.
    pub secrets: Vec<Secret>,
    /// Cipher, which only the creation of a volume may say.
    pub cipher: Option<EncryptionCipher>,
    /// Initial vectors, which only the creation of a volume may say.
    pub ivgen: Option<EncryptionVector>,
}

/// A cipher; libvirt `encryption/cipher` (2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptionCipher {
    /// Its name, such as `aes`.
    pub name: Option<String>,
    /// Bits of its key.
    pub size: Option<u32>,
    /// How blocks are chained.
    pub mode: Option<String>,
    /// Hash of the key.
    pub hash: Option<String>,
}

/// How initial vectors are made; libvirt `encryption/ivgen` (2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptionVector {
    /// Its name, such as `plain64`.
    pub name: Option<String>,
    /// Its hash.
    pub hash: Option<String>,
}

/// How somebody logs in to a server; libvirt `<auth>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authentication {
    /// Who.
    pub username: Option<String>,
    /// With what.
    pub secret: Option<Secret>,
}
