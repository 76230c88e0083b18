//! The header of qcow2, versions 2 and 3.
//!
//! The layout follows QEMU's `docs/interop/qcow2`; refusals and limits follow `block/qcow2.c` of QEMU 7.2 to
//! 10.0. Fields after the end of a short file are zero, as in QEMU.

mod bitmaps;
mod check;
mod derived;
mod extension;
mod features;
mod snapshots;

pub use bitmaps::Bitmaps;
pub use extension::{EncryptionHeader, Extension, FeatureClass, FeatureName};
pub use features::{AutoclearFeatures, CompatibleFeatures, IncompatibleFeatures};

use crate::bytes::{be32, be64};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

/// `QFI` and 0xfb: the signature of qcow (version 1) and qcow2 (versions 2 and 3).
pub(crate) const MAGIC: &[u8] = b"QFI\xfb";

/// The length of a version 2 header, which has no length field.
const V2_LENGTH: u32 = 72;
/// The shortest header of version 3, up to the header length field.
const V3_LENGTH: u32 = 104;
/// The longest header with known fields, including the compression type and its padding.
const KNOWN_LENGTH: usize = 112;
/// Maximum length of a backing file name in QEMU and the specification.
const MAX_BACKING_NAME: u32 = 1023;

/// A qcow2 header and its defects.
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
/// assert_eq!(header.defects, []);
/// assert_eq!(header.cluster_size(), Some(65536));
/// assert_eq!(header.virtual_size, 1 << 30);
/// assert_eq!(header.encryption, Qcow2Encryption::None);
/// // 16384 clusters of 64 KiB, 8 bytes each: 128 KiB of L2 tables map the whole disk.
/// assert_eq!(header.l2_bytes_for_whole_disk(), Some(128 * 1024));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qcow2Header {
    /// 2 (`compat=0.10`) or 3 (`compat=1.1`, the default since QEMU 1.7); any other value is a defect.
    pub version: u32,
    /// The disk's size as the guest sees it, in bytes, unchanged.
    pub virtual_size: u64,
    /// The cluster size as a power of two, unchanged; see [`Qcow2Header::cluster_size`].
    pub cluster_bits: u32,
    /// The encryption of guest data.
    pub encryption: Qcow2Encryption,
    /// The active L1 table: its offset, and its number of entries of 8 bytes.
    pub l1_table: Table,
    /// The reference count table: its offset, and its number of clusters.
    pub refcount_table: Table,
    /// The width of a reference count in bits, as a power of two; 4 (16 bits) by default.
    pub refcount_order: u32,
    /// The internal snapshots: the offset of their table, and their number.
    pub snapshots: Table,
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
    /// Names of feature bits in the image, including unknown bits.
    pub feature_names: Vec<FeatureName>,
    /// The location of the LUKS header of an encrypted image.
    pub encryption_header: Option<EncryptionHeader>,
    /// Persistent bitmaps; [`AutoclearFeatures::bitmaps`] is set if they are valid.
    pub bitmaps: Option<Bitmaps>,
    /// All header extensions in order, including known ones, with their lengths.
    pub extensions: Vec<Extension>,
    /// The defects, in the order of detection.
    pub defects: Vec<Defect>,
}

/// A table of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Table {
    /// Its offset in the image, in bytes.
    pub offset: u64,
    /// The number of entries, or of clusters for the reference count table.
    pub entries: u32,
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

