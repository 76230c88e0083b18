//! The metadata of VHDX, Hyper-V's format: the sizes.
//!
//! The layout is Microsoft's *VHDX Format Specification* (MS-VHDX). All fields are little endian. A region table contains
//! the offset of the metadata, and a metadata table those of its items.

use super::OtherHeader;
use crate::bytes::{has, le16, le32, le64};
use crate::format::ImageFormat;
use crate::read::{FetchError, ReadAt, Window};

pub(crate) const MAGIC: &[u8] = b"vhdxfile";

const REGION_TABLE: u64 = 0x3_0000;
const REGION_TABLE_HEADER: usize = 16;
const METADATA_TABLE_HEADER: usize = 32;
/// The size of an entry of either table.
const ENTRY_LENGTH: usize = 32;
/// The maximum number of entries of either table.
const MAX_ENTRIES: usize = 2047;

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

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> OtherHeader {
    let mut header = OtherHeader::new(ImageFormat::Vhdx);
    // A part that cannot be read leaves the rest unknown.
    let _ = read_regions(&mut header, window);
    header
}

fn read_regions<R: ReadAt + ?Sized>(
    header: &mut OtherHeader,
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
    header: &mut OtherHeader,
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
    if let Some(at) = place(FILE_PARAMETERS) {
        header.cluster_size = le32(&window.fetch(at, 8)?, 0).map(u64::from);
    }
    Ok(())
}
