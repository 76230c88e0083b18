//! The name of the backing file in a qcow2 header.

use super::header::Qcow2Header;
use crate::bytes::{be32, be64, until_nul};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

/// Maximum length of a backing file name in QEMU and the specification.
const MAX_BACKING_NAME: u32 = 1023;

/// The location of the backing file name in the header.
#[derive(Clone, Copy)]
pub(super) struct BackingPlace {
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl BackingPlace {
    pub(super) fn from_fields(head: &[u8]) -> Self {
        Self {
            offset: be64(head, 8).unwrap_or(0),
            length: be32(head, 16).unwrap_or(0),
        }
    }

    /// Returns the maximum length of a name at this location.
    pub(super) fn room(self, cluster_size: u64) -> u64 {
        cluster_size
            .saturating_sub(self.offset)
            .min(u64::from(MAX_BACKING_NAME))
    }
}

/// Reads the name, and refuses what QEMU refuses of it.
pub(super) fn read_name<R: ReadAt + ?Sized>(
    header: &mut Qcow2Header,
    window: &mut Window<'_, R>,
    place: BackingPlace,
    cluster_size: u64,
) {
    if place.offset == 0 || place.offset > cluster_size {
        return;
    }
    if place.length == 0 {
        header
            .defects
            .push(Defect::at(16, DefectKind::BackingNameEmpty));
        return;
    }
    // Read a name that is too long up to the limit, for messages.
    let length = u64::from(place.length).min(place.room(cluster_size)) as usize;
    match window.fetch(place.offset, length) {
        Ok(bytes) => {
            if bytes.len() < length {
                let kind = DefectKind::truncated(
                    place.offset + length as u64,
                    place.offset.saturating_add(bytes.len() as u64),
                );
                header.defects.push(Defect::at(place.offset, kind));
            }
            header.backing_file = opened_name(
                &mut header.defects,
                place.offset,
                "backing file name",
                &bytes,
            );
        }
        Err(error) => header.defects.push(Defect::unreadable(
            place.offset,
            "backing file name",
            &error,
        )),
    }
}

/// Returns the name up to the first NUL, as QEMU opens it; the rest is a defect.
pub(super) fn opened_name(
    defects: &mut Vec<Defect>,
    offset: u64,
    part: &'static str,
    bytes: &[u8],
) -> Option<BackingReference> {
    let opened = until_nul(bytes);
    if opened.len() < bytes.len() {
        defects.push(Defect::at(
            offset,
            DefectKind::NameWithNul {
                part,
                name: Name::from(bytes),
            },
        ));
    }
    (!opened.is_empty()).then(|| BackingReference::from_bytes(opened))
}
