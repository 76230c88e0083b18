//! Checks of a qcow2 header: QEMU's, and further ones of the specification.

use super::backing::BackingPlace;
use super::header::{
    FeatureClass, Qcow2Compression, Qcow2Encryption, Qcow2Header, V2_LENGTH, V3_LENGTH,
};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;

/// QEMU's `QCOW_MAX_L1_SIZE`: 32 MiB.
const MAX_L1_BYTES: u64 = 32 << 20;
/// QEMU's `QCOW_MAX_REFTABLE_SIZE`: 8 MiB.
const MAX_REFCOUNT_TABLE_BYTES: u64 = 8 << 20;
/// QEMU's `QCOW_MAX_SNAPSHOTS`.
const MAX_SNAPSHOTS: u64 = 65536;
/// The minimum size of a snapshot table entry, without its names and extra data.
const SNAPSHOT_ENTRY_BYTES: u64 = 40;
/// Size of an entry of the L1 table and the reference count table.
const ENTRY_BYTES: u64 = 8;

/// A table, for [`table`].
struct Checked {
    name: &'static str,
    offset: u64,
    bytes: u64,
    maximum: u64,
}

/// Checks the fixed fields.
pub(super) fn fields(header: &mut Qcow2Header, image_length: Option<u64>) {
    let mut defects = Vec::new();
    let mut found = |offset, kind| defects.push(Defect::at(offset, kind));
    if header.incompatible.dirty() {
        found(72, DefectKind::Dirty);
    }
    if header.incompatible.corrupt() {
        found(72, DefectKind::Corrupt);
    }
    match header.encryption {
        Qcow2Encryption::None | Qcow2Encryption::Luks => {}
        Qcow2Encryption::Aes => found(32, DefectKind::LegacyEncryption),
        Qcow2Encryption::Unknown(method) => {
            found(32, DefectKind::UnknownEncryption { found: method })
        }
    }
    let bit = header.incompatible.compression_type();
    match header.compression {
        Qcow2Compression::Zlib if bit => found(72, DefectKind::CompressionBit { found: 0, bit }),
        Qcow2Compression::Zstd if !bit => found(104, DefectKind::CompressionBit { found: 1, bit }),
        Qcow2Compression::Zlib | Qcow2Compression::Zstd => {}
        Qcow2Compression::Unknown(kind) => {
            found(104, DefectKind::UnknownCompression { found: kind })
        }
    }
    let (order, size, length) = (
        header.refcount_order,
        header.virtual_size,
        header.header_length,
    );
    if order > 6 {
        found(96, DefectKind::RefcountOrder { order });
    }
    if !size.is_multiple_of(512) {
        found(24, DefectKind::VirtualSizeUnaligned { size });
    }
    if header.version >= 3 && !length.is_multiple_of(8) {
        found(100, DefectKind::HeaderLengthUnaligned { found: length });
    }
    if header.autoclear.raw_external_data() && !header.incompatible.external_data_file() {
        found(88, DefectKind::RawDataFileMissing);
    }
    let bits = header.cluster_bits;
    match header.cluster_size() {
        // Without a valid cluster size the tables cannot be checked.
        None => found(20, DefectKind::ClusterBits { bits }),
        Some(cluster_size) => {
            lengths(header, cluster_size, &mut found);
            tables(header, cluster_size, image_length, &mut found);
        }
    }
    header.defects.append(&mut defects);
}

/// Checks the fields that depend on the cluster size.
fn lengths(header: &Qcow2Header, cluster_size: u64, found: &mut impl FnMut(u64, DefectKind)) {
    let minimum = if header.version == 2 {
        V2_LENGTH
    } else {
        V3_LENGTH
    };
    if header.header_length < minimum || u64::from(header.header_length) > cluster_size {
        let kind = DefectKind::HeaderLength {
            found: header.header_length,
            minimum,
            maximum: cluster_size,
        };
        found(100, kind);
    }
    let bits = header.cluster_bits;
    if header.incompatible.extended_l2() && bits < 14 {
        found(20, DefectKind::ClusterTooSmallForExtendedL2 { bits });
    }
}

