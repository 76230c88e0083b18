//! The footer and header of VHD, the format QEMU and libvirt call `vpc`.
//!
//! The layout is Microsoft's *Virtual Hard Disk Image Format Specification*; bounds and the rule for the disk's size are
//! those of `block/vpc.c` of QEMU. All fields are big endian.

use crate::bytes::{be16, be32, be64, has, utf16};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

/// The footer's signature; dynamic images have a copy of the footer at their beginning.
pub(crate) const MAGIC: &[u8] = b"conectix";
pub(crate) const FOOTER_LENGTH: usize = 512;

/// The header of dynamic and differencing images, to which the footer points.
const DYNAMIC_MAGIC: &[u8] = b"cxsparse";
const DYNAMIC_LENGTH: usize = 1024;
/// The geometry that means "too large for a geometry": 65535 cylinders, 16 heads, 255 sectors.
const MAX_GEOMETRY_SECTORS: u64 = 65535 * 16 * 255;
/// QEMU's bound: 2040 GiB.
const MAX_SECTORS: u64 = 0xff00_0000;
/// Creators that keep the size in the footer; for all others QEMU takes the geometry's product. `wa` is Azure's, which
/// QEMU knows since 10.0; its images have the largest geometry or a matching one.
const SIZE_BY_FOOTER: [&[u8]; 5] = [b"win ", b"qem2", b"d2v ", b"tap\0", b"CTXS"];

/// What a VHD's footer and header say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VpcHeader {
    /// How the image allocates.
    pub disk_type: VpcType,
    /// Whether the footer was found at the end only. QEMU does not find such an image by probing, it takes it for raw.
    pub footer_at_end_only: bool,
    /// The program that wrote the image, four bytes.
    pub creator: Name,
    /// The disk's size by the footer, in bytes.
    pub current_size: u64,
    /// The size the disk was created with, in bytes.
    pub original_size: u64,
    /// Cylinders, heads and sectors per track.
    pub geometry: (u16, u8, u8),
    /// The size of a block in bytes; none in fixed images.
    pub block_size: Option<u32>,
    /// Entries of the block table; none in fixed images.
    pub entries: Option<u32>,
    /// The parent of a differencing image by its name in the header, which QEMU does not open.
    pub parent: Option<BackingReference>,
    /// What is wrong, in the order it was found.
    pub defects: Vec<Defect>,
}

/// How a VHD allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VpcType {
    /// All of the disk, and the footer behind it.
    Fixed,
    /// Blocks are allocated when written.
    Dynamic,
    /// As dynamic, on top of a parent.
    Differencing,
    /// A type without a known meaning.
    Other(u32),
}

impl VpcHeader {
    /// The disk's size as a guest of QEMU sees it, in bytes.
    ///
    /// QEMU takes the footer's size for the creators that are known to write it, and for the largest geometry; else the
    /// product of the geometry, which may be a little smaller.
    #[must_use]
    pub fn virtual_size(&self) -> u64 {
        let (cylinders, heads, sectors) = self.geometry;
        let by_geometry = u64::from(cylinders) * u64::from(heads) * u64::from(sectors);
        if SIZE_BY_FOOTER.contains(&self.creator.as_bytes()) || by_geometry == MAX_GEOMETRY_SECTORS
        {
            self.current_size / 512 * 512
        } else {
            by_geometry * 512
        }
    }
}

/// Reads an image whose footer, or its copy, begins at `offset`.
pub(crate) fn read<R: ReadAt + ?Sized>(
    window: &mut Window<'_, R>,
    offset: u64,
    footer: &[u8],
) -> VpcHeader {
    let word = |at| be32(footer, at).unwrap_or(0);
    let mut header = VpcHeader {
        disk_type: match word(60) {
            2 => VpcType::Fixed,
            3 => VpcType::Dynamic,
            4 => VpcType::Differencing,
            other => VpcType::Other(other),
        },
        footer_at_end_only: offset != 0,
        creator: Name::new(footer.get(28..32).unwrap_or_default()),
        current_size: be64(footer, 48).unwrap_or(0),
        original_size: be64(footer, 40).unwrap_or(0),
        geometry: (
            be16(footer, 56).unwrap_or(0),
            footer.get(58).copied().unwrap_or(0),
            footer.get(59).copied().unwrap_or(0),
        ),
        block_size: None,
        entries: None,
        parent: None,
        defects: Vec::new(),
    };
    if footer.len() < FOOTER_LENGTH {
        let found = offset + footer.len() as u64;
        let kind = DefectKind::TruncatedHeader {
            needed: offset + FOOTER_LENGTH as u64,
            found,
        };
        header.defects.push(Defect::at(found, kind));
        return header;
    }
    if !checksum_fits(footer, 64, word(64)) {
        header.defects.push(Defect::at(
            offset + 64,
            DefectKind::Checksum { part: "footer" },
        ));
    }
    let size = header.virtual_size();
    if size > MAX_SECTORS * 512 {
        header.defects.push(Defect::at(
            offset + 48,
            DefectKind::VirtualSizeTooLarge { size },
        ));
    }
    // QEMU goes by where it found the footer, not by the type: at the beginning, a dynamic header must follow.
    if offset == 0 {
        read_dynamic(&mut header, window, be64(footer, 16).unwrap_or(0));
    }
    if header.disk_type == VpcType::Differencing {
        header
            .defects
            .push(Defect::at(offset + 60, DefectKind::ParentIgnored));
    }
    header
}

