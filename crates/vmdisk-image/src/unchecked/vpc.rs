//! The footer and header of VHD, the format QEMU and libvirt call `vpc`.
//!
//! The layout is Microsoft's *Virtual Hard Disk Image Format Specification*; the checks and the rule for the disk's size
//! follow `block/vpc.c` of QEMU. All fields are big endian.

use super::UncheckedHeader;
use crate::bytes::{be16, be32, be64, has, utf16};
use crate::defect::DefectKind;
use crate::format::ImageFormat;
use crate::read::{MAX_OFFSET, ReadAt, Window};
use crate::reference::BackingReference;

/// The footer's signature; dynamic images have a copy of the footer at their beginning.
pub(crate) const MAGIC: &[u8] = b"conectix";
pub(crate) const FOOTER_LENGTH: usize = 512;

/// The header of dynamic and differencing images, at an offset in the footer.
const DYNAMIC_MAGIC: &[u8] = b"cxsparse";
const DYNAMIC_LENGTH: usize = 1024;
/// The disk type of an image without a dynamic header.
const FIXED: u32 = 2;
/// The disk type of an image that depends on a parent.
const DIFFERENCING: u32 = 4;
/// QEMU's `VHD_MAX_SECTORS`: 2040 GiB.
const MAX_BYTES: u64 = 0xff00_0000 * 512;
/// The entry of a block that is not allocated.
const UNALLOCATED: u32 = u32::MAX;
/// Maximum number of bytes read of the block allocation table: with blocks of 2 MiB, a disk of 32 GiB.
const TABLE_READ: u64 = 64 * 1024;
/// Size of an entry of the block allocation table.
const ENTRY_BYTES: u64 = 4;
/// The geometry that means "too large for a geometry": 65535 cylinders, 16 heads, 255 sectors.
const MAX_GEOMETRY_SECTORS: u64 = 65535 * 16 * 255;
/// Creators that store the size in the footer; for all others QEMU uses the geometry's product. `wa` is Azure's, which
/// QEMU knows since 10.0; its images have the largest geometry or a matching one.
const SIZE_BY_FOOTER: [&[u8]; 5] = [b"win ", b"qem2", b"d2v ", b"tap\0", b"CTXS"];

/// Reads an image whose footer, or its copy, begins at `offset`.
pub(crate) fn read<R: ReadAt + ?Sized>(
    window: &mut Window<'_, R>,
    offset: u64,
    footer: &[u8],
) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Vpc);
    header.is_probed_by_qemu = offset == 0;
    let Some(footer) = header.whole(footer, offset, FOOTER_LENGTH) else {
        return header;
    };
    let size = virtual_size(footer);
    header.virtual_size = Some(size);
    let kind = be32(footer, 60).unwrap_or(0);
    let is_differencing = kind == DIFFERENCING;
    if be32(footer, 64) != Some(checksum(footer)) {
        header.found(offset + 64, DefectKind::Checksum { part: "footer" });
    }
    if size > MAX_BYTES {
        header.found(offset + 48, DefectKind::VirtualSizeTooLarge { size });
    }
    // QEMU decides by the footer's location, not by the type: at the beginning, a dynamic header must follow.
    if offset != 0 && kind != FIXED {
        let (field, expected) = ("disk type", "not 2 in a footer at the end");
        let found = u64::from(kind);
        let kind = DefectKind::Field {
            field,
            found,
            expected,
        };
        header.found(offset + 60, kind);
    } else if offset == 0 {
        read_dynamic(
            &mut header,
            window,
            be64(footer, 16).unwrap_or(0),
            is_differencing,
        );
    }
    if is_differencing {
        header.found(offset + 60, DefectKind::ParentIgnored);
    }
    header
}

/// The disk's size in QEMU: the footer's size for the creators that write it and for the largest geometry, else the
/// product of the geometry, which may be a little smaller.
fn virtual_size(footer: &[u8]) -> u64 {
    let byte = |at: usize| u64::from(footer[at]);
    let by_geometry = u64::from(be16(footer, 56).unwrap_or(0)) * byte(58) * byte(59);
    if SIZE_BY_FOOTER.contains(&&footer[28..32]) || by_geometry == MAX_GEOMETRY_SECTORS {
        be64(footer, 48).unwrap_or(0) / 512 * 512
    } else {
        by_geometry * 512
    }
}

