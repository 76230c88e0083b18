//! Image headers from bytes handed to it: qcow2 and its relatives, and guesses at raw images.
//!
//! The crate reads nothing by itself: the caller hands over a [`ReadAt`]. Input is taken to be hostile: no more than
//! [`MAX_BYTES_READ`] bytes of an image are read whatever it says, no allocation takes its size from a header, nothing
//! a header refers to is followed, and nothing panics.
//!
//! ```
//! use vmdisk_image::{Header, RawContent, probe};
//!
//! let image = vec![0u8; 1024];
//! let Header::Raw(guess) = probe(&mut image.as_slice())? else { panic!("zeros have no header") };
//! assert_eq!(guess.content, RawContent::Zero);
//! # Ok::<(), vmdisk_image::ReadError>(())
//! ```

mod bytes;
mod defect;
mod header;
mod name;
mod qcow2;
mod raw;
mod read;
mod reference;

pub use defect::{Defect, DefectKind, Effect};
pub use header::{Header, probe};
pub use name::Name;
pub use qcow2::{
    AutoclearFeatures, Bitmaps, CompatibleFeatures, EncryptionHeader, Extension, FeatureClass,
    FeatureName, IncompatibleFeatures, Qcow2Compression, Qcow2Encryption, Qcow2Header, Table,
};
pub use raw::{PartitionTable, RawContent, RawGuess};
pub use read::{FIRST_READ, MAX_BYTES_READ, RAW_READ, ReadAt, ReadError};
pub use reference::BackingReference;
