//! The header of qcow2, versions 2 and 3.
//!
//! The layout follows QEMU's `docs/interop/qcow2`, limits `block/qcow2.c`. Fields after the end of a short file are zero, as
//! in QEMU. Whether QEMU opens the image is what `qemu-img info` and `qemu-img check` tell.

mod extension;
mod features;
mod header;

pub use features::{AutoclearFeatures, CompatibleFeatures, IncompatibleFeatures};
pub use header::{Qcow2Compression, Qcow2Encryption, Qcow2Header};

use crate::bytes::{be32, be64};
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

/// `QFI` and 0xfb: the signature of qcow (version 1) and qcow2 (versions 2 and 3).
pub(crate) const MAGIC: &[u8] = b"QFI\xfb";
/// Maximum length of a backing file name in QEMU and the specification.
const MAX_BACKING_NAME: u64 = 1023;

/// Reads the header of an image that begins with [`MAGIC`] and has another version than 1.
pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> Qcow2Header {
    let mut header = Qcow2Header::from_fields(window.head());
    // The other fields of an unknown version have an unknown meaning.
    let is_known = header.version == 2 || header.version == 3;
    let Some(cluster_size) = header.cluster_size().filter(|_| is_known) else {
        return header;
    };
    let offset = be64(window.head(), 8).unwrap_or(0);
    let length = be32(window.head(), 16).unwrap_or(0);
    let end = match offset {
        0 => cluster_size,
        _ => offset.min(cluster_size),
    };
    extension::read_all(&mut header, window, end);
    if offset != 0 && offset <= cluster_size {
        let room = (cluster_size - offset).min(MAX_BACKING_NAME);
        let length = u64::from(length).min(room) as usize;
        header.backing_file = window
            .fetch(offset, length)
            .ok()
            .and_then(|bytes| BackingReference::until_nul(&bytes));
    }
    header
}
