//! The table of internal snapshots of qcow2.
//!
//! QEMU reads it whenever it opens the image (`block/qcow2-snapshot.c`), and refuses an entry with too much extra data.

use super::header::Qcow2Header;
use crate::bytes::{be16, be32};
use crate::defect::{Defect, DefectKind};
use crate::read::{ReadAt, Window};

/// QEMU's `QCOW_MAX_SNAPSHOT_EXTRA_DATA`.
const MAX_EXTRA: u32 = 1024;
/// Size of an entry without its extra data and names.
const ENTRY_BYTES: u64 = 40;
/// Maximum number of bytes read of the table: about 700 snapshots with short names.
const TABLE_READ: u64 = 64 * 1024;

/// Checks the entries in the first [`TABLE_READ`] bytes.
pub(super) fn read_table<R: ReadAt + ?Sized>(header: &mut Qcow2Header, window: &mut Window<'_, R>) {
    let (offset, count) = (header.snapshots.offset, header.snapshots.entries);
    let is_refused = |defect: &Defect| defect.effect() == crate::defect::Effect::Refused;
    if count == 0 || header.defects.iter().any(is_refused) {
        return;
    }
    // The length of the table is known only after its last entry.
    let bytes = match window.fetch(offset, TABLE_READ as usize) {
        Ok(bytes) => bytes,
        Err(error) => {
            let defect = Defect::unreadable(offset, "snapshot table", &error);
            header.defects.push(defect);
            return;
        }
    };
    let mut at = 0;
    for index in 0..count {
        let entry = bytes.get(at as usize..).unwrap_or_default();
        let (Some(id), Some(name), Some(extra)) =
            (be16(entry, 12), be16(entry, 14), be32(entry, 36))
        else {
            // QEMU reads zeroes after the end of a file, which are sound entries.
            if (bytes.len() as u64) == TABLE_READ {
                let kind = DefectKind::SnapshotsNotRead { read: index, count };
                header.defects.push(Defect::at(offset + at, kind));
            }
            return;
        };
        if extra > MAX_EXTRA {
            let kind = DefectKind::SnapshotExtraData {
                index,
                length: extra,
                maximum: MAX_EXTRA,
            };
            header.defects.push(Defect::at(offset + at + 36, kind));
            return;
        }
        at += ENTRY_BYTES + u64::from(extra) + u64::from(id) + u64::from(name);
        at = at.next_multiple_of(8);
    }
}
