//! The header of qcow2, versions 2 and 3.
//!
//! The layout follows QEMU's `docs/interop/qcow2`; refusals and limits follow `block/qcow2.c` of QEMU 7.2 to
//! 10.0. Fields after the end of a short file are zero, as in QEMU.

mod backing;
mod check;
mod derived;
mod extension;
mod features;
mod header;
mod snapshots;

pub use features::{AutoclearFeatures, CompatibleFeatures, IncompatibleFeatures};
pub use header::{
    EncryptionHeader, Extension, FeatureClass, FeatureName, Qcow2Compression, Qcow2Encryption,
    Qcow2Header, Table,
};

use crate::defect::{Defect, DefectKind};
use crate::read::{ReadAt, Window};
use backing::BackingPlace;
use header::{KNOWN_LENGTH, V2_LENGTH, V3_LENGTH};

/// `QFI` and 0xfb: the signature of qcow (version 1) and qcow2 (versions 2 and 3).
pub(crate) const MAGIC: &[u8] = b"QFI\xfb";

/// Reads the header of an image that begins with [`MAGIC`] and has another version than 1.
pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> Qcow2Header {
    let mut header = Qcow2Header::from_fields(window.head());
    let have = window.head().len().min(KNOWN_LENGTH) as u64;
    let needed = if header.version == 2 {
        V2_LENGTH
    } else {
        V3_LENGTH
    };
    if header.version == 2 || header.version == 3 {
        if have < u64::from(needed) {
            let kind = DefectKind::truncated(u64::from(needed), have);
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
        backing::read_name(&mut header, window, place, cluster_size);
    }
    check::extensions(&mut header);
    snapshots::read_table(&mut header, window);
    header
}
