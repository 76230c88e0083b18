//! The metadata: sizes, and the parent of a differencing image.

use super::VhdxHeader;
use super::region::{Region, Regions};
use crate::bytes::{has, le16, le32, le64, utf16};
use crate::defect::{Defect, DefectKind};
use crate::read::{FetchError, ReadAt, Window};
use crate::reference::BackingReference;

const TABLE_HEADER: usize = 32;
const ENTRY_LENGTH: usize = 32;
const MAX_ENTRIES: u16 = 2047;
const REQUIRED: u32 = 1 << 2;
const HAS_PARENT: u32 = 1 << 1;
const LEAVE_ALLOCATED: u32 = 1;

/// A parent locator has five keys by the specification; a few more may come.
const MAX_LOCATOR_ENTRIES: usize = 8;
/// The longest key of the specification has 19 UTF-16 units.
const MAX_KEY: usize = 64;
/// Windows paths have at most 260 units unless asked for, and 1023 bytes is QEMU's bound on a backing file name.
const MAX_VALUE: usize = 2048;

/// The items this crate reads, by their identity.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    FileParameters,
    VirtualSize,
    Page83,
    LogicalSector,
    PhysicalSector,
    ParentLocator,
}

const ITEMS: [(Item, &str, [u8; 16]); 6] = [
    (
        Item::FileParameters,
        "file parameters",
        [
            0x37, 0x67, 0xa1, 0xca, 0x36, 0xfa, 0x43, 0x4d, 0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44,
            0xe7, 0x6b,
        ],
    ),
    (
        Item::VirtualSize,
        "virtual disk size",
        [
            0x24, 0x42, 0xa5, 0x2f, 0x1b, 0xcd, 0x76, 0x48, 0xb2, 0x11, 0x5d, 0xbe, 0xd8, 0x3b,
            0xf4, 0xb8,
        ],
    ),
    (
        Item::Page83,
        "disk identity",
        [
            0xab, 0x12, 0xca, 0xbe, 0xe6, 0xb2, 0x23, 0x45, 0x93, 0xef, 0xc3, 0x09, 0xe0, 0x00,
            0xc7, 0x46,
        ],
    ),
    (
        Item::LogicalSector,
        "logical sector size",
        [
            0x1d, 0xbf, 0x41, 0x81, 0x6f, 0xa9, 0x09, 0x47, 0xba, 0x47, 0xf2, 0x33, 0xa8, 0xfa,
            0xab, 0x5f,
        ],
    ),
    (
        Item::PhysicalSector,
        "physical sector size",
        [
            0xc7, 0x48, 0xa3, 0xcd, 0x5d, 0x44, 0x71, 0x44, 0x9c, 0xc9, 0xe9, 0x88, 0x52, 0x51,
            0xc5, 0x56,
        ],
    ),
    (
        Item::ParentLocator,
        "parent locator",
        [
            0x2d, 0x5f, 0xd3, 0xa8, 0x0b, 0xb3, 0x4d, 0x45, 0xab, 0xf7, 0xd3, 0xd8, 0x48, 0x34,
            0xab, 0x0c,
        ],
    ),
];

/// The identity of the parent locator type of MS-VHDX, a VHDX parent.
const LOCATOR_TYPE: [u8; 16] = [
    0xb7, 0xef, 0x4a, 0xb0, 0x9e, 0xd1, 0x81, 0x4a, 0xb7, 0x89, 0x25, 0xb8, 0xe9, 0x44, 0x59, 0x13,
];

/// Where the items are, relative to the region.
#[derive(Default)]
struct Places([Option<u32>; 6]);

impl Places {
    fn get(&self, item: Item) -> Option<u32> {
        self.0[item as usize]
    }
}

pub(super) fn read<R: ReadAt + ?Sized>(
    header: &mut VhdxHeader,
    window: &mut Window<'_, R>,
    regions: &Regions,
) {
    let base = regions.metadata.offset;
    let result = read_places(header, window, base).and_then(|places| {
        places.map_or(Ok(()), |places| read_items(header, window, base, &places))
    });
    if let Err(error) = result {
        header
            .defects
            .push(Defect::unreadable(base, "metadata", &error));
    }
    check(header, base, regions.block_table);
}

