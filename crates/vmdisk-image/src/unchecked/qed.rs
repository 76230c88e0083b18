//! The header of QED, a format QEMU keeps for old images.
//!
//! The layout is QEMU's `docs/interop/qed_spec`, the checks follow `block/qed.c`. All fields are little endian.

use super::UncheckedHeader;
use crate::bytes::{le32, le64};
use crate::defect::DefectKind;
use crate::format::ImageFormat;
use crate::read::{ReadAt, Window};

pub(crate) const MAGIC: &[u8] = b"QED\0";

const LENGTH: usize = 64;
const FEATURE_BACKING_FILE: u64 = 1;
const FEATURE_NEEDS_CHECK: u64 = 1 << 1;
const FEATURE_BACKING_IS_RAW: u64 = 1 << 2;
const KNOWN_FEATURES: u64 = 0b111;
/// The cluster sizes that QEMU supports: powers of two from 4 KiB to 64 MiB.
const CLUSTER_SIZES: std::ops::RangeInclusive<u32> = 4096..=64 << 20;
/// The sizes of tables that QEMU supports, in clusters. It documents 1, but refuses every offset of such a table.
const TABLE_CLUSTERS: [u32; 4] = [2, 4, 8, 16];
/// QEMU's `PATH_MAX`, with the NUL.
const MAX_NAME: u64 = 4095;

/// The fields that the checks need.
struct Fields {
    cluster_size: u32,
    table_clusters: u32,
    header_clusters: u32,
    features: u64,
    l1_offset: u64,
    size: u64,
    name_offset: u64,
    name_length: u64,
}

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Qed);
    let Some(bytes) = header.whole(window.head(), 0, LENGTH) else {
        return header;
    };
    let word = |at| le32(bytes, at).unwrap_or(0);
    let long = |at| le64(bytes, at).unwrap_or(0);
    let fields = Fields {
        cluster_size: word(4),
        table_clusters: word(8),
        header_clusters: word(12),
        features: long(16),
        l1_offset: long(40),
        size: long(48),
        name_offset: u64::from(word(56)),
        name_length: u64::from(word(60)),
    };
    header.virtual_size = Some(fields.size);
    header.cluster_size = Some(u64::from(fields.cluster_size));
    check(&mut header, &fields, window.image_length());
    if fields.features & FEATURE_BACKING_FILE != 0 {
        header.backing_is_raw = fields.features & FEATURE_BACKING_IS_RAW != 0;
        // Like in QEMU, in 32 bits.
        let end = u64::from(fields.cluster_size.wrapping_mul(fields.header_clusters));
        let room = end.saturating_sub(fields.name_offset);
        if fields.name_length > room.min(MAX_NAME) {
            let kind = DefectKind::BackingNameTooLong {
                length: fields.name_length,
                maximum: room.min(MAX_NAME),
            };
            header.found(60, kind);
        }
        header.read_backing_name(window, fields.name_offset, fields.name_length.min(room));
    }
    header
}

fn check(header: &mut UncheckedHeader, fields: &Fields, image_length: Option<u64>) {
    let unknown = fields.features & !KNOWN_FEATURES;
    if unknown != 0 {
        let kind = DefectKind::UnknownIncompatibleFeatures {
            bits: unknown,
            names: Vec::new(),
        };
        header.found(16, kind);
    }
    if fields.features & FEATURE_NEEDS_CHECK != 0 {
        header.found(16, DefectKind::Dirty);
    }
    let cluster_size = u64::from(fields.cluster_size);
    if !CLUSTER_SIZES.contains(&fields.cluster_size) || !cluster_size.is_power_of_two() {
        let kind = DefectKind::UnitSize {
            part: "cluster size",
            bytes: cluster_size,
            expected: "a power of two from 4 KiB to 64 MiB",
        };
        return header.found(4, kind);
    }
    if !TABLE_CLUSTERS.contains(&fields.table_clusters) {
        let (field, expected) = ("number of clusters of a table", "not 2, 4, 8 or 16");
        let found = u64::from(fields.table_clusters);
        let kind = DefectKind::Field {
            field,
            found,
            expected,
        };
        return header.found(8, kind);
    }
    let table_bytes = cluster_size * u64::from(fields.table_clusters);
    let entries = table_bytes / 8;
    let size = fields.size;
    // Like in QEMU, whose product of the largest clusters and tables wraps.
    let maximum = (entries * cluster_size).wrapping_mul(entries);
    if !size.is_multiple_of(512) {
        let (field, expected) = ("virtual size", "not a multiple of 512");
        let kind = DefectKind::Field {
            field,
            found: size,
            expected,
        };
        header.found(48, kind);
    } else if size > maximum {
        header.found(48, DefectKind::VirtualSizeTooLarge { size });
    }
    l1_table(header, fields, table_bytes, image_length);
}

fn l1_table(header: &mut UncheckedHeader, fields: &Fields, bytes: u64, image_length: Option<u64>) {
    let (table, offset) = ("L1 table", fields.l1_offset);
    let cluster_size = u64::from(fields.cluster_size);
    let first = u64::from(fields.header_clusters) * cluster_size;
    let last = offset.checked_add(bytes - cluster_size);
    if !offset.is_multiple_of(cluster_size) {
        let kind = DefectKind::TableUnaligned {
            table,
            offset,
            alignment: cluster_size,
        };
        header.found(40, kind);
    } else if offset < first {
        let (one, other) = ("L1 table", "header");
        header.found(40, DefectKind::Overlap { one, other });
    } else if let Some(length) = image_length
        // QEMU rounds the length down to whole clusters.
        && last.is_none_or(|last| last >= length / cluster_size * cluster_size)
    {
        let kind = DefectKind::TableEndsImage {
            table,
            offset,
            bytes,
            length,
        };
        header.found(40, kind);
    }
}
