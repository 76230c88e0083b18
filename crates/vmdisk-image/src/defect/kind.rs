//! The kinds of defects, and the sentence of each.

use crate::name::Name;

/// The kinds of defects; `Display` is the sentence.
///
/// A kind serves every format it can occur in. Fields that are names of tables or fields are ours, in the words of the
/// format's specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefectKind {
    /// The image ends within its header.
    #[error("the image ends after {found} bytes, within a header of {needed}")]
    TruncatedHeader {
        /// Bytes the header takes.
        needed: u64,
        /// Bytes there are.
        found: u64,
    },
    /// A part the header points to could not be read.
    #[error("the {part} could not be read: {reason}")]
    Unreadable {
        /// What was to be read.
        part: &'static str,
        /// Why it could not be.
        reason: String,
    },
    /// A part the header points to is longer than this crate reads; it was left out, not judged.
    #[error("the {part} is {length} bytes long, of which at most {limit} are read here")]
    NotRead {
        /// What was not read in full.
        part: &'static str,
        /// Its length in bytes.
        length: u64,
        /// The bound.
        limit: u64,
    },
    /// A version QEMU has no code for.
    #[error("version {found} is not one that QEMU opens")]
    UnsupportedVersion {
        /// The version field.
        found: u32,
    },
    /// qcow2: `cluster_bits` outside 9..=21 (512 bytes to 2 MiB).
    #[error("cluster size 2^{bits} is outside of 2^9 to 2^21")]
    ClusterBits {
        /// The field.
        bits: u32,
    },
    /// qcow2: extended L2 entries need clusters of at least 16 KiB, 32 subclusters of 512 bytes.
    #[error("extended L2 entries need clusters of at least 2^14 bytes, these have 2^{bits}")]
    ClusterTooSmallForExtendedL2 {
        /// `cluster_bits`.
        bits: u32,
    },
    /// qcow2 version 3: the header says it is shorter than its fixed fields, or longer than the first cluster.
    #[error("header length {found} is outside of {minimum} to {maximum}")]
    HeaderLength {
        /// The field.
        found: u32,
        /// The shortest allowed.
        minimum: u32,
        /// The longest allowed.
        maximum: u64,
    },
    /// qcow2 version 3: the specification asks for a multiple of 8; QEMU opens the image.
    #[error("header length {found} is no multiple of 8")]
    HeaderLengthUnaligned {
        /// The field.
        found: u32,
    },
    /// Feature bits whose meaning is unknown here and which forbid opening by who does not know them.
    #[error("unknown incompatible feature bits {bits:#x}{}", named(.names))]
    UnknownIncompatibleFeatures {
        /// The bits.
        bits: u64,
        /// What the image itself calls them (qcow2's feature name table), lowest bit first.
        names: Vec<Name>,
    },
    /// The image was opened for writing and not closed; QEMU checks or repairs it when it opens it for writing.
    #[error("the image was not closed: it is checked and repaired when it is opened for writing")]
    Dirty,
    /// VHDX: a log that was not replayed; QEMU replays it when it opens the image for writing, and refuses to open it
    /// for reading only.
    #[error(
        "the image was not closed: its log has to be replayed, which needs it opened for writing"
    )]
    LogNotReplayed,
    /// qcow2: the corrupt bit; QEMU opens the image for reading only.
    #[error("the image is marked corrupt")]
    Corrupt,
    /// qcow2: AES-CBC of old, which system emulators refuse and qemu-img opens to convert only.
    #[error(
        "the image is encrypted with the broken AES scheme of qcow, which QEMU's system emulators refuse"
    )]
    LegacyEncryption,
    /// An encryption method QEMU has no code for.
    #[error("encryption method {found} is unknown")]
    UnknownEncryption {
        /// The field.
        found: u32,
    },
    /// qcow2: LUKS is the method, and no extension says where its header is.
    #[error("encryption is LUKS, and no header extension says where the LUKS header is")]
    EncryptionHeaderMissing,
    /// qcow2: a LUKS header pointer in an image that is not encrypted with LUKS.
    #[error("a LUKS header is pointed to, and the encryption method is not LUKS")]
    EncryptionHeaderUnexpected,
    /// qcow2: the compression type field and its incompatible feature bit disagree.
    #[error("compression type {found} {}", if *.bit { "has the feature bit of a type other than zlib" } else { "lacks its feature bit" })]
    CompressionBit {
        /// The field.
        found: u8,
        /// Whether the bit is set.
        bit: bool,
    },
    /// A compression type QEMU has no code for.
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
    /// A table that must be there has no entries.
    #[error("there is no {table}")]
    TableMissing {
        /// The table's name.
        table: &'static str,
    },
    /// A table larger than QEMU reads.
    #[error("the {table} has {bytes} bytes, more than the {maximum} QEMU reads")]
    TableTooLarge {
        /// The table's name.
        table: &'static str,
        /// Its size in bytes.
        bytes: u64,
        /// The most QEMU reads.
        maximum: u64,
    },
    /// A table that cannot map the whole disk.
    #[error("the {table} has {found} entries, and the disk needs {needed}")]
    TableTooSmall {
        /// The table's name.
        table: &'static str,
        /// Entries there are.
        found: u64,
        /// Entries the virtual size asks for.
        needed: u64,
    },
    /// A table whose offset is not aligned as the format asks.
    #[error("the {table} begins at {offset}, which is no multiple of {alignment}")]
    TableUnaligned {
        /// The table's name.
        table: &'static str,
        /// Where it is said to begin.
        offset: u64,
        /// What it must be a multiple of.
        alignment: u64,
    },
    /// A table that ends beyond any possible file.
    #[error("the {table} of {bytes} bytes at {offset} ends beyond the largest possible file")]
    TableOverflows {
        /// The table's name.
        table: &'static str,
        /// Where it is said to begin.
        offset: u64,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A table beyond the end of the image, in a format whose driver reads zeros there.
    #[error(
        "the {table} of {bytes} bytes at {offset} lies beyond the end of the image at {length}"
    )]
    TableBeyondEnd {
        /// The table's name.
        table: &'static str,
        /// Where it is said to begin.
        offset: u64,
        /// Its size in bytes.
        bytes: u64,
        /// The length of the image.
        length: u64,
    },
    /// A table that lies over the header, which then is both.
    #[error("the {table} at {offset} lies over the header")]
    TableOverHeader {
        /// The table's name.
        table: &'static str,
        /// Where it is said to begin.
        offset: u64,
    },
    /// A backing file name longer than the format allows (1023 bytes), or than its place.
    #[error("the backing file name of {length} bytes is longer than the {maximum} that fit")]
    BackingNameTooLong {
        /// Its length in bytes.
        length: u64,
        /// The most that is allowed here.
        maximum: u64,
    },
    /// qcow2: the backing file name does not begin within the first cluster.
    #[error("the backing file name is said to be at {offset}, beyond the first cluster")]
    BackingNameOutsideHeader {
        /// Where it is said to be.
        offset: u64,
    },
    /// qcow2: the backing file name lies over the header's fields or extensions.
    #[error("the backing file name at {offset} lies over the header, which ends at {end}")]
    BackingNameOverHeader {
        /// Where it is said to be.
        offset: u64,
        /// Where the header's fields end.
        end: u64,
    },
    /// A backing file is announced with a name of no bytes.
    #[error("the backing file name is empty")]
    BackingNameEmpty,
    /// A name with a NUL byte: QEMU takes what stands before it, and so does this crate.
    #[error("the {part} {name} has a NUL byte, where QEMU stops reading")]
    NameWithNul {
        /// Which name.
        part: &'static str,
        /// All of it.
        name: Name,
    },
    /// qcow2: a header extension that says it is longer than what is left.
    #[error("header extension {id:#010x} is {length} bytes long, and {room} are left")]
    ExtensionOverrun {
        /// The extension's type.
        id: u32,
        /// Its length field.
        length: u32,
        /// What is left for it.
        room: u64,
    },
    /// qcow2: an extension of the wrong size.
    #[error("header extension {id:#010x} is {length} bytes long, {expected}")]
    ExtensionLength {
        /// The extension's type.
        id: u32,
        /// Its length field.
        length: u32,
        /// What would be right, as a clause.
        expected: &'static str,
    },
    /// qcow2: an extension that may be there once is there again; the later one counts, as in QEMU.
    #[error("header extension {id:#010x} is there more than once")]
    ExtensionRepeated {
        /// The extension's type.
        id: u32,
    },
    /// qcow2: more extensions than this crate lists.
    #[error("there are more than {limit} header extensions, and the rest was not read")]
    TooManyExtensions {
        /// How many were listed.
        limit: u64,
    },
    /// qcow2: the feature name table names a bit beyond 63 or a feature class beyond 2, or has a cut entry.
    #[error("the feature name table has an entry that names no feature")]
    FeatureName,
    /// qcow2: the bitmaps extension breaks its rules, so that QEMU does not open the image.
    #[error("the bitmaps extension {problem}")]
    Bitmaps {
        /// What it does, as a clause.
        problem: &'static str,
    },
    /// qcow2: the bitmaps are inconsistent: a program that does not know them wrote to the image.
    #[error(
        "the bitmaps were left behind by a program that does not know them, and QEMU ignores them"
    )]
    BitmapsInconsistent,
    /// qcow2: the guest's data is in another file, and no extension names it: QEMU needs `data-file` on its command line.
    #[error("the data is in an external file, which the image does not name")]
    DataFileMissing,
    /// qcow2: an external data file is named, and the feature bit that makes it used is not set.
    #[error("an external data file is named, and nothing says that it is used")]
    DataFileUnused,
    /// qcow2: the external data file is said to be readable as raw, and there is none.
    #[error("the external data file is said to be raw, and there is none")]
    RawDataFileMissing,
    /// qcow2: a raw external data file has to hold the whole disk, which contradicts a backing file.
    #[error("the external data file is said to be raw, which a backing file contradicts")]
    BackingAndRawDataFile,
    /// A block, cluster or sector size the format or QEMU does not allow.
    #[error("the {part} of {bytes} bytes is not {expected}")]
    UnitSize {
        /// Which unit: cluster size, block size, table size, sector size.
        part: &'static str,
        /// Its size in bytes, as the field says.
        bytes: u64,
        /// What is allowed, as a clause.
        expected: &'static str,
    },
    /// A checksum that does not fit what it covers, in a format whose checksum QEMU verifies.
    #[error("the checksum of the {part} is wrong")]
    Checksum {
        /// What it covers.
        part: &'static str,
    },
    /// A checksum that does not fit what it covers, which QEMU does not verify.
    #[error("the checksum of the {part} is wrong, which QEMU does not look at")]
    ChecksumUnverified {
        /// What it covers.
        part: &'static str,
    },
    /// A part that lies beyond the end of the image, in a format whose driver looks: the file was cut.
    #[error(
        "the {table} of {bytes} bytes at {offset} lies beyond the end of the image at {length}"
    )]
    TableEndsImage {
        /// The table's name.
        table: &'static str,
        /// Where it is said to begin.
        offset: u64,
        /// Its size in bytes.
        bytes: u64,
        /// The length of the image.
        length: u64,
    },
    /// A part the header points to does not begin with its signature.
    #[error("the {part} does not begin with its signature")]
    Signature {
        /// Which part.
        part: &'static str,
    },
    /// A part the format cannot do without.
    #[error("there is no {part}")]
    PartMissing {
        /// Which part.
        part: &'static str,
    },
    /// A part that may be there once.
    #[error("there is more than one {part}")]
    PartRepeated {
        /// Which part.
        part: &'static str,
    },
    /// VHDX: a region or metadata item that has to be understood and whose meaning is unknown.
    #[error("a {part} that must be understood is unknown")]
    UnknownRequiredPart {
        /// Which kind of part.
        part: &'static str,
    },
    /// The image depends on a parent, which QEMU does not support for this format.
    #[error("the image depends on a parent, which QEMU does not support for this format")]
    ParentUnsupported,
    /// VHD: the image holds differences to a parent, and QEMU shows it as if it were all.
    #[error("the image holds the differences to a parent, which QEMU leaves out without a word")]
    ParentIgnored,
    /// VMDK: the descriptor is not one QEMU takes.
    #[error("the descriptor {problem}")]
    Descriptor {
        /// What is wrong, as a clause.
        problem: &'static str,
    },
    /// VMDK: a kind of image QEMU has no code for.
    #[error("the image type {found} is not one that QEMU opens")]
    UnsupportedType {
        /// The type's name.
        found: Name,
    },
    /// A map with fewer entries than the disk has blocks, in a format whose driver opens that all the same: the rest
    /// reads as zeros and cannot be written.
    #[error("{found} blocks are mapped, and the disk has {needed}")]
    BlocksUnmapped {
        /// Entries there are.
        found: u64,
        /// Blocks the disk has.
        needed: u64,
    },
    /// LUKS: an algorithm QEMU does not know; the kernel may.
    #[error("the {part} {name} is not one that QEMU knows")]
    UnknownAlgorithm {
        /// What kind of algorithm.
        part: &'static str,
        /// Its name in the header.
        name: Name,
    },
    /// A name that fills its field without the NUL that has to end it.
    #[error("the name of the {part} has no end")]
    NameUnterminated {
        /// Which name.
        part: &'static str,
    },
    /// Two parts share a place.
    #[error("a {one} lies over the {other}")]
    Overlap {
        /// The one.
        one: &'static str,
        /// And the other.
        other: &'static str,
    },
    /// LUKS: no key slot holds a key, so that nothing opens the volume.
    #[error("no key slot holds a key")]
    NoKey,
    /// A field that has to hold a fixed value or be within bounds, and does not.
    #[error("the {field} is {found}, {expected}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// Its value.
        found: u64,
        /// What is right, as a clause.
        expected: &'static str,
    },
    /// The virtual size is no multiple of a sector; QEMU rounds it down.
    #[error("the virtual size of {size} bytes is no multiple of 512, and QEMU cuts the rest off")]
    VirtualSizeUnaligned {
        /// The field.
        size: u64,
    },
    /// The disk is larger than QEMU's format driver maps.
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
