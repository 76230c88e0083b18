//! Image headers.

pub use vmdisk_image::{
    AutoclearFeatures, BackingReference, CompatibleFeatures, Defect, DefectKind, Effect,
    EncryptionHeader, Extension, FIRST_READ, FeatureClass, FeatureName, FileRole, Header,
    HeaderBacking, ImageFormat, IncompatibleFeatures, KeySlot, Luks1Header, Luks2Header,
    MAX_BYTES_READ, MbrPartition, MdMetadata, Name, PartitionTable, Qcow2Compression,
    Qcow2Encryption, Qcow2Header, RAW_READ, RawContent, RawGuess, ReadAt, ReadError, Signature,
    SignatureKind, Table, UncheckedHeader, chain, probe,
};
