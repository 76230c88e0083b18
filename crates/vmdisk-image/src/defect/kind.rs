//! The kinds of defects and their messages.

use crate::name::Name;

/// The kinds of defects; `Display` is the message.
///
/// A kind is used for every format in which it can occur. The names of tables and fields follow the
/// specification of the format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefectKind {
    /// The image ends within its header.
    #[error("the image ends after {found} bytes, within a header of {needed}")]
    TruncatedHeader {
        /// The size of the header.
        needed: u64,
        /// The size of the image.
        found: u64,
    },
    /// A part of the image could not be read.
    #[error("the {part} could not be read: {reason}")]
    Unreadable {
        /// The part.
        part: &'static str,
        /// The reason.
        reason: String,
    },
    /// A part of the image is longer than this crate reads; it was not checked.
    #[error("the {part} is {length} bytes long, of which at most {limit} are read here")]
    NotRead {
        /// The part.
        part: &'static str,
        /// Its length in bytes.
        length: u64,
        /// The bound.
        limit: u64,
    },
    /// A version that QEMU does not support.
    #[error("version {found} is not supported by QEMU")]
    UnsupportedVersion {
        /// The version field.
        found: u32,
    },
    /// qcow2: `cluster_bits` outside 9..=21 (512 bytes to 2 MiB).
    #[error("cluster size 2^{bits} is outside 2^9 to 2^21")]
    ClusterBits {
        /// The field.
        bits: u32,
    },
    /// qcow2: extended L2 entries need clusters of at least 16 KiB, 32 subclusters of 512 bytes.
    #[error("extended L2 entries need clusters of at least 2^14 bytes, found 2^{bits}")]
    ClusterTooSmallForExtendedL2 {
        /// `cluster_bits`.
        bits: u32,
    },
    /// qcow2 version 3: the header length is shorter than the fixed fields, or longer than the first cluster.
    #[error("header length {found} is outside {minimum} to {maximum}")]
    HeaderLength {
        /// The field.
        found: u32,
        /// The minimum.
        minimum: u32,
        /// The maximum.
        maximum: u64,
    },
    /// qcow2 version 3: the specification requires a multiple of 8; QEMU opens the image.
    #[error("header length {found} is not a multiple of 8")]
    HeaderLengthUnaligned {
        /// The field.
        found: u32,
    },
    /// Unknown feature bits; implementations that do not know them must not open the image.
    #[error("unknown incompatible feature bits {bits:#x}{}", named(.names))]
    UnknownIncompatibleFeatures {
        /// The bits.
        bits: u64,
        /// Their names in the image (qcow2's feature name table), lowest bit first.
        names: Vec<Name>,
    },
    /// The image was not closed after writing; QEMU checks or repairs it when it opens it for writing.
    #[error("the image was not closed: it is checked and repaired when it is opened for writing")]
    Dirty,
    /// qcow2: the corrupt bit; QEMU opens the image read-only.
    #[error("the image is marked corrupt")]
    Corrupt,
    /// qcow2: legacy AES-CBC, which system emulators refuse and qemu-img opens only for conversion.
    #[error(
        "the image is encrypted with qcow's insecure AES scheme, which QEMU's system emulators refuse"
    )]
    LegacyEncryption,
    /// An encryption method that QEMU does not support.
    #[error("encryption method {found} is unknown")]
    UnknownEncryption {
        /// The field.
        found: u32,
    },
    /// qcow2: the method is LUKS, but no extension contains the location of its header.
    #[error("the encryption method is LUKS, but the extension for the LUKS header is missing")]
    EncryptionHeaderMissing,
    /// qcow2: a LUKS header in an image that is not encrypted with LUKS.
    #[error("there is an extension for a LUKS header, but the encryption method is not LUKS")]
    EncryptionHeaderUnexpected,
    /// qcow2: the compression type field and its incompatible feature bit disagree.
    #[error("compression type {found} {}", if *.bit { "has the feature bit of a type other than zlib" } else { "lacks its feature bit" })]
    CompressionBit {
        /// The field.
        found: u8,
        /// True if the bit is set.
        bit: bool,
    },
    /// A compression type that QEMU does not support.
    #[error("compression type {found} is unknown")]
    UnknownCompression {
        /// The field.
        found: u8,
    },
    /// qcow2: reference counts wider than 64 bits.
    #[error("reference counts of 2^{order} bits are wider than 64 bits")]
    RefcountOrder {
        /// `refcount_order`.
        order: u32,
    },
    /// A required table has no entries.
    #[error("the {table} is missing")]
    TableMissing {
        /// The table's name.
        table: &'static str,
    },
    /// A table that is too large for QEMU.
    #[error("the {table} has {bytes} bytes, but QEMU supports at most {maximum}")]
    TableTooLarge {
        /// The table's name.
        table: &'static str,
        /// Its size in bytes.
        bytes: u64,
        /// The maximum in QEMU.
        maximum: u64,
    },
    /// A table that is too small to map the whole disk.
    #[error("the {table} has {found} entries, but the disk needs {needed}")]
    TableTooSmall {
        /// The table's name.
        table: &'static str,
        /// The number of entries.
        found: u64,
        /// The number of entries for the virtual size.
        needed: u64,
    },
    /// A table with an unaligned offset.
    #[error("the {table} begins at {offset}, which is not a multiple of {alignment}")]
    TableUnaligned {
        /// The table's name.
        table: &'static str,
        /// Its offset.
        offset: u64,
        /// The required alignment.
        alignment: u64,
    },
    /// A table that ends after the maximum file size.
    #[error("the {table} of {bytes} bytes at {offset} ends beyond the largest possible file")]
    TableOverflows {
        /// The table's name.
        table: &'static str,
        /// Its offset.
        offset: u64,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A table after the end of the image, in a format whose driver reads zeroes there.
    #[error("the {table} of {bytes} bytes at {offset} is beyond the end of the image at {length}")]
    TableBeyondEnd {
        /// The table's name.
        table: &'static str,
        /// Its offset.
        offset: u64,
        /// Its size in bytes.
        bytes: u64,
        /// The length of the image.
        length: u64,
    },
    /// A table that overlaps the header.
    #[error("the {table} at {offset} overlaps the header")]
    TableOverHeader {
        /// The table's name.
        table: &'static str,
        /// Its offset.
        offset: u64,
    },
    /// A backing file name longer than the format (1023 bytes) or its location allows.
    #[error("the backing file name of {length} bytes is longer than the maximum of {maximum}")]
    BackingNameTooLong {
        /// Its length in bytes.
        length: u64,
        /// The maximum.
        maximum: u64,
    },
    /// qcow2: the backing file name is not in the first cluster.
    #[error("the backing file name at {offset} is not in the first cluster")]
    BackingNameOutsideHeader {
        /// Its offset.
        offset: u64,
    },
    /// qcow2: the backing file name overlaps the header's fields or extensions.
    #[error("the backing file name at {offset} overlaps the header, which ends at {end}")]
    BackingNameOverHeader {
        /// Its offset.
        offset: u64,
        /// The end of the header's fields.
        end: u64,
    },
    /// A backing file with an empty name.
    #[error("the backing file name is empty")]
    BackingNameEmpty,
    /// A name with a NUL byte, where QEMU and this crate end it.
    #[error("the {part} {name} has a NUL byte, where QEMU stops reading")]
    NameWithNul {
        /// The kind of name.
        part: &'static str,
        /// The whole name.
        name: Name,
    },
    /// qcow2: a header extension that is longer than the remaining space.
    #[error("header extension {id:#010x} is {length} bytes long, but only {room} are left")]
    ExtensionOverrun {
        /// The extension's type.
        id: u32,
        /// Its length field.
        length: u32,
        /// The remaining space.
        room: u64,
    },
    /// qcow2: an extension of the wrong size.
    #[error("header extension {id:#010x} is {length} bytes long, {expected}")]
    ExtensionLength {
        /// The extension's type.
        id: u32,
        /// Its length field.
        length: u32,
        /// The expected length, as a clause.
        expected: &'static str,
    },
    /// qcow2: a repeated extension; the last one counts, as in QEMU.
    #[error("header extension {id:#010x} is repeated")]
    ExtensionRepeated {
        /// The extension's type.
        id: u32,
    },
    /// qcow2: too many extensions for this crate.
    #[error("there are more than {limit} header extensions, and the rest was not read")]
    TooManyExtensions {
        /// The number of extensions read.
        limit: u64,
    },
    /// qcow2: an entry of the feature name table has a bit above 63 or a class above 2, or is truncated.
    #[error("the feature name table has an invalid entry")]
    FeatureName,
    /// qcow2: a snapshot with more extra data than QEMU reads.
    #[error(
        "snapshot {index} has {length} bytes of extra data, but QEMU supports at most {maximum}"
    )]
    SnapshotExtraData {
        /// Its index in the table.
        index: u32,
        /// The length of its extra data.
        length: u32,
        /// The maximum.
        maximum: u32,
    },
    /// qcow2: too many snapshots for this crate.
    #[error("only the first {read} of {count} snapshots were read")]
    SnapshotsNotRead {
        /// The number of snapshots read.
        read: u32,
        /// Their number.
        count: u32,
    },
    /// qcow2: the guest's data is in an unnamed external file: QEMU needs `data-file` on its command line.
    #[error("the data is in an external file that the image does not name")]
    DataFileMissing,
    /// qcow2: an external data file is named, but the feature bit is not set.
    #[error("an external data file is named, but its feature bit is not set")]
    DataFileUnused,
    /// qcow2: the external data file is marked as raw, but there is none.
    #[error("the external data file is marked as raw, but there is none")]
    RawDataFileMissing,
    /// qcow2: a raw external data file must hold the whole disk, which conflicts with a backing file.
    #[error("the external data file is marked as raw, which conflicts with the backing file")]
    BackingAndRawDataFile,
    /// A part after the end of the image, in a format whose driver checks this: the file was truncated.
    #[error("the {table} of {bytes} bytes at {offset} is beyond the end of the image at {length}")]
    TableEndsImage {
        /// The table's name.
        table: &'static str,
        /// Its offset.
        offset: u64,
        /// Its size in bytes.
        bytes: u64,
        /// The length of the image.
        length: u64,
    },
    /// A part that does not begin with its signature.
    #[error("the {part} does not begin with its signature")]
    Signature {
        /// The part.
        part: &'static str,
    },
    /// LUKS: an algorithm that QEMU does not support; the kernel may.
    #[error("the {part} {name} is not supported by QEMU")]
    UnknownAlgorithm {
        /// The kind of algorithm.
        part: &'static str,
        /// Its name in the header.
        name: Name,
    },
    /// A name that fills its field without a terminating NUL.
    #[error("the name of the {part} is not terminated")]
    NameUnterminated {
        /// The kind of name.
        part: &'static str,
    },
    /// Two overlapping parts.
    #[error("a {one} overlaps the {other}")]
    Overlap {
        /// The first part.
        one: &'static str,
        /// The second part.
        other: &'static str,
    },
    /// LUKS: no key slot holds a key, so the volume cannot be opened.
    #[error("no key slot holds a key")]
    NoKey,
    /// A field with a wrong value.
    #[error("the {field} is {found}, {expected}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// Its value.
        found: u64,
        /// The expected value, as a clause.
        expected: &'static str,
    },
    /// The virtual size is not a multiple of a sector; QEMU rounds it down.
    #[error("the virtual size of {size} bytes is not a multiple of 512, so QEMU rounds it down")]
    VirtualSizeUnaligned {
        /// The field.
        size: u64,
    },
    /// The disk is too large for QEMU's format driver.
    #[error("the virtual size of {size} bytes is larger than the format can map")]
    VirtualSizeTooLarge {
        /// The field.
        size: u64,
    },
}

fn named(names: &[Name]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(Name::to_string).collect();
    format!(" ({})", names.join(", "))
}

impl DefectKind {
    /// An image that ends within its header.
    pub(crate) const fn truncated(needed: u64, found: u64) -> Self {
        DefectKind::TruncatedHeader { needed, found }
    }

    /// A field with a value that is not the expected one.
    pub(crate) const fn field(field: &'static str, found: u64, expected: &'static str) -> Self {
        DefectKind::Field {
            field,
            found,
            expected,
        }
    }
}
