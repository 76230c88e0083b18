//! qcow2 headers made byte by byte: what is read, and each defect with its place.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

use crate::support::image::{CLUSTER, Image, qcow2_v2, qcow2_v3, with_backing, with_extensions};
use vmdisk_image::{
    BackingReference, Defect, DefectKind, Effect, Extension, ImageFormat, Qcow2Compression,
    Qcow2Encryption, Table,
};

/// The one defect of an image.
fn only(image: &Image) -> Defect {
    let header = image.header();
    assert_eq!(header.defects().len(), 1, "{:?}", header.defects());
    header.defects()[0].clone()
}

fn defect(offset: u64, kind: DefectKind) -> Defect {
    Defect { offset, kind }
}

#[test]
fn a_sound_image_of_either_version_has_no_defect() {
    for (image, version, header_length) in [(qcow2_v2(), 2, 72), (qcow2_v3(), 3, 112)] {
        let header = image.qcow2();
        assert_eq!(header.defects, []);
        assert_eq!(
            (header.version, header.header_length),
            (version, header_length)
        );
        assert_eq!(header.virtual_size, 1 << 30);
        assert_eq!(header.cluster_size(), Some(CLUSTER));
        assert_eq!(
            header.l1_table,
            Table {
                offset: 3 * CLUSTER,
                entries: 2
            }
        );
        assert_eq!(
            header.refcount_table,
            Table {
                offset: CLUSTER,
                entries: 1
            }
        );
        assert_eq!(
            header.snapshots,
            Table {
                offset: 0,
                entries: 0
            }
        );
        assert_eq!(header.refcount_order, 4);
        assert_eq!(header.encryption, Qcow2Encryption::None);
        assert_eq!(header.compression, Qcow2Compression::Zlib);
        assert_eq!(header.l1_entries_needed(), Some(2));
        assert_eq!(header.l2_entries_per_table(), Some(8192));
        assert_eq!(header.l2_bytes_for_whole_disk(), Some(128 << 10));
    }
}

#[test]
fn a_version_2_image_has_no_features_whatever_follows_its_header() {
    let header = qcow2_v2().be64(80, u64::MAX).be64(88, u64::MAX).qcow2();
    assert_eq!(header.incompatible.bits, 0);
    assert_eq!(header.compatible.bits, 0);
    assert_eq!(header.autoclear.bits, 0);
    assert_eq!(header.refcount_order, 4);
}

#[test]
fn every_feature_bit_has_its_name_and_the_others_are_unknown() {
    let image = qcow2_v3()
        .be64(72, 0b1_1111 | 1 << 40)
        .be64(80, 1 | 1 << 63)
        .be64(88, 0b11 | 1 << 7)
        .put(104, &[1]);
    let header = image.qcow2();
    let incompatible = header.incompatible;
    assert!(incompatible.dirty() && incompatible.corrupt() && incompatible.external_data_file());
    assert!(incompatible.compression_type() && incompatible.extended_l2());
    assert_eq!(incompatible.unknown(), 1 << 40);
    assert!(header.compatible.lazy_refcounts());
    assert_eq!(header.compatible.unknown(), 1 << 63);
    assert!(header.autoclear.bitmaps() && header.autoclear.raw_external_data());
    assert_eq!(header.autoclear.unknown(), 1 << 7);
    assert_eq!(header.compression, Qcow2Compression::Zstd);
    assert_eq!(header.l2_entry_size(), 16);
    assert_eq!(header.l2_bytes_for_whole_disk(), Some(256 << 10));
}

