//! Image headers from bytes handed to it: qcow2 and its relatives, and guesses at raw images.
//!
//! The crate reads nothing by itself: the caller hands over a [`ReadAt`]. Input is taken to be hostile: no more than
//! [`MAX_BYTES_READ`] bytes of an image are read whatever it says, no allocation takes its size from a header, nothing
//! a header refers to is followed, and nothing panics.
//!
//! [`probe`] gives a [`Header`]: the format's fields as they stand, what follows from them, and a list of [`Defect`]s
//! with the place of each and what QEMU makes of it. [`chain::walk`] puts headers together to a backing chain, with a
//! caller's function to find the files.
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
//! What the crate does not do: it reads no tables (L1, L2, block maps), so that it says nothing of allocation; it does
//! not read the JSON part of LUKS version 2; it does not look into `json:` names.

mod bytes;
pub mod chain;
mod defect;
mod format;
mod header;
mod luks;
mod name;
mod parallels;
mod qcow;
mod qcow2;
mod qed;
mod raw;
mod read;
mod reference;
mod vdi;
mod vhdx;
mod vmdk;
mod vpc;

pub use defect::{Defect, DefectKind, Effect};
pub use format::ImageFormat;
pub use header::{Backing, FileRole, Header, probe};
pub use luks::{KeySlot, Luks1Header, Luks2Header};
pub use name::Name;
pub use parallels::ParallelsHeader;
pub use qcow::QcowHeader;
pub use qcow2::{
    AutoclearFeatures, Bitmaps, CompatibleFeatures, EncryptionHeader, Extension, FeatureClass,
    FeatureName, IncompatibleFeatures, Qcow2Compression, Qcow2Encryption, Qcow2Header, Table,
};
pub use qed::QedHeader;
pub use raw::{
    MbrPartition, MdMetadata, PartitionTable, RawContent, RawGuess, Signature, SignatureKind,
};
pub use read::{FIRST_READ, MAX_BYTES_READ, RAW_READ, ReadAt, ReadError};
pub use reference::BackingReference;
pub use vdi::{VdiHeader, VdiType};
pub use vhdx::VhdxHeader;
pub use vmdk::{VmdkExtent, VmdkHeader, VmdkKind};
pub use vpc::{VpcHeader, VpcType};
