//! Image headers.

pub use vmdisk_image::{
    AutoclearFeatures, BackingReference, CompatibleFeatures, FIRST_READ, Header, HeaderBacking,
    ImageFormat, IncompatibleFeatures, MAX_BYTES_READ, Name, OtherHeader, Qcow2Compression,
    Qcow2Encryption, Qcow2Header, ReadAt, ReadError, probe,
};