/// Reads the header of an image that begins with [`MAGIC`] and has another version than 1.
pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> Qcow2Header {
    let mut header = read_fields(window.head());
    let have = window.head().len().min(KNOWN_LENGTH) as u64;
    let needed = if header.version == 2 {
        V2_LENGTH
    } else {
        V3_LENGTH
    };
    if header.version == 2 || header.version == 3 {
        if have < u64::from(needed) {
            let kind = DefectKind::TruncatedHeader {
                needed: u64::from(needed),
                found: have,
            };
            header.defects.push(Defect::at(have, kind));
            return header;
        }
    } else {
        header.defects.push(Defect::at(
            4,
            DefectKind::UnsupportedVersion {
                found: header.version,
            },
        ));
        // The fields of an unknown version are not checked.
        return header;
    }
    let place = BackingPlace::from_fields(window.head());
    check::fields(&mut header, window.image_length());
    if let Some(cluster_size) = header.cluster_size() {
        let end = if place.offset != 0 {
            place.offset.min(cluster_size)
        } else {
            cluster_size
        };
        extension::read_all(&mut header, window, end);
        check::backing_place(&mut header, place, cluster_size);
        read_backing_name(&mut header, window, place, cluster_size);
    }
    check::extensions(&mut header);
    bitmaps::read_directory(&mut header, window);
    snapshots::read_table(&mut header, window);
    header
}

/// The location of the backing file name in the header.
#[derive(Clone, Copy)]
struct BackingPlace {
    offset: u64,
    length: u32,
}

impl BackingPlace {
    fn from_fields(head: &[u8]) -> Self {
        Self {
            offset: be64(head, 8).unwrap_or(0),
            length: be32(head, 16).unwrap_or(0),
        }
    }

    /// Returns the maximum length of a name at this location.
    fn room(self, cluster_size: u64) -> u64 {
        cluster_size
            .saturating_sub(self.offset)
            .min(u64::from(MAX_BACKING_NAME))
    }
}

fn read_fields(head: &[u8]) -> Qcow2Header {
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
        l1_table: Table {
            offset: long(40),
            entries: word(36),
        },
        refcount_table: Table {
            offset: long(48),
            entries: word(56),
        },
        refcount_order: if modern { word(96) } else { 4 },
        snapshots: Table {
            offset: long(64),
            entries: word(60),
        },
        incompatible: IncompatibleFeatures { bits: bits(72) },
        compatible: CompatibleFeatures { bits: bits(80) },
        autoclear: AutoclearFeatures { bits: bits(88) },
        header_length,
        compression: Qcow2Compression::from_field(compression),
        backing_file: None,
        backing_format: None,
        data_file: None,
        feature_names: Vec::new(),
        encryption_header: None,
        bitmaps: None,
        extensions: Vec::new(),
        defects: Vec::new(),
    }
}

fn read_backing_name<R: ReadAt + ?Sized>(
    header: &mut Qcow2Header,
    window: &mut Window<'_, R>,
    place: BackingPlace,
    cluster_size: u64,
) {
    if place.offset == 0 || place.offset > cluster_size {
        return;
    }
    if place.length == 0 {
        header
            .defects
            .push(Defect::at(16, DefectKind::BackingNameEmpty));
        return;
    }
    // Read a name that is too long up to the limit, for messages.
    let length = u64::from(place.length).min(place.room(cluster_size)) as usize;
    match window.fetch(place.offset, length) {
        Ok(bytes) => {
            if bytes.len() < length {
                let kind = DefectKind::TruncatedHeader {
                    needed: place.offset + length as u64,
                    found: place.offset.saturating_add(bytes.len() as u64),
                };
                header.defects.push(Defect::at(place.offset, kind));
            }
            header.backing_file = opened_name(
                &mut header.defects,
                place.offset,
                "backing file name",
                &bytes,
            );
        }
        Err(error) => header.defects.push(Defect::unreadable(
            place.offset,
            "backing file name",
            &error,
        )),
    }
}

/// Returns the name up to the first NUL, as QEMU opens it; the rest is a defect.
fn opened_name(
    defects: &mut Vec<Defect>,
    offset: u64,
    part: &'static str,
    bytes: &[u8],
) -> Option<BackingReference> {
    let opened = crate::bytes::until_nul(bytes);
    if opened.len() < bytes.len() {
        defects.push(Defect::at(
            offset,
            DefectKind::NameWithNul {
                part,
                name: Name::from(bytes),
            },
        ));
    }
    (!opened.is_empty()).then(|| BackingReference::from_bytes(opened))
}