#[test]
fn sizes_out_of_bounds_are_defects_and_reading_goes_on() {
    for bits in [0, 8, 22, 63, 64, u32::MAX] {
        let image = with_backing(qcow2_v3(), b"base.img").be32(20, bits);
        assert_eq!(only(&image), defect(20, DefectKind::ClusterBits { bits }));
        assert_eq!(image.qcow2().cluster_size(), None);
        assert_eq!(image.qcow2().l2_bytes_for_whole_disk(), None);
        assert_eq!(image.qcow2().virtual_size, 1 << 30);
    }
    let small = qcow2_v3().be32(20, 13).be64(72, 1 << 4).be64(24, 1 << 20);
    assert_eq!(
        only(&small),
        defect(20, DefectKind::ClusterTooSmallForExtendedL2 { bits: 13 })
    );
    assert_eq!(
        only(&qcow2_v3().be32(96, 7)),
        defect(96, DefectKind::RefcountOrder { order: 7 })
    );
    let odd = qcow2_v3().be64(24, (1 << 30) - 1);
    assert_eq!(
        only(&odd),
        defect(
            24,
            DefectKind::VirtualSizeUnaligned {
                size: (1 << 30) - 1
            }
        )
    );
    assert_eq!(odd.header().virtual_size(), Some((1 << 30) - 512));
    let large = qcow2_v3().be64(24, u64::MAX - 511);
    assert_eq!(
        only(&large).kind,
        DefectKind::VirtualSizeTooLarge {
            size: u64::MAX - 511
        }
    );
}

#[test]
fn header_lengths_are_judged() {
    for (length, minimum, maximum) in [(0, 104, CLUSTER), (96, 104, CLUSTER), (65544, 104, CLUSTER)]
    {
        let found = only(&qcow2_v3().be32(100, length));
        assert_eq!(
            found,
            defect(
                100,
                DefectKind::HeaderLength {
                    found: length,
                    minimum,
                    maximum
                }
            )
        );
    }
    let odd = qcow2_v3().be32(100, 110);
    assert_eq!(
        only(&odd),
        defect(100, DefectKind::HeaderLengthUnaligned { found: 110 })
    );
    assert_eq!(only(&odd).effect(), Effect::Noted);
    // Unknown later fields are not extensions.
    let longer = qcow2_v3().be32(100, 256).put(112, &[0xff; 144]);
    assert_eq!(longer.qcow2().defects, []);
    // A header of 104 bytes has no compression type, whatever follows it.
    let shorter = qcow2_v3().be32(100, 104).put(104, &[0, 0, 0, 0]);
    assert_eq!(shorter.qcow2().compression, Qcow2Compression::Zlib);
}

#[test]
fn compression_and_its_bit_have_to_agree() {
    let zlib = qcow2_v3().be64(72, 1 << 3);
    assert_eq!(
        only(&zlib),
        defect(
            72,
            DefectKind::CompressionBit {
                found: 0,
                bit: true
            }
        )
    );
    let zstd = qcow2_v3().put(104, &[1]);
    assert_eq!(
        only(&zstd),
        defect(
            104,
            DefectKind::CompressionBit {
                found: 1,
                bit: false
            }
        )
    );
    let unknown = qcow2_v3().put(104, &[7]).be64(72, 1 << 3);
    assert_eq!(
        only(&unknown),
        defect(104, DefectKind::UnknownCompression { found: 7 })
    );
    assert_eq!(unknown.qcow2().compression, Qcow2Compression::Unknown(7));
    assert_eq!(
        DefectKind::CompressionBit {
            found: 1,
            bit: false
        }
        .to_string(),
        "compression type 1 lacks its feature bit"
    );
}

#[test]
fn encryption_is_judged() {
    let aes = qcow2_v3().be32(32, 1);
    assert_eq!(only(&aes), defect(32, DefectKind::LegacyEncryption));
    assert!(aes.header().is_encrypted());
    assert_eq!(
        only(&qcow2_v3().be32(32, 3)),
        defect(32, DefectKind::UnknownEncryption { found: 3 })
    );
    assert_eq!(
        only(&qcow2_v3().be32(32, 2)),
        defect(32, DefectKind::EncryptionHeaderMissing)
    );
    let unexpected = with_extensions(qcow2_v3(), &[(Extension::ENCRYPTION_HEADER, &[0; 16])]);
    assert_eq!(
        only(&unexpected),
        defect(112, DefectKind::EncryptionHeaderUnexpected)
    );
    let short = with_extensions(
        qcow2_v3().be32(32, 2),
        &[(Extension::ENCRYPTION_HEADER, &[0; 12])],
    );
    assert!(matches!(
        short.kinds()[0],
        DefectKind::ExtensionLength { length: 12, .. }
    ));
}

