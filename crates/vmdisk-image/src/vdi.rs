//! The header of VDI, VirtualBox's format.
//!
//! Layout and bounds are those of `block/vdi.c` of QEMU. All fields are little endian.

use crate::bytes::{le32, le64, slice, until_nul};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;

/// The signature at byte 64, behind a text of no meaning.
pub(crate) const MAGIC: &[u8] = &[0x7f, 0x10, 0xda, 0xbe];
/// Where the signature stands.
pub(crate) const MAGIC_OFFSET: usize = 64;

/// The fields up to the UUIDs; QEMU's probe wants a whole sector.
const LENGTH: usize = 512;
const VERSION_1_1: u32 = 0x0001_0001;
/// The only block size QEMU opens.
const BLOCK_SIZE: u32 = 1 << 20;
/// QEMU's bound on blocks: their map must fit 32 bits of bytes.
const MAX_BLOCKS: u32 = 0x3fff_ffff;

/// What a VDI header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VdiHeader {
    /// The program that wrote the image says so in words, of no meaning.
    pub text: Name,
    /// Major version in the upper, minor in the lower 16 bits.
    pub version: u32,
    /// How blocks are allocated.
    pub image_type: VdiType,
    /// The disk's size as the guest sees it, in bytes, as the field stands; QEMU rounds it up to a sector.
    pub virtual_size: u64,
    /// The size of a block in bytes; QEMU opens 1 MiB only.
    pub block_size: u32,
    /// How many blocks the image maps.
    pub blocks: u32,
    /// How many of them are allocated.
    pub blocks_allocated: u32,
    /// Where the map begins, in bytes.
    pub map_offset: u32,
    /// Where the data begins, in bytes.
    pub data_offset: u32,
    /// What is wrong, in the order it was found.
    pub defects: Vec<Defect>,
}

/// How a VDI allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VdiType {
    /// Blocks are allocated when written.
    Dynamic,
    /// All blocks are allocated.
    Static,
    /// Another type: VirtualBox has undo (3) and difference (4) images.
    Other(u32),
}

pub(crate) fn read(head: &[u8], image_length: Option<u64>) -> VdiHeader {
    let mut fields = [0; LENGTH];
    let have = head.len().min(LENGTH);
    fields[..have].copy_from_slice(&head[..have]);
    let word = |at| le32(&fields, at).unwrap_or(0);
    let mut header = VdiHeader {
        text: Name::from(until_nul(&fields[..MAGIC_OFFSET])),
        version: word(68),
        image_type: match word(76) {
            1 => VdiType::Dynamic,
            2 => VdiType::Static,
            other => VdiType::Other(other),
        },
        virtual_size: le64(&fields, 368).unwrap_or(0),
        block_size: word(376),
        blocks: word(384),
        blocks_allocated: word(388),
        map_offset: word(340),
        data_offset: word(344),
        defects: Vec::new(),
    };
    if have < LENGTH {
        let kind = DefectKind::TruncatedHeader {
            needed: LENGTH as u64,
            found: have as u64,
        };
        header.defects.push(Defect::at(have as u64, kind));
        return header;
    }
    let has_parent = [424, 440]
        .iter()
        .any(|at| slice(&fields, *at, 16) != Some(&[0; 16]));
    check(&mut header, word(360), has_parent, image_length);
    header
}

fn check(header: &mut VdiHeader, sector_size: u32, has_parent: bool, image_length: Option<u64>) {
    let mut found = |offset, kind| header.defects.push(Defect::at(offset, kind));
    if header.version != VERSION_1_1 {
        found(
            68,
            DefectKind::UnsupportedVersion {
                found: header.version,
            },
        );
    }
    for (at, table, offset) in [
        (340, "block map", header.map_offset),
        (344, "data area", header.data_offset),
    ] {
        if !offset.is_multiple_of(512) {
            let offset = u64::from(offset);
            found(
                at,
                DefectKind::TableUnaligned {
                    table,
                    offset,
                    alignment: 512,
                },
            );
        }
    }
    if sector_size != 512 {
        let bytes = u64::from(sector_size);
        found(
            360,
            DefectKind::UnitSize {
                part: "sector size",
                bytes,
                expected: "512 bytes",
            },
        );
    }
    if header.block_size != BLOCK_SIZE {
        let bytes = u64::from(header.block_size);
        found(
            376,
            DefectKind::UnitSize {
                part: "block size",
                bytes,
                expected: "the 1 MiB that QEMU opens",
            },
        );
    }
    if header.virtual_size > u64::from(MAX_BLOCKS) * u64::from(BLOCK_SIZE) {
        found(
            368,
            DefectKind::VirtualSizeTooLarge {
                size: header.virtual_size,
            },
        );
    }
    if header.blocks > MAX_BLOCKS {
        let expected = "and QEMU opens at most 1073741823";
        found(
            384,
            DefectKind::Field {
                field: "number of blocks",
                found: u64::from(header.blocks),
                expected,
            },
        );
    }
    if let Some(needed) = header.virtual_size.checked_next_multiple_of(512)
        && header.block_size != 0
        && needed > u64::from(header.blocks) * u64::from(header.block_size)
    {
        let needed = needed.div_ceil(u64::from(header.block_size));
        let kind = DefectKind::TableTooSmall {
            table: "block map",
            found: u64::from(header.blocks),
            needed,
        };
        found(384, kind);
    }
    if has_parent {
        found(424, DefectKind::ParentUnsupported);
    }
    let (offset, bytes) = (u64::from(header.map_offset), u64::from(header.blocks) * 4);
    if offset < LENGTH as u64 && bytes > 0 {
        found(
            340,
            DefectKind::TableOverHeader {
                table: "block map",
                offset,
            },
        );
    }
    if let Some(length) = image_length
        && offset + bytes > length
    {
        found(
            340,
            DefectKind::TableBeyondEnd {
                table: "block map",
                offset,
                bytes,
                length,
            },
        );
    }
}