fn read_dynamic<R: ReadAt + ?Sized>(
    header: &mut VpcHeader,
    window: &mut Window<'_, R>,
    offset: u64,
) {
    let part = "dynamic disk header";
    let bytes = match window.fetch(offset, DYNAMIC_LENGTH) {
        Ok(bytes) => bytes,
        Err(error) => {
            header
                .defects
                .push(Defect::unreadable(offset, part, &error));
            return;
        }
    };
    if !has(&bytes, 0, DYNAMIC_MAGIC) {
        header
            .defects
            .push(Defect::at(offset, DefectKind::Signature { part }));
        return;
    }
    if bytes.len() < DYNAMIC_LENGTH {
        let found = offset.saturating_add(bytes.len() as u64);
        let kind = DefectKind::TruncatedHeader {
            needed: offset.saturating_add(DYNAMIC_LENGTH as u64),
            found,
        };
        header.defects.push(Defect::at(found, kind));
        return;
    }
    let word = |at| be32(&bytes, at).unwrap_or(0);
    let mut found = |at: u64, kind| {
        header
            .defects
            .push(Defect::at(offset.saturating_add(at), kind))
    };
    if !checksum_fits(&bytes, 36, word(36)) {
        // QEMU does not verify this one.
        found(36, DefectKind::ChecksumUnverified { part });
    }
    let (block_size, entries) = (word(32), word(28));
    let table_offset = be64(&bytes, 16).unwrap_or(0);
    if !block_size.is_power_of_two() || block_size < 512 {
        let bytes = u64::from(block_size);
        found(
            32,
            DefectKind::UnitSize {
                part: "block size",
                bytes,
                expected: "a power of two from 512 bytes",
            },
        );
    } else if u64::from(entries) > MAX_SECTORS * 512 / u64::from(block_size) {
        let bytes = u64::from(entries) * 4;
        let maximum = MAX_SECTORS * 512 / u64::from(block_size) * 4;
        found(
            28,
            DefectKind::TableTooLarge {
                table: "block table",
                bytes,
                maximum,
            },
        );
    }
    if table_offset < offset.saturating_add(DYNAMIC_LENGTH as u64) {
        let offset = table_offset;
        found(
            16,
            DefectKind::TableOverHeader {
                table: "block table",
                offset,
            },
        );
    }
    let bytes_of_table = u64::from(entries) * 4;
    if let Some(length) = window.image_length()
        && u128::from(table_offset) + u128::from(bytes_of_table) > u128::from(length)
    {
        let (table, offset, bytes) = ("block table", table_offset, bytes_of_table);
        found(
            16,
            DefectKind::TableEndsImage {
                table,
                offset,
                bytes,
                length,
            },
        );
    }
    header.block_size = Some(block_size);
    header.entries = Some(entries);
    let size = header.virtual_size();
    if block_size != 0 && u64::from(entries) * u64::from(block_size) < size {
        let (found, needed) = (u64::from(entries), size.div_ceil(u64::from(block_size)));
        let kind = DefectKind::TableTooSmall {
            table: "block table",
            found,
            needed,
        };
        header
            .defects
            .push(Defect::at(offset.saturating_add(28), kind));
    }
    if header.disk_type == VpcType::Differencing {
        let units = bytes[64..576]
            .chunks_exact(2)
            .map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
        let name = utf16(units);
        header.parent = (!name.is_empty()).then(|| BackingReference::from_bytes(name.as_bytes()));
    }
}

/// Whether the complement of the sum of all bytes is `expected`, the four bytes of the field counted as zero.
fn checksum_fits(bytes: &[u8], field: usize, expected: u32) -> bool {
    let sum = bytes
        .iter()
        .enumerate()
        .filter(|(at, _)| !(field..field + 4).contains(at))
        .fold(0u32, |sum, (_, byte)| sum.wrapping_add(u32::from(*byte)));
    !sum == expected
}
