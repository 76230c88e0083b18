//! The header of qcow version 1, the predecessor of qcow2.
//!
//! The layout and the checks follow `block/qcow.c` of QEMU. All fields are big endian.

use super::UncheckedHeader;
use crate::bytes::{be32, be64};
use crate::defect::DefectKind;
use crate::format::ImageFormat;
use crate::read::{MAX_OFFSET, ReadAt, Window};

const LENGTH: usize = 48;
/// The cluster sizes that QEMU supports: 512 bytes to 64 KiB.
const CLUSTER_BITS: std::ops::RangeInclusive<u8> = 9..=16;
/// The only encryption method, the insecure AES scheme.
const AES: u32 = 1;
/// The numbers of entries of an L2 table that QEMU supports, as powers of two: 512 bytes to 64 KiB.
const L2_BITS: std::ops::RangeInclusive<u8> = 6..=13;
/// QEMU stores the bytes of the L1 table in a C int.
const MAX_L1_ENTRIES: u64 = i32::MAX as u64 / ENTRY_BYTES;
/// Size of an entry of the L1 table.
const ENTRY_BYTES: u64 = 8;

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Qcow);
    let Some(fields) = header.whole(window.head(), 0, LENGTH) else {
        return header;
    };
    let long = |at| be64(fields, at).unwrap_or(0);
    let (name_offset, name_length) = (long(8), be32(fields, 16).unwrap_or(0));
    let bits = fields[32];
    let method = be32(fields, 36).unwrap_or(0);
    header.virtual_size = Some(long(24) / 512 * 512);
    header.cluster_size = CLUSTER_BITS.contains(&bits).then(|| 1 << bits);
    header.is_encrypted = method != 0;
    match method {
        0 => {}
        AES => header.found(36, DefectKind::LegacyEncryption),
        found => header.found(36, DefectKind::UnknownEncryption { found }),
    }
    check(&mut header, fields, window.image_length());
    if name_offset != 0 {
        let (length, maximum) = (u64::from(name_length), super::MAX_BACKING_NAME);
        if length > maximum {
            header.found(16, DefectKind::BackingNameTooLong { length, maximum });
        }
        header.read_backing_name(window, name_offset, u64::from(name_length));
    }
    header
}

fn check(header: &mut UncheckedHeader, fields: &[u8], image_length: Option<u64>) {
    let (size, l1_offset) = (be64(fields, 24).unwrap_or(0), be64(fields, 40).unwrap_or(0));
    let (cluster_bits, l2_bits) = (fields[32], fields[33]);
    if size <= 1 {
        let (field, expected) = ("virtual size", "less than 2 bytes");
        let kind = DefectKind::Field {
            field,
            found: size,
            expected,
        };
        header.found(24, kind);
    }
    if !CLUSTER_BITS.contains(&cluster_bits) {
        let kind = DefectKind::Field {
            field: "exponent of the cluster size",
            found: u64::from(cluster_bits),
            expected: "not between 9 and 16",
        };
        return header.found(32, kind);
    }
    if !L2_BITS.contains(&l2_bits) {
        let kind = DefectKind::Field {
            field: "exponent of the number of L2 entries",
            found: u64::from(l2_bits),
            expected: "not between 6 and 13",
        };
        return header.found(33, kind);
    }
    let mapped = 1 << (cluster_bits + l2_bits);
    let entries = size.div_ceil(mapped);
    if size > u64::MAX - mapped || entries > MAX_L1_ENTRIES {
        return header.found(24, DefectKind::VirtualSizeTooLarge { size });
    }
    let (table, offset, bytes) = ("L1 table", l1_offset, entries * ENTRY_BYTES);
    let end = offset.saturating_add(bytes);
    if end > MAX_OFFSET {
        let kind = DefectKind::TableOverflows {
            table,
            offset,
            bytes,
        };
        header.found(40, kind);
    } else if let Some(length) = image_length
        && end > length
    {
        let kind = DefectKind::TableBeyondEnd {
            table,
            offset,
            bytes,
            length,
        };
        header.found(40, kind);
    }
}