fn read_places<R: ReadAt + ?Sized>(
    header: &mut VhdxHeader,
    window: &mut Window<'_, R>,
    base: u64,
) -> Result<Option<Places>, FetchError> {
    let part = "metadata table";
    let head = window.fetch(base, TABLE_HEADER)?;
    let count = match le16(&head, 10) {
        Some(count) if has(&head, 0, b"metadata") => count,
        Some(_) | None => {
            header.found(base, DefectKind::Signature { part });
            return Ok(None);
        }
    };
    if count > MAX_ENTRIES {
        let (field, expected) = ("number of metadata items", "more than 2047");
        header.found(
            base.saturating_add(10),
            DefectKind::Field {
                field,
                found: u64::from(count),
                expected,
            },
        );
    }
    let length = usize::from(count.min(MAX_ENTRIES)) * ENTRY_LENGTH;
    let entries = window.fetch(base.saturating_add(TABLE_HEADER as u64), length)?;
    let mut places = Places::default();
    for (index, entry) in entries.chunks_exact(ENTRY_LENGTH).enumerate() {
        let at = base.saturating_add((TABLE_HEADER + index * ENTRY_LENGTH) as u64);
        let known = ITEMS.iter().find(|(_, _, id)| entry.starts_with(id));
        match known {
            Some((item, part, _)) if places.get(*item).is_some() => {
                header.found(at, DefectKind::PartRepeated { part });
            }
            Some((item, _, _)) => places.0[*item as usize] = le32(entry, 16),
            None if le32(entry, 24).unwrap_or(0) & REQUIRED != 0 => {
                header.found(
                    at,
                    DefectKind::UnknownRequiredPart {
                        part: "metadata item",
                    },
                );
            }
            None => {}
        }
    }
    for (item, part, _) in ITEMS {
        if item != Item::ParentLocator && places.get(item).is_none() {
            header.found(base, DefectKind::PartMissing { part });
        }
    }
    Ok(Some(places))
}

fn read_items<R: ReadAt + ?Sized>(
    header: &mut VhdxHeader,
    window: &mut Window<'_, R>,
    base: u64,
    places: &Places,
) -> Result<(), FetchError> {
    let mut word = |item, skip: u64| -> Result<Option<u32>, FetchError> {
        let Some(place) = places.get(item) else {
            return Ok(None);
        };
        let bytes = window.fetch(
            base.saturating_add(u64::from(place)).saturating_add(skip),
            4,
        )?;
        Ok(le32(&bytes, 0))
    };
    header.block_size = word(Item::FileParameters, 0)?;
    let flags = word(Item::FileParameters, 4)?.unwrap_or(0);
    header.fixed = flags & LEAVE_ALLOCATED != 0;
    header.has_parent = flags & HAS_PARENT != 0;
    header.logical_sector_size = word(Item::LogicalSector, 0)?;
    header.physical_sector_size = word(Item::PhysicalSector, 0)?;
    if let Some(place) = places.get(Item::VirtualSize) {
        header.virtual_size = le64(&window.fetch(base.saturating_add(u64::from(place)), 8)?, 0);
    }
    if header.has_parent {
        header.found(base, DefectKind::ParentUnsupported);
        if let Some(place) = places.get(Item::ParentLocator) {
            read_parent(header, window, base.saturating_add(u64::from(place)))?;
        }
    }
    Ok(())
}

/// Reads the parent's name: the relative path where there is one, else the absolute one.
fn read_parent<R: ReadAt + ?Sized>(
    header: &mut VhdxHeader,
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
            header.parent = Some(reference);
            return Ok(());
        }
        absolute = Some(reference);
    }
    header.parent = absolute;
    Ok(())
}

fn check(header: &mut VhdxHeader, base: u64, block_table: Option<Region>) {
    if let Some(size) = header.block_size
        && !(size.is_power_of_two() && (1 << 20..=256 << 20).contains(&size))
    {
        let (part, expected) = ("block size", "a power of two from 1 MiB to 256 MiB");
        header.found(
            base,
            DefectKind::UnitSize {
                part,
                bytes: u64::from(size),
                expected,
            },
        );
        return;
    }
    if let Some(size) = header.logical_sector_size
        && size != 512
    {
        // The format allows 4096, too.
        let (part, expected) = ("logical sector size", "the 512 bytes that QEMU opens");
        header.found(
            base,
            DefectKind::UnitSize {
                part,
                bytes: u64::from(size),
                expected,
            },
        );
        return;
    }
    let (Some(size), Some(block), Some(sector), Some(table)) = (
        header.virtual_size,
        header.block_size,
        header.logical_sector_size,
        block_table,
    ) else {
        return;
    };
    if size == 0 {
        let (field, expected) = ("virtual size", "which leaves nothing to map");
        header.found(
            base,
            DefectKind::Field {
                field,
                found: size,
                expected,
            },
        );
    } else if !size.is_multiple_of(u64::from(sector)) {
        header.found(base, DefectKind::VirtualSizeUnaligned { size });
    }
    // Between every so many blocks, the table has an entry for a bitmap of sectors.
    let blocks = size.div_ceil(u64::from(block));
    let blocks_per_bitmap = (u64::from(sector) << 23) / u64::from(block);
    let needed = blocks + blocks.saturating_sub(1) / blocks_per_bitmap.max(1);
    let found = u64::from(table.length) / 8;
    if needed > found {
        header.found(
            base,
            DefectKind::TableTooSmall {
                table: "block table",
                found,
                needed,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_its_own_identity_and_its_own_place() {
        for (index, (item, _, id)) in ITEMS.iter().enumerate() {
            assert_eq!(*item as usize, index);
            assert_eq!(ITEMS.iter().filter(|(_, _, other)| other == id).count(), 1);
        }
    }
}
