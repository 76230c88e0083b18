//! The header of Parallels' expandable images, which libvirt calls ploop.
//!
//! The layout is QEMU's `docs/interop/parallels`, the bounds are those of `block/parallels.c`. Little endian.

use crate::bytes::{has, le32, le64};
use crate::defect::{Defect, DefectKind};

/// The old signature: offsets in the block table count sectors.
pub(crate) const MAGIC_OLD: &[u8] = b"WithoutFreeSpace";
/// The extended signature: offsets in the block table count clusters.
pub(crate) const MAGIC: &[u8] = b"WithouFreSpacExt";

const LENGTH: usize = 64;
const VERSION: u32 = 2;
const IN_USE: u32 = 0x746f_6e59;

/// What a Parallels header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParallelsHeader {
    /// Whether it is the extended form, with offsets in clusters and sizes of 64 bits.
    pub extended: bool,
    /// The version; QEMU opens 2 only.
    pub version: u32,
    /// The disk's size as the guest sees it, in sectors of 512 bytes.
    pub sectors: u64,
    /// The cluster size in sectors of 512 bytes.
    pub cluster_sectors: u32,
    /// Entries of the block table, which begins at byte 64.
    pub entries: u32,
    /// Where the data begins, in sectors; zero for right behind the block table.
    pub data_sector: u32,
    /// What is wrong, in the order it was found.
    pub defects: Vec<Defect>,
}

pub(crate) fn read(head: &[u8], image_length: Option<u64>) -> ParallelsHeader {
    let mut fields = [0; LENGTH];
    let have = head.len().min(LENGTH);
    fields[..have].copy_from_slice(&head[..have]);
    let word = |at| le32(&fields, at).unwrap_or(0);
    let extended = has(&fields, 0, MAGIC);
    let sectors = le64(&fields, 36).unwrap_or(0);
    let mut header = ParallelsHeader {
        extended,
        version: word(16),
        sectors: if extended {
            sectors
        } else {
            sectors & 0xffff_ffff
        },
        cluster_sectors: word(28),
        entries: word(32),
        data_sector: word(48),
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
    check(&mut header, word(44) == IN_USE, image_length);
    header
}

fn check(header: &mut ParallelsHeader, in_use: bool, image_length: Option<u64>) {
    let mut found = |offset, kind| header.defects.push(Defect::at(offset, kind));
    if header.version != VERSION {
        found(
            16,
            DefectKind::UnsupportedVersion {
                found: header.version,
            },
        );
    }
    let cluster = header.cluster_sectors;
    // QEMU's bound: 513 of the clusters must fit a C int.
    if cluster == 0 || cluster > i32::MAX as u32 / 513 {
        let expected = "not between 1 and 4186127";
        found(
            28,
            DefectKind::Field {
                field: "cluster size in sectors",
                found: u64::from(cluster),
                expected,
            },
        );
    }
    let entries = u64::from(header.entries);
    // QEMU reads header and table at once, with a length that is a C int.
    let maximum = i32::MAX as u64 - LENGTH as u64;
    if entries * 4 > maximum {
        found(
            32,
            DefectKind::TableTooLarge {
                table: "block table",
                bytes: entries * 4,
                maximum,
            },
        );
    }
    let needed = if cluster == 0 {
        0
    } else {
        header.sectors.div_ceil(u64::from(cluster))
    };
    if needed > entries {
        found(
            32,
            DefectKind::BlocksUnmapped {
                found: entries,
                needed,
            },
        );
    }
    // QEMU counts a disk's bytes in signed 64 bits.
    if header.sectors > i64::MAX as u64 / 512 {
        found(
            36,
            DefectKind::VirtualSizeTooLarge {
                size: header.sectors.saturating_mul(512),
            },
        );
    }
    if in_use {
        found(44, DefectKind::Dirty);
    }
    let bytes = entries * 4;
    if let Some(length) = image_length
        && LENGTH as u64 + bytes > length
    {
        let offset = LENGTH as u64;
        found(
            32,
            DefectKind::TableBeyondEnd {
                table: "block table",
                offset,
                bytes,
                length,
            },
        );
    }
}
