//! Internal to vmdisk: parser of image headers: what lint and the planner need to know of an image.
//!
//! The crate does no IO: the caller provides a [`ReadAt`]. Input is considered hostile: at most
//! [`MAX_BYTES_READ`] bytes of an image are read, no allocation takes its size from a header, no
//! reference in a header to another file is followed, and no input causes a panic.
//!
//! [`probe`] returns a [`Header`]: the fields of the format, and values computed from them. It does not say whether QEMU
//! opens the image: `qemu-img info` and `qemu-img check` do.
//!
//! ```
//! use vmdisk_image::{Header, ImageFormat, probe};
//!
//! let image = vec![0u8; 1024];
//! let header = probe(&mut image.as_slice())?;
//! assert_eq!(header.format(), ImageFormat::Raw);
//! assert_eq!(header.virtual_size(), Some(1024));
//! # Ok::<(), vmdisk_image::ReadError>(())
//! ```

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod bytes;
mod format;
mod header;
mod name;
mod other;
mod qcow2;
mod read;
mod reference;

pub use format::ImageFormat;
pub use header::{Header, HeaderBacking, probe};
pub use name::Name;
pub use other::OtherHeader;
pub use qcow2::{
    AutoclearFeatures, CompatibleFeatures, IncompatibleFeatures, Qcow2Compression, Qcow2Encryption,
    Qcow2Header,
};
pub use read::{FIRST_READ, MAX_BYTES_READ, ReadAt, ReadError};
pub use reference::BackingReference;
