//! The header of VDI, VirtualBox's format.
//!
//! The layout and the checks follow `block/vdi.c` of QEMU. All fields are little endian.

use super::UncheckedHeader;
use crate::bytes::{le32, le64, slice};
use crate::defect::DefectKind;
use crate::format::ImageFormat;

/// The signature at byte 64, after a text without meaning.
pub(crate) const MAGIC: &[u8] = &[0x7f, 0x10, 0xda, 0xbe];
/// The offset of the signature.
pub(crate) const MAGIC_OFFSET: usize = 64;

/// The fields up to the UUIDs; QEMU's probe needs a whole sector.
const LENGTH: usize = 512;
/// The UUIDs of a parent and of its last modification.
const PARENT: [usize; 2] = [424, 440];
/// The only version that QEMU opens: 1.1.
const VERSION: u32 = 0x1_0001;
/// The only block size that QEMU opens.
const BLOCK_BYTES: u64 = 1 << 20;
/// QEMU's `VDI_BLOCKS_IN_IMAGE_MAX`: the block map has at most 2 GiB.
const MAX_BLOCKS: u64 = ((1 << 31) - 512) / 4;
/// Size of an entry of the block map.
const ENTRY_BYTES: u64 = 4;

pub(crate) fn read(head: &[u8], image_length: Option<u64>) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Vdi);
    let Some(fields) = header.whole(head, 0, LENGTH) else {
        return header;
    };
    header.virtual_size = le64(fields, 368).and_then(|size| size.checked_next_multiple_of(512));
    header.cluster_size = le32(fields, 376).map(u64::from);
    if PARENT
        .iter()
        .any(|at| slice(fields, *at, 16) != Some(&[0; 16]))
    {
        header.found(424, DefectKind::ParentUnsupported);
    }
    check(&mut header, fields, image_length);
    header
}

fn check(header: &mut UncheckedHeader, fields: &[u8], image_length: Option<u64>) {
    let word = |at| u64::from(le32(fields, at).unwrap_or(0));
    let version = le32(fields, 68).unwrap_or(0);
    if version != VERSION {
        header.found(68, DefectKind::UnsupportedVersion { found: version });
    }
    for (at, table) in [(340, "block map"), (344, "data area")] {
        let (offset, alignment) = (word(at), 512);
        if !offset.is_multiple_of(alignment) {
            let kind = DefectKind::TableUnaligned {
                table,
                offset,
                alignment,
            };
            header.found(at as u64, kind);
        }
    }
    for (at, part, size, expected) in [
        (360, "sector size", 512, "512 bytes"),
        (
            376,
            "block size",
            BLOCK_BYTES,
            "1 MiB, the only size in QEMU",
        ),
    ] {
        let bytes = word(at);
        if bytes != size {
            let kind = DefectKind::UnitSize {
                part,
                bytes,
                expected,
            };
            header.found(at as u64, kind);
        }
    }
    let (size, blocks) = (le64(fields, 368).unwrap_or(0), word(384));
    if size > MAX_BLOCKS * BLOCK_BYTES {
        header.found(368, DefectKind::VirtualSizeTooLarge { size });
        return;
    }
    let (table, needed) = ("block map", size.div_ceil(BLOCK_BYTES));
    let bytes = blocks * ENTRY_BYTES;
    if blocks < needed {
        let found = blocks;
        let kind = DefectKind::TableTooSmall {
            table,
            found,
            needed,
        };
        header.found(384, kind);
    } else if blocks > MAX_BLOCKS {
        let maximum = MAX_BLOCKS * ENTRY_BYTES;
        let kind = DefectKind::TableTooLarge {
            table,
            bytes,
            maximum,
        };
        header.found(384, kind);
    } else if let Some(length) = image_length
        && word(340) + bytes > length
    {
        let offset = word(340);
        let kind = DefectKind::TableBeyondEnd {
            table,
            offset,
            bytes,
            length,
        };
        header.found(340, kind);
    }
}
