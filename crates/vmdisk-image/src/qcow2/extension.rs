//! The header extensions of qcow2 that name a format or a file.

use super::header::{Qcow2Header, V3_LENGTH};
use crate::bytes::{be32, until_nul};
use crate::name::Name;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

/// The type of the last extension.
const END: u32 = 0;
/// The format of the backing file, as text.
const BACKING_FORMAT: u32 = 0xe279_2aca;
/// The name of the external data file, as text.
const DATA_FILE: u32 = 0x4441_5441;
/// Maximum number of extensions read. QEMU writes at most six; a cluster of 2 MiB could hold 262144 empty ones.
const MAX_EXTENSIONS: usize = 64;
/// QEMU's buffer for the name of the backing format has 16 bytes, including the NUL.
const MAX_BACKING_FORMAT: u32 = 15;
/// Maximum length of the data file's name; QEMU and the specification have no limit, so Linux's `PATH_MAX` is used.
const MAX_DATA_FILE: u32 = 4096;

/// Reads the extensions between the end of the header's fields and `end`.
pub(super) fn read_all<R: ReadAt + ?Sized>(
    header: &mut Qcow2Header,
    window: &mut Window<'_, R>,
    end: u64,
) {
    let mut offset = u64::from(header.header_length);
    if header.version >= 3 && header.header_length < V3_LENGTH {
        // The header's fields would be read as extensions.
        return;
    }
    for _ in 0..MAX_EXTENSIONS {
        let Some(bytes) = (offset < end).then(|| window.fetch(offset, 8)) else {
            return;
        };
        let bytes = bytes.unwrap_or_default();
        // QEMU reads zeroes after the end of a file, which end the list.
        let (id, length) = (be32(&bytes, 0).unwrap_or(END), be32(&bytes, 4).unwrap_or(0));
        let data = offset + 8;
        let is_within = data <= end && u64::from(length) <= end - data;
        if id == END || !is_within {
            return;
        }
        let mut text = |most: u32| window.fetch(data, length.min(most) as usize).ok();
        if id == BACKING_FORMAT && length <= MAX_BACKING_FORMAT {
            let format = text(length).map(|bytes| Name::from(until_nul(&bytes)));
            header.backing_format = format.filter(|name| !name.is_empty());
        } else if id == DATA_FILE {
            header.data_file =
                text(MAX_DATA_FILE).and_then(|bytes| BackingReference::until_nul(&bytes));
        }
        offset = data + u64::from(length).next_multiple_of(8);
    }
}