fn tables(
    header: &Qcow2Header,
    cluster_size: u64,
    image_length: Option<u64>,
    found: &mut impl FnMut(u64, DefectKind),
) {
    if header.refcount_table.entries == 0 {
        let table = "reference count table";
        found(56, DefectKind::TableMissing { table });
    }
    let (l1, refcounts, snapshots) = (header.l1_table, header.refcount_table, header.snapshots);
    for (name, field, one, entry_bytes, maximum) in [
        ("L1 table", 40, l1, ENTRY_BYTES, MAX_L1_BYTES),
        (
            "reference count table",
            48,
            refcounts,
            cluster_size,
            MAX_REFCOUNT_TABLE_BYTES,
        ),
        (
            "snapshot table",
            64,
            snapshots,
            SNAPSHOT_ENTRY_BYTES,
            MAX_SNAPSHOTS * SNAPSHOT_ENTRY_BYTES,
        ),
    ] {
        let one = Checked {
            name,
            offset: one.offset,
            bytes: u64::from(one.entries) * entry_bytes,
            maximum,
        };
        let mut found = |kind| found(field, kind);
        table(&one, cluster_size, image_length, &mut found);
    }
    let Some(needed) = header.l1_entries_needed() else {
        return;
    };
    let (size, entries) = (header.virtual_size, u64::from(l1.entries));
    // QEMU stores the number of L1 entries in a C int.
    if needed > i32::MAX as u64 {
        found(24, DefectKind::VirtualSizeTooLarge { size });
    } else if entries < needed {
        let kind = DefectKind::TableTooSmall {
            table: "L1 table",
            found: entries,
            needed,
        };
        found(36, kind);
    }
}

fn table(
    one: &Checked,
    cluster_size: u64,
    image_length: Option<u64>,
    found: &mut impl FnMut(DefectKind),
) {
    let Checked {
        name: table,
        offset,
        bytes,
        maximum,
    } = *one;
    if bytes > maximum {
        found(DefectKind::TableTooLarge {
            table,
            bytes,
            maximum,
        });
    }
    if !offset.is_multiple_of(cluster_size) {
        found(DefectKind::TableUnaligned {
            table,
            offset,
            alignment: cluster_size,
        });
    }
    // QEMU uses signed 64-bit offsets.
    let end = u128::from(offset) + u128::from(bytes);
    if end > i64::MAX as u128 {
        found(DefectKind::TableOverflows {
            table,
            offset,
            bytes,
        });
    } else if bytes > 0 {
        if offset < cluster_size {
            found(DefectKind::TableOverHeader { table, offset });
        }
        if let Some(length) = image_length
            && end > u128::from(length)
        {
            found(DefectKind::TableBeyondEnd {
                table,
                offset,
                bytes,
                length,
            });
        }
    }
}

/// Checks the location of the backing file name.
pub(super) fn backing_place(header: &mut Qcow2Header, place: BackingPlace, cluster_size: u64) {
    let (offset, end) = (place.offset, u64::from(header.header_length));
    if offset == 0 {
        return;
    }
    let mut found = |offset, kind| header.defects.push(Defect::at(offset, kind));
    if offset > cluster_size {
        found(8, DefectKind::BackingNameOutsideHeader { offset });
    } else if offset < end {
        found(8, DefectKind::BackingNameOverHeader { offset, end });
    }
    let (length, maximum) = (u64::from(place.length), place.room(cluster_size));
    if offset <= cluster_size && length > maximum {
        found(16, DefectKind::BackingNameTooLong { length, maximum });
    }
}

/// Checks the fields against the extensions.
pub(super) fn extensions(header: &mut Qcow2Header) {
    let mut defects = Vec::new();
    let mut found = |offset, kind| defects.push(Defect::at(offset, kind));
    let unknown = header.incompatible.unknown();
    if unknown != 0 {
        let mut named: Vec<_> = header
            .feature_names
            .iter()
            .filter(|feature| {
                feature.class == FeatureClass::Incompatible && unknown >> feature.bit & 1 == 1
            })
            .collect();
        named.sort_by_key(|feature| feature.bit);
        let names: Vec<Name> = named
            .into_iter()
            .map(|feature| feature.name.clone())
            .collect();
        let bits = unknown;
        found(72, DefectKind::UnknownIncompatibleFeatures { bits, names });
    }
    let external = header.incompatible.external_data_file();
    match (&header.data_file, external) {
        (None, true) => found(72, DefectKind::DataFileMissing),
        (Some(_), false) => found(72, DefectKind::DataFileUnused),
        (Some(_), true) | (None, false) => {}
    }
    if external && header.autoclear.raw_external_data() && header.backing_file.is_some() {
        found(88, DefectKind::BackingAndRawDataFile);
    }
    if header.encryption == Qcow2Encryption::Luks && header.encryption_header.is_none() {
        found(32, DefectKind::EncryptionHeaderMissing);
    }
    header.defects.append(&mut defects);
}
