//! The metadata of VHDX, Hyper-V's format: the size, and the parent of a differencing image.
//!
//! The layout is Microsoft's *VHDX Format Specification* (MS-VHDX). All fields are little endian. A region table contains
//! the offset of the metadata, and a metadata table those of its items.

use super::UncheckedHeader;
use crate::bytes::{has, le16, le32, le64, utf16};
use crate::format::ImageFormat;
use crate::read::{FetchError, ReadAt, Window};
use crate::reference::BackingReference;

pub(crate) const MAGIC: &[u8] = b"vhdxfile";

const REGION_TABLE: u64 = 0x3_0000;
const REGION_TABLE_HEADER: usize = 16;
const METADATA_TABLE_HEADER: usize = 32;
/// The size of an entry of either table.
const ENTRY_LENGTH: usize = 32;
/// The maximum number of entries of either table.
const MAX_ENTRIES: usize = 2047;
const HAS_PARENT: u32 = 1 << 1;

/// A parent locator has five keys by the specification; a few more may come.
const MAX_LOCATOR_ENTRIES: usize = 8;
/// The longest key of the specification has 19 UTF-16 units.
const MAX_KEY: usize = 64;
/// Windows paths have at most 260 units unless asked for, and 1023 bytes is QEMU's bound on a backing file name.
const MAX_VALUE: usize = 2048;

/// The region of the metadata.
const METADATA: [u8; 16] = [
    0x06, 0xa2, 0x7c, 0x8b, 0x90, 0x47, 0x9a, 0x4b, 0xb8, 0xfe, 0x57, 0x5f, 0x05, 0x0f, 0x88, 0x6e,
];
const FILE_PARAMETERS: [u8; 16] = [
    0x37, 0x67, 0xa1, 0xca, 0x36, 0xfa, 0x43, 0x4d, 0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44, 0xe7, 0x6b,
];
const VIRTUAL_SIZE: [u8; 16] = [
    0x24, 0x42, 0xa5, 0x2f, 0x1b, 0xcd, 0x76, 0x48, 0xb2, 0x11, 0x5d, 0xbe, 0xd8, 0x3b, 0xf4, 0xb8,
];
const PARENT_LOCATOR: [u8; 16] = [
    0x2d, 0x5f, 0xd3, 0xa8, 0x0b, 0xb3, 0x4d, 0x45, 0xab, 0xf7, 0xd3, 0xd8, 0x48, 0x34, 0xab, 0x0c,
];
/// The identity of the parent locator type of MS-VHDX, a VHDX parent.
const LOCATOR_TYPE: [u8; 16] = [
    0xb7, 0xef, 0x4a, 0xb0, 0x9e, 0xd1, 0x81, 0x4a, 0xb7, 0x89, 0x25, 0xb8, 0xe9, 0x44, 0x59, 0x13,
];

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Vhdx);
    // A part that cannot be read leaves the rest unknown.
    let _ = read_regions(&mut header, window);
    header
}

fn read_regions<R: ReadAt + ?Sized>(
    header: &mut UncheckedHeader,
    window: &mut Window<'_, R>,
) -> Result<(), FetchError> {
    let head = window.fetch(REGION_TABLE, REGION_TABLE_HEADER)?;
    if !has(&head, 0, b"regi") {
        return Ok(());
    }
    let count = le32(&head, 8).unwrap_or(0) as usize;
    let start = REGION_TABLE + REGION_TABLE_HEADER as u64;
    let regions = window.fetch(start, count.min(MAX_ENTRIES) * ENTRY_LENGTH)?;
    match entry(&regions, METADATA).and_then(|entry| le64(entry, 16)) {
        Some(base) => read_metadata(header, window, base),
        None => Ok(()),
    }
}

/// Returns the entry of an identity.
fn entry(table: &[u8], identity: [u8; 16]) -> Option<&[u8]> {
    table
        .chunks_exact(ENTRY_LENGTH)
        .find(|entry| entry.starts_with(&identity))
}

fn read_metadata<R: ReadAt + ?Sized>(
    header: &mut UncheckedHeader,
    window: &mut Window<'_, R>,
    base: u64,
) -> Result<(), FetchError> {
    let head = window.fetch(base, METADATA_TABLE_HEADER)?;
    if !has(&head, 0, b"metadata") {
        return Ok(());
    }
    let count = usize::from(le16(&head, 10).unwrap_or(0));
    let items = window.fetch(
        base.saturating_add(METADATA_TABLE_HEADER as u64),
        count.min(MAX_ENTRIES) * ENTRY_LENGTH,
    )?;
    let place = |identity| {
        let offset = entry(&items, identity).and_then(|entry| le32(entry, 16))?;
        Some(base.saturating_add(u64::from(offset)))
    };
    if let Some(at) = place(VIRTUAL_SIZE) {
        header.virtual_size = le64(&window.fetch(at, 8)?, 0).map(|size| size / 512 * 512);
    }
    let Some(at) = place(FILE_PARAMETERS) else {
        return Ok(());
    };
    let parameters = window.fetch(at, 8)?;
    header.cluster_size = le32(&parameters, 0).map(u64::from);
    let has_parent = le32(&parameters, 4).is_some_and(|flags| flags & HAS_PARENT != 0);
    match place(PARENT_LOCATOR).filter(|_| has_parent) {
        Some(at) => read_parent(header, window, at),
        None => Ok(()),
    }
}

/// Reads the parent's name: the relative path where there is one, else the absolute one.
fn read_parent<R: ReadAt + ?Sized>(
    header: &mut UncheckedHeader,
    window: &mut Window<'_, R>,
    base: u64,
) -> Result<(), FetchError> {
    let head = window.fetch(base, 20)?;
    if !has(&head, 0, &LOCATOR_TYPE) {
        return Ok(());
    }
    let count = usize::from(le16(&head, 18).unwrap_or(0)).min(MAX_LOCATOR_ENTRIES);
    let entries = window.fetch(base.saturating_add(20), count * 12)?;
    let mut absolute = None;
    for entry in entries.chunks_exact(12) {
        let (Some(key_at), Some(value_at), Some(key_length), Some(value_length)) = (
            le32(entry, 0),
            le32(entry, 4),
            le16(entry, 8),
            le16(entry, 10),
        ) else {
            break;
        };
        let mut text = |at: u32, length: u16, most: usize| -> Result<String, FetchError> {
            let bytes = window.fetch(
                base.saturating_add(u64::from(at)),
                usize::from(length).min(most),
            )?;
            Ok(utf16(
                bytes
                    .chunks_exact(2)
                    .map(|unit| u16::from_le_bytes([unit[0], unit[1]])),
            ))
        };
        let key = text(key_at, key_length, MAX_KEY)?;
        if !matches!(key.as_str(), "relative_path" | "absolute_win32_path") {
            continue;
        }
        let value = text(value_at, value_length, MAX_VALUE)?;
        if value.is_empty() {
            continue;
        }
        let reference = BackingReference::from_bytes(value.as_bytes());
        if key == "relative_path" {
            header.backing_file = Some(reference);
            return Ok(());
        }
        absolute = Some(reference);
    }
    header.backing_file = absolute;
    Ok(())
}