#[test]
fn tables_are_judged_by_size_alignment_and_place() {
    let l1 = "L1 table";
    let unaligned = qcow2_v3().be64(40, 3 * CLUSTER + 512);
    let kind = DefectKind::TableUnaligned {
        table: l1,
        offset: 3 * CLUSTER + 512,
        alignment: CLUSTER,
    };
    assert_eq!(only(&unaligned), defect(40, kind));
    let beyond = qcow2_v3().be64(40, 16 * CLUSTER);
    let kind = DefectKind::TableBeyondEnd {
        table: l1,
        offset: 16 * CLUSTER,
        bytes: 16,
        length: 4 * CLUSTER,
    };
    assert_eq!(only(&beyond), defect(40, kind));
    assert_eq!(only(&beyond).effect(), Effect::Damaged);
    let small = qcow2_v3().be32(36, 1);
    assert_eq!(
        only(&small),
        defect(
            36,
            DefectKind::TableTooSmall {
                table: l1,
                found: 1,
                needed: 2
            }
        )
    );
    let over = qcow2_v3().be64(40, 0);
    assert_eq!(
        only(&over),
        defect(
            40,
            DefectKind::TableOverHeader {
                table: l1,
                offset: 0
            }
        )
    );
    let huge = qcow2_v3().be32(36, u32::MAX);
    assert!(huge.kinds().iter().any(|kind| matches!(
        kind,
        DefectKind::TableTooLarge {
            table: "L1 table",
            ..
        }
    )));
    let missing = qcow2_v3().be32(56, 0);
    assert_eq!(
        only(&missing),
        defect(
            56,
            DefectKind::TableMissing {
                table: "reference count table"
            }
        )
    );
    let wraps = qcow2_v3().be64(48, u64::MAX - CLUSTER + 1);
    assert!(
        wraps
            .kinds()
            .iter()
            .any(|kind| matches!(kind, DefectKind::TableOverflows { .. }))
    );
    let snapshots = qcow2_v3().be32(60, 65537).be64(64, CLUSTER);
    assert!(
        snapshots
            .kinds()
            .iter()
            .any(|kind| matches!(kind, DefectKind::TableTooLarge { .. }))
    );
}

#[test]
fn a_cut_image_says_how_much_is_missing() {
    for (image, needed) in [(qcow2_v2(), 72), (qcow2_v3(), 104)] {
        for length in [4, 7, 8, 40, 71] {
            let cut = image.clone().cut(length);
            let header = cut.qcow2();
            // With the version gone, it reads as 0.
            if length >= 8 {
                let kind = DefectKind::TruncatedHeader {
                    needed,
                    found: length as u64,
                };
                assert_eq!(header.defects, [defect(length as u64, kind)]);
            } else {
                assert_eq!(
                    header.defects,
                    [defect(4, DefectKind::UnsupportedVersion { found: 0 })]
                );
            }
        }
    }
    // All fields, and nothing they point to.
    let cut = qcow2_v3().cut(112);
    assert_eq!(cut.header().format(), ImageFormat::Qcow2);
    assert_eq!(cut.kinds().len(), 2, "{:?}", cut.kinds());
    // The name is cut off.
    let cut = with_backing(qcow2_v3(), b"base.img").cut(0x804);
    assert_eq!(
        cut.qcow2().backing_file,
        Some(BackingReference::from_bytes(b"base"))
    );
    assert!(cut.kinds().contains(&DefectKind::TruncatedHeader {
        needed: 0x808,
        found: 0x804
    }));
}

#[test]
fn an_unknown_version_is_a_defect_and_other_fields_are_not_checked() {
    for version in [0, 4, u32::MAX] {
        let image = qcow2_v3().be32(4, version).be32(20, 99);
        assert_eq!(
            only(&image),
            defect(4, DefectKind::UnsupportedVersion { found: version })
        );
        let probed = if version == 0 {
            ImageFormat::Raw
        } else {
            ImageFormat::Qcow2
        };
        assert_eq!(image.header().probed_by_qemu(), probed);
    }
    assert_eq!(qcow2_v3().be32(4, 1).header().format(), ImageFormat::Qcow);
}

#[test]
fn the_size_of_the_l2_tables_never_overflows() {
    for bits in 9..=21 {
        let header = qcow2_v3().be32(20, bits).be64(24, u64::MAX).qcow2();
        assert!(header.l2_bytes_for_whole_disk().is_some());
    }
}
