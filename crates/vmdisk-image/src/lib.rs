//! Internal to vmdisk: parser of image headers: qcow2 and other formats, and guesses at raw images.
//!
//! The crate does no IO: the caller provides a [`ReadAt`]. Input is considered hostile: at most
//! [`MAX_BYTES_READ`] bytes of an image are read, no allocation takes its size from a header, no
//! reference in a header to another file is followed, and no input causes a panic.
//!
//! [`probe`] returns a [`Header`]: the fields of the format, values computed from them, and a list of [`Defect`]s
//! with their offsets and effects in QEMU. Of formats other than qcow2, LUKS and raw it
//! reads only the sizes and the names of other files ([`UncheckedHeader`]). [`chain::walk`] builds a backing chain from headers, with a
//! caller's function that finds the files.
//!
//! ```
//! use vmdisk_image::{Header, ImageFormat, RawContent, probe};
//!
//! let image = vec![0u8; 1024];
//! let header = probe(&mut image.as_slice())?;
//! assert_eq!(header.format(), ImageFormat::Raw);
//! assert_eq!(header.virtual_size(), Some(1024));
//! let Header::Raw(guess) = header else { panic!("zeros have no header") };
//! assert_eq!(guess.content, RawContent::Zero);
//! # Ok::<(), vmdisk_image::ReadError>(())
//! ```
//!
//! Limits: the crate reads no tables of clusters (L1, L2, block maps), so it cannot report allocation; it does
//! not parse the JSON part of LUKS version 2, or `json:` names.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod bytes;
pub mod chain;
mod defect;
mod format;
mod header;
mod luks;
mod name;
mod qcow2;
mod raw;
mod read;
mod reference;
mod unchecked;

pub use defect::{Defect, DefectKind, Effect};
pub use format::ImageFormat;
pub use header::{FileRole, Header, HeaderBacking, probe};
pub use luks::{KeySlot, Luks1Header, Luks2Header};
pub use name::Name;
pub use qcow2::{
    AutoclearFeatures, CompatibleFeatures, EncryptionHeader, Extension, FeatureClass, FeatureName,
    IncompatibleFeatures, Qcow2Compression, Qcow2Encryption, Qcow2Header, Table,
};
pub use raw::{
    MbrPartition, MdMetadata, PartitionTable, RawContent, RawGuess, Signature, SignatureKind,
};
pub use read::{FIRST_READ, MAX_BYTES_READ, RAW_READ, ReadAt, ReadError};
pub use reference::BackingReference;
pub use unchecked::UncheckedHeader;
