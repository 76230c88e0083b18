//! The fields of a qcow2 header.

use super::features::{AutoclearFeatures, CompatibleFeatures, IncompatibleFeatures};
use crate::bytes::{be32, be64};
use crate::name::Name;
use crate::reference::BackingReference;

/// The cluster sizes that QEMU supports: 512 bytes to 2 MiB.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;
/// The length of a version 2 header, which has no length field.
const V2_LENGTH: u32 = 72;
/// The shortest header of version 3, up to the header length field.
pub(super) const V3_LENGTH: u32 = 104;
/// The longest header with known fields, including the compression type and its padding.
const KNOWN_LENGTH: usize = 112;

/// The fields of a qcow2 header.
///
/// ```
/// use vmdisk_image::{Header, Qcow2Encryption, probe};
///
/// // A version 2 header by hand: signature, version, no backing file, 64 KiB clusters, 1 GiB, …
/// let mut image = vec![0; 4 * 65536];
/// image[..8].copy_from_slice(b"QFI\xfb\x00\x00\x00\x02");
/// image[20..24].copy_from_slice(&16u32.to_be_bytes());
/// image[24..32].copy_from_slice(&(1u64 << 30).to_be_bytes());
/// image[36..40].copy_from_slice(&2u32.to_be_bytes());
/// image[40..48].copy_from_slice(&(3u64 * 65536).to_be_bytes());
/// image[48..56].copy_from_slice(&65536u64.to_be_bytes());
/// image[56..60].copy_from_slice(&1u32.to_be_bytes());
///
/// let Header::Qcow2(header) = probe(&mut image.as_slice()).unwrap() else { panic!() };
/// assert_eq!(header.cluster_size(), Some(65536));
/// assert_eq!(header.virtual_size, 1 << 30);
/// assert_eq!(header.encryption, Qcow2Encryption::None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qcow2Header {
    /// 2 (`compat=0.10`) or 3 (`compat=1.1`, the default since QEMU 1.7); QEMU refuses any other value.
    pub version: u32,
    /// The disk's size as the guest sees it, in bytes, unchanged.
    pub virtual_size: u64,
    /// The cluster size as a power of two, unchanged; see [`Qcow2Header::cluster_size`].
    pub cluster_bits: u32,
    /// The encryption of guest data.
    pub encryption: Qcow2Encryption,
    /// The width of a reference count in bits, as a power of two; 4 (16 bits) by default.
    pub refcount_order: u32,
    /// The number of internal snapshots.
    pub snapshots: u32,
    /// Features that a program must support to open the image; none in version 2.
    pub incompatible: IncompatibleFeatures,
    /// Features that a program may ignore; none in version 2.
    pub compatible: CompatibleFeatures,
    /// Features that a program must clear before writing if it does not support them; none in version 2.
    pub autoclear: AutoclearFeatures,
    /// The length of the header's fields in bytes: 72 in version 2, and a field in version 3.
    pub header_length: u32,
    /// The compression of compressed clusters.
    pub compression: Qcow2Compression,
    /// The backing file as QEMU would open it, up to a NUL; `None` if there is none or the name is empty.
    pub backing_file: Option<BackingReference>,
    /// The recorded format of the backing file. Without one QEMU probes; libvirt (6.0) refuses the image.
    pub backing_format: Option<Name>,
    /// The recorded name of the external data file; used only with [`IncompatibleFeatures::external_data_file`].
    pub data_file: Option<BackingReference>,
}

/// The encryption of a qcow2 image's guest data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Qcow2Encryption {
    /// No encryption.
    None,
    /// AES-CBC with the password as key: insecure, refused by QEMU's system emulators since 2.8.
    Aes,
    /// LUKS version 1, with the header inside the image (QEMU 2.10).
    Luks,
    /// An unknown method.
    Unknown(u32),
}

impl Qcow2Encryption {
    fn from_field(field: u32) -> Self {
        match field {
            0 => Self::None,
            1 => Self::Aes,
            2 => Self::Luks,
            other => Self::Unknown(other),
        }
    }
}

/// The compression of compressed clusters; guests never write compressed clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Qcow2Compression {
    /// Deflate, the only method before QEMU 5.1.
    Zlib,
    /// Zstandard (QEMU 5.1, optional in the build).
    Zstd,
    /// An unknown type.
    Unknown(u8),
}

impl Qcow2Compression {
    fn from_field(field: u8) -> Self {
        match field {
            0 => Self::Zlib,
            1 => Self::Zstd,
            other => Self::Unknown(other),
        }
    }
}

impl Qcow2Header {
    /// Returns the cluster size in bytes; `None` if QEMU does not support it.
    #[must_use]
    pub fn cluster_size(&self) -> Option<u64> {
        CLUSTER_BITS
            .contains(&self.cluster_bits)
            .then(|| 1 << self.cluster_bits)
    }

    /// The fields at the beginning of an image, without names and extensions.
    pub(super) fn from_fields(head: &[u8]) -> Self {
        // Pad with zeroes, so that every field has a value in a short image.
        let mut fields = [0; KNOWN_LENGTH];
        let have = head.len().min(KNOWN_LENGTH);
        fields[..have].copy_from_slice(&head[..have]);
        let word = |at| be32(&fields, at).unwrap_or(0);
        let long = |at| be64(&fields, at).unwrap_or(0);

        let version = word(4);
        let modern = version >= 3;
        let bits = |at| if modern { long(at) } else { 0 };
        let header_length = if modern { word(100) } else { V2_LENGTH };
        let compression = if modern && header_length > V3_LENGTH {
            fields[104]
        } else {
            0
        };
        Qcow2Header {
            version,
            virtual_size: long(24),
            cluster_bits: word(20),
            encryption: Qcow2Encryption::from_field(word(32)),
            refcount_order: if modern { word(96) } else { 4 },
            snapshots: word(60),
            incompatible: IncompatibleFeatures { bits: bits(72) },
            compatible: CompatibleFeatures { bits: bits(80) },
            autoclear: AutoclearFeatures { bits: bits(88) },
            header_length,
            compression: Qcow2Compression::from_field(compression),
            backing_file: None,
            backing_format: None,
            data_file: None,
        }
    }
}