/// The complement of the sum of all bytes but those of the checksum.
fn checksum(footer: &[u8]) -> u32 {
    let others = footer[..64].iter().chain(&footer[68..]);
    !others.map(|byte| u32::from(*byte)).sum::<u32>()
}

/// Checks the place and the size of the block allocation table, from the dynamic header at `at`, and its first entries.
fn check_table<R: ReadAt + ?Sized>(
    header: &mut UncheckedHeader,
    window: &mut Window<'_, R>,
    bytes: &[u8],
    at: u64,
) {
    let image_length = window.image_length();
    let (table, offset) = ("block allocation table", be64(bytes, 16).unwrap_or(0));
    let entries = u64::from(be32(bytes, 28).unwrap_or(0));
    let block_size = u64::from(be32(bytes, 32).unwrap_or(0));
    if block_size < 512 || !block_size.is_power_of_two() {
        let kind = DefectKind::UnitSize {
            part: "block size",
            bytes: block_size,
            expected: "a power of two of at least 512",
        };
        return header.found(at + 32, kind);
    }
    let size = header.virtual_size.unwrap_or(0);
    let (needed, most) = (size.div_ceil(block_size), MAX_BYTES / block_size);
    let bytes = entries * ENTRY_BYTES;
    let end = offset.saturating_add(bytes);
    if entries > most {
        let maximum = most * ENTRY_BYTES;
        let kind = DefectKind::TableTooLarge {
            table,
            bytes,
            maximum,
        };
        header.found(at + 28, kind);
    } else if entries < needed {
        let kind = DefectKind::TableTooSmall {
            table,
            found: entries,
            needed,
        };
        header.found(at + 28, kind);
    } else if end > MAX_OFFSET {
        let kind = DefectKind::TableOverflows {
            table,
            offset,
            bytes,
        };
        header.found(at + 16, kind);
    } else if let Some(length) = image_length
        && end.next_multiple_of(512) > length
    {
        let kind = DefectKind::TableEndsImage {
            table,
            offset,
            bytes,
            length,
        };
        header.found(at + 16, kind);
    } else {
        check_blocks(header, window, offset, bytes.min(TABLE_READ), block_size);
    }
}

/// Checks that the blocks of a table of `length` bytes at `offset` are in the file.
fn check_blocks<R: ReadAt + ?Sized>(
    header: &mut UncheckedHeader,
    window: &mut Window<'_, R>,
    offset: u64,
    length: u64,
    block_size: u64,
) {
    let bytes = match window.fetch(offset, length as usize) {
        Ok(bytes) => bytes,
        Err(error) => return header.unreadable(offset, "block allocation table", &error),
    };
    let Some(length) = window.image_length() else {
        return;
    };
    // Each block follows the bitmap of its sectors.
    let block_bytes = (block_size / 4096).next_multiple_of(512) + block_size;
    let entries = (offset..).step_by(ENTRY_BYTES as usize);
    for (at, entry) in entries.zip(bytes.chunks_exact(ENTRY_BYTES as usize)) {
        let sector = be32(entry, 0).unwrap_or(UNALLOCATED);
        let block = u64::from(sector) * 512;
        if sector != UNALLOCATED && block + block_bytes > length {
            let kind = DefectKind::TableEndsImage {
                table: "block",
                offset: block,
                bytes: block_bytes,
                length,
            };
            return header.found(at, kind);
        }
    }
}

fn read_dynamic<R: ReadAt + ?Sized>(
    header: &mut UncheckedHeader,
    window: &mut Window<'_, R>,
    offset: u64,
    is_differencing: bool,
) {
    let bytes = match window.fetch(offset, DYNAMIC_LENGTH) {
        Ok(bytes) => bytes,
        Err(error) => return header.unreadable(offset, "dynamic disk header", &error),
    };
    if !has(&bytes, 0, DYNAMIC_MAGIC) {
        let part = "dynamic disk header";
        return header.found(offset, DefectKind::Signature { part });
    }
    let Some(bytes) = header.whole(&bytes, offset, DYNAMIC_LENGTH) else {
        return;
    };
    header.cluster_size = be32(bytes, 32).map(u64::from);
    check_table(header, window, bytes, offset);
    if is_differencing {
        let units = bytes[64..576]
            .chunks_exact(2)
            .map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
        let name = utf16(units);
        header.backing_file =
            (!name.is_empty()).then(|| BackingReference::from_bytes(name.as_bytes()));
    }
}
