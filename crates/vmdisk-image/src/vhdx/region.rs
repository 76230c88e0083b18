//! The region table: where the block table and the metadata are.

use super::{VhdxHeader, checksum};
use crate::bytes::{has, le32, le64, slice};
use crate::defect::{Defect, DefectKind};
use crate::read::{ReadAt, Window};

const TABLE_OFFSET: u64 = 0x3_0000;
/// The checksum covers all of it, so all of it is read.
const TABLE_LENGTH: usize = 64 * 1024;
const ENTRY_LENGTH: usize = 32;
const MAX_ENTRIES: u32 = 2047;
const REQUIRED: u32 = 1;

const BLOCK_TABLE: [u8; 16] = [
    0x66, 0x77, 0xc2, 0x2d, 0x23, 0xf6, 0x00, 0x42, 0x9d, 0x64, 0x11, 0x5e, 0x9b, 0xfd, 0x4a, 0x08,
];
const METADATA: [u8; 16] = [
    0x06, 0xa2, 0x7c, 0x8b, 0x90, 0x47, 0x9a, 0x4b, 0xb8, 0xfe, 0x57, 0x5f, 0x05, 0x0f, 0x88, 0x6e,
];

/// Where a region is.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// The regions without which there is no image.
pub(super) struct Regions {
    pub(super) block_table: Option<Region>,
    pub(super) metadata: Region,
}

/// Reads the region table; `None` where it does not lead to the metadata.
pub(super) fn read<R: ReadAt + ?Sized>(
    header: &mut VhdxHeader,
    window: &mut Window<'_, R>,
) -> Option<Regions> {
    let part = "region table";
    let bytes = match window.fetch(TABLE_OFFSET, TABLE_LENGTH) {
        Ok(bytes) => bytes,
        Err(error) => {
            header
                .defects
                .push(Defect::unreadable(TABLE_OFFSET, part, &error));
            return None;
        }
    };
    if !has(&bytes, 0, b"regi") {
        header.found(TABLE_OFFSET, DefectKind::Signature { part });
        return None;
    }
    if !checksum::fits(&bytes, TABLE_LENGTH) {
        header.found(TABLE_OFFSET + 4, DefectKind::Checksum { part });
    }
    let count = le32(&bytes, 8)?;
    if count > MAX_ENTRIES {
        let (field, expected) = ("number of regions", "more than 2047");
        header.found(
            TABLE_OFFSET + 8,
            DefectKind::Field {
                field,
                found: u64::from(count),
                expected,
            },
        );
    }
    let (mut block_table, mut metadata) = (None, None);
    for index in 0..count.min(MAX_ENTRIES) as usize {
        let at = 16 + index * ENTRY_LENGTH;
        let Some(entry) = slice(&bytes, at, ENTRY_LENGTH) else {
            break;
        };
        let place = TABLE_OFFSET + at as u64;
        let (Some(offset), Some(length), Some(flags)) =
            (le64(entry, 16), le32(entry, 24), le32(entry, 28))
        else {
            break;
        };
        let known = match &entry[..16] {
            id if id == BLOCK_TABLE => Some((&mut block_table, "block table region")),
            id if id == METADATA => Some((&mut metadata, "metadata region")),
            _ => None,
        };
        match known {
            Some((region, part)) if region.is_some() => {
                header.found(place, DefectKind::PartRepeated { part })
            }
            Some((region, _)) => *region = Some(Region { offset, length }),
            None if flags & REQUIRED != 0 => {
                header.found(place, DefectKind::UnknownRequiredPart { part: "region" });
            }
            None => {}
        }
    }
    for (region, part) in [
        (block_table, "block table region"),
        (metadata, "metadata region"),
    ] {
        match region {
            None => header.found(TABLE_OFFSET + 8, DefectKind::PartMissing { part }),
            Some(Region { offset, length }) => {
                check(header, window.image_length(), part, offset, length)
            }
        }
    }
    metadata.map(|metadata| Regions {
        block_table,
        metadata,
    })
}

fn check(
    header: &mut VhdxHeader,
    image_length: Option<u64>,
    table: &'static str,
    offset: u64,
    length: u32,
) {
    let bytes = u64::from(length);
    if offset < 1 << 20 {
        header.found(TABLE_OFFSET, DefectKind::TableOverHeader { table, offset });
    }
    if let Some(length) = image_length
        && u128::from(offset) + u128::from(bytes) > u128::from(length)
    {
        header.found(
            TABLE_OFFSET,
            DefectKind::TableBeyondEnd {
                table,
                offset,
                bytes,
                length,
            },
        );
    }
}
