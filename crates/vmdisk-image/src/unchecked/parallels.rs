//! The header of Parallels' expandable images, which libvirt calls ploop.
//!
//! The layout is QEMU's `docs/interop/parallels`, the checks follow `block/parallels.c`. Little endian.

use super::UncheckedHeader;
use crate::bytes::{has, le32, le64};
use crate::defect::DefectKind;
use crate::format::ImageFormat;
use crate::read::{MAX_OFFSET, ReadAt, Window};

/// The old signature: the size is a field of 32 bits.
pub(crate) const MAGIC_OLD: &[u8] = b"WithoutFreeSpace";
/// The extended signature: the size is a field of 64 bits.
pub(crate) const MAGIC: &[u8] = b"WithouFreSpacExt";

const LENGTH: usize = 64;
/// The only version that QEMU detects.
const VERSION: u32 = 2;
/// The maximum number of sectors in a cluster.
const MAX_TRACKS: u32 = i32::MAX as u32 / 513;
/// The maximum number of entries of the block allocation table.
const MAX_ENTRIES: u64 = i32::MAX as u64 / ENTRY_BYTES;
/// Size of an entry of the block allocation table.
const ENTRY_BYTES: u64 = 4;
/// The signature of the format extension, which holds bitmaps.
const EXTENSION_MAGIC: u64 = 0xab23_4cef_23dc_ea87;

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Parallels);
    header.is_probed_by_qemu = le32(window.head(), 16) == Some(VERSION);
    let Some(fields) = header.whole(window.head(), 0, LENGTH) else {
        return header;
    };
    let sectors = if has(fields, 0, MAGIC) {
        le64(fields, 36)
    } else {
        le32(fields, 36).map(u64::from)
    };
    header.virtual_size = sectors.and_then(|sectors| sectors.checked_mul(512));
    header.cluster_size = le32(fields, 28).map(|sectors| u64::from(sectors) * 512);
    let size = sectors.unwrap_or(0).saturating_mul(512);
    if size > i64::MAX as u64 {
        header.found(36, DefectKind::VirtualSizeTooLarge { size });
    }
    let extension = le64(fields, 56).unwrap_or(0);
    check(
        &mut header,
        fields,
        sectors.unwrap_or(0),
        window.image_length(),
    );
    check_extension(&mut header, window, extension);
    header
}

fn check(header: &mut UncheckedHeader, fields: &[u8], sectors: u64, image_length: Option<u64>) {
    let word = |at| le32(fields, at).unwrap_or(0);
    let (version, tracks, entries) = (word(16), word(28), u64::from(word(32)));
    if version != VERSION {
        header.found(16, DefectKind::UnsupportedVersion { found: version });
    }
    if !(1..=MAX_TRACKS).contains(&tracks) {
        let kind = DefectKind::UnitSize {
            part: "cluster size",
            bytes: u64::from(tracks) * 512,
            expected: "between 512 bytes and 2 GiB",
        };
        header.found(28, kind);
    }
    let (table, offset, bytes) = (
        "block allocation table",
        LENGTH as u64,
        entries * ENTRY_BYTES,
    );
    if entries > MAX_ENTRIES {
        let maximum = MAX_ENTRIES * ENTRY_BYTES;
        let kind = DefectKind::TableTooLarge {
            table,
            bytes,
            maximum,
        };
        header.found(32, kind);
    } else if tracks != 0 && entries < sectors.div_ceil(u64::from(tracks)) {
        // QEMU 11.1 refuses it; 10.0 opens the image, but the table maps only its beginning.
        let kind = DefectKind::TableTooSmall {
            table,
            found: entries,
            needed: sectors.div_ceil(u64::from(tracks)),
        };
        header.found(32, kind);
    } else if let Some(length) = image_length
        && offset + bytes > length
    {
        let kind = DefectKind::TableBeyondEnd {
            table,
            offset,
            bytes,
            length,
        };
        header.found(32, kind);
    }
}

/// Checks the signature of the format extension, whose offset is in sectors.
fn check_extension<R: ReadAt + ?Sized>(
    header: &mut UncheckedHeader,
    window: &mut Window<'_, R>,
    sector: u64,
) {
    let part = "format extension";
    if sector == 0 {
        return;
    }
    let offset = sector.saturating_mul(512);
    if offset > MAX_OFFSET {
        return header.found(56, DefectKind::Signature { part });
    }
    match window.fetch(offset, 8) {
        Ok(bytes) if le64(&bytes, 0) == Some(EXTENSION_MAGIC) => {}
        Ok(_) => header.found(56, DefectKind::Signature { part }),
        Err(error) => header.unreadable(offset, part, &error),
    }
}
