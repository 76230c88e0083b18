//! The header of QED, a format QEMU keeps for old images.
//!
//! The layout is QEMU's `docs/interop/qed_spec`, the bounds are those of `block/qed.c`. All fields are little endian.

use crate::bytes::{le32, le64, until_nul};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

pub(crate) const MAGIC: &[u8] = b"QED\0";

const LENGTH: usize = 64;
/// QEMU's buffer for a backing file name holds 1024 bytes with its NUL.
const MAX_BACKING_NAME: u32 = 1023;
const FEATURE_BACKING_FILE: u64 = 1;
const FEATURE_NEED_CHECK: u64 = 1 << 1;
const FEATURE_BACKING_IS_RAW: u64 = 1 << 2;

/// What a QED header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QedHeader {
    /// The disk's size as the guest sees it, in bytes.
    pub virtual_size: u64,
    /// The cluster size in bytes.
    pub cluster_size: u32,
    /// The size of an L1 or L2 table in clusters.
    pub table_size: u32,
    /// The size of the header in clusters.
    pub header_size: u32,
    /// Features that must be known to open the image, as the field stands.
    pub features: u64,
    /// Features that may be ignored, as the field stands.
    pub compatible_features: u64,
    /// Features that a writer who does not know them clears, as the field stands.
    pub autoclear_features: u64,
    /// Where the L1 table begins, in bytes.
    pub l1_table_offset: u64,
    /// The backing file as QEMU would open it.
    pub backing_file: Option<BackingReference>,
    /// Whether the backing file is recorded to be raw; nothing else can be recorded, QEMU probes it otherwise.
    pub backing_is_raw: bool,
    /// What is wrong, in the order it was found.
    pub defects: Vec<Defect>,
}

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> QedHeader {
    let mut fields = [0; LENGTH];
    let have = window.head().len().min(LENGTH);
    fields[..have].copy_from_slice(&window.head()[..have]);
    let word = |at| le32(&fields, at).unwrap_or(0);
    let long = |at| le64(&fields, at).unwrap_or(0);
    let features = long(16);
    let mut header = QedHeader {
        virtual_size: long(48),
        cluster_size: word(4),
        table_size: word(8),
        header_size: word(12),
        features,
        compatible_features: long(24),
        autoclear_features: long(32),
        l1_table_offset: long(40),
        backing_file: None,
        backing_is_raw: features & FEATURE_BACKING_FILE != 0
            && features & FEATURE_BACKING_IS_RAW != 0,
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
    check(&mut header, window.image_length());
    if features & FEATURE_BACKING_FILE != 0 {
        read_backing_name(&mut header, window, word(56), word(60));
    }
    header
}

fn check(header: &mut QedHeader, image_length: Option<u64>) {
    let mut found = |offset, kind| header.defects.push(Defect::at(offset, kind));
    let known = FEATURE_BACKING_FILE | FEATURE_NEED_CHECK | FEATURE_BACKING_IS_RAW;
    let unknown = header.features & !known;
    if unknown != 0 {
        found(
            16,
            DefectKind::UnknownIncompatibleFeatures {
                bits: unknown,
                names: Vec::new(),
            },
        );
    }
    if header.features & FEATURE_NEED_CHECK != 0 {
        found(16, DefectKind::Dirty);
    }
    let cluster = header.cluster_size;
    let cluster_is_sound = cluster.is_power_of_two() && (4096..=64 << 20).contains(&cluster);
    if !cluster_is_sound {
        let kind = DefectKind::UnitSize {
            part: "cluster size",
            bytes: u64::from(cluster),
            expected: "a power of two from 4 KiB to 64 MiB",
        };
        found(4, kind);
    }
    let table_is_sound =
        header.table_size.is_power_of_two() && (2..=16).contains(&header.table_size);
    if !table_is_sound {
        let tables = u64::from(header.table_size);
        // The format allows 1, and QEMU's check of table offsets then takes the table for one that ends before it begins.
        let expected = "not a power of two from 2 to 16";
        found(
            8,
            DefectKind::Field {
                field: "table size in clusters",
                found: tables,
                expected,
            },
        );
    }
    if !header.virtual_size.is_multiple_of(512) {
        let expected = "no multiple of 512";
        found(
            48,
            DefectKind::Field {
                field: "virtual size",
                found: header.virtual_size,
                expected,
            },
        );
    }
    if !cluster_is_sound || !table_is_sound {
        return;
    }
    let cluster = u64::from(cluster);
    let entries = u64::from(header.table_size) * cluster / 8;
    if u128::from(header.virtual_size)
        > u128::from(entries) * u128::from(entries) * u128::from(cluster)
    {
        found(
            48,
            DefectKind::VirtualSizeTooLarge {
                size: header.virtual_size,
            },
        );
    }
    let (table, offset) = ("L1 table", header.l1_table_offset);
    if !offset.is_multiple_of(cluster) {
        found(
            40,
            DefectKind::TableUnaligned {
                table,
                offset,
                alignment: cluster,
            },
        );
    } else if offset < cluster * u64::from(header.header_size) {
        let expected = "within the header";
        found(
            40,
            DefectKind::Field {
                field: "offset of the L1 table",
                found: offset,
                expected,
            },
        );
    }
    let bytes = u64::from(header.table_size) * cluster;
    // QEMU leaves out a last cluster that is not whole.
    if let Some(length) = image_length
        && u128::from(offset) + u128::from(bytes) > u128::from(length / cluster * cluster)
    {
        found(
            40,
            DefectKind::TableEndsImage {
                table,
                offset,
                bytes,
                length,
            },
        );
    }
}

fn read_backing_name<R: ReadAt + ?Sized>(
    header: &mut QedHeader,
    window: &mut Window<'_, R>,
    offset: u32,
    length: u32,
) {
    let header_bytes = u64::from(header.cluster_size) * u64::from(header.header_size);
    let room = header_bytes
        .saturating_sub(u64::from(offset))
        .min(u64::from(MAX_BACKING_NAME));
    if u64::from(length) > room {
        let kind = DefectKind::BackingNameTooLong {
            length: u64::from(length),
            maximum: room,
        };
        header.defects.push(Defect::at(60, kind));
    }
    let part = "backing file name";
    match window.fetch(u64::from(offset), u64::from(length).min(room) as usize) {
        Ok(bytes) => {
            let opened = until_nul(&bytes);
            if opened.len() < bytes.len() {
                let kind = DefectKind::NameWithNul {
                    part,
                    name: Name::from(bytes.as_slice()),
                };
                header.defects.push(Defect::at(u64::from(offset), kind));
            }
            if opened.is_empty() {
                header
                    .defects
                    .push(Defect::at(60, DefectKind::BackingNameEmpty));
            } else {
                header.backing_file = Some(BackingReference::from_bytes(opened));
            }
        }
        Err(error) => header
            .defects
            .push(Defect::unreadable(u64::from(offset), part, &error)),
    }
}
