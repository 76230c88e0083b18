//! qcow2 headers made byte by byte, also those that qemu-img does not make.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

use crate::support::image::{
    BACKING_FORMAT, CLUSTER, DATA_FILE, Image, qcow2_v2, qcow2_v3, with_backing, with_extensions,
};
use vmdisk_image::{BackingReference, ImageFormat, Qcow2Compression, Qcow2Encryption};

#[test]
fn the_fields_of_either_version_are_read() {
    for (image, version) in [(qcow2_v2(), 2), (qcow2_v3(), 3)] {
        let header = image.be32(60, 3).qcow2();
        assert_eq!(header.version, version);
        assert_eq!(header.virtual_size, 1 << 30);
        assert_eq!(header.cluster_size(), Some(CLUSTER));
        assert_eq!((header.snapshots, header.refcount_order), (3, 4));
        assert_eq!(header.encryption, Qcow2Encryption::None);
        assert_eq!(header.compression, Qcow2Compression::Zlib);
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
fn every_feature_bit_has_its_name() {
    let with = |at, bit: u32| qcow2_v3().be64(at, 1 << bit).qcow2();
    let incompatible = [0, 1, 2, 4].map(|bit| {
        let it = with(72, bit).incompatible;
        (
            it.dirty(),
            it.corrupt(),
            it.external_data_file(),
            it.extended_l2(),
        )
    });
    let only = [
        (true, false, false, false),
        (false, true, false, false),
        (false, false, true, false),
        (false, false, false, true),
    ];
    assert_eq!(incompatible, only);
    assert!(with(80, 0).compatible.lazy_refcounts() && !with(80, 1).compatible.lazy_refcounts());
    let autoclear = [0, 1].map(|bit| with(88, bit).autoclear);
    assert_eq!(autoclear.map(|it| it.bitmaps()), [true, false]);
    assert_eq!(autoclear.map(|it| it.raw_external_data()), [false, true]);
}

#[test]
fn a_header_with_cluster_sizes_that_qemu_refuses_has_no_names() {
    for bits in [0, 8, 22, 63, 64, u32::MAX] {
        let header = with_backing(qcow2_v3(), b"base.img").be32(20, bits).qcow2();
        assert_eq!((header.cluster_size(), header.backing_file), (None, None));
        assert_eq!(header.virtual_size, 1 << 30);
    }
    let odd = qcow2_v3().be64(24, (1 << 30) - 1).header();
    assert_eq!(
        odd.virtual_size(),
        Some((1 << 30) - 512),
        "rounded as in QEMU"
    );
}

#[test]
fn an_unknown_version_is_qcow2_that_qemu_does_not_probe() {
    for version in [0, 4] {
        let header = with_backing(qcow2_v3(), b"base.img")
            .be32(4, version)
            .header();
        assert_eq!(header.format(), ImageFormat::Qcow2);
        assert!(header.backing().is_none());
    }
    let header = qcow2_v3().be32(4, 0).header();
    assert_eq!(header.probed_by_qemu(), ImageFormat::Raw);
}

#[test]
fn compression_and_encryption_are_those_of_their_fields() {
    let compression = |image: Image| image.qcow2().compression;
    assert_eq!(
        compression(qcow2_v3().put(104, &[1])),
        Qcow2Compression::Zstd
    );
    assert_eq!(
        compression(qcow2_v3().put(104, &[7])),
        Qcow2Compression::Unknown(7)
    );
    // A header of 104 bytes has no compression type, whatever follows it.
    let short = qcow2_v3().be32(100, 104).put(104, &[1]);
    assert_eq!(compression(short), Qcow2Compression::Zlib);
    let methods = [
        (1, Qcow2Encryption::Aes),
        (2, Qcow2Encryption::Luks),
        (3, Qcow2Encryption::Unknown(3)),
    ];
    for (field, method) in methods {
        let image = qcow2_v3().be32(32, field);
        assert_eq!(image.qcow2().encryption, method);
        assert!(image.header().is_encrypted());
    }
}

#[test]
fn extensions_name_the_format_and_the_data_file() {
    let named: [(u32, &[u8]); 3] = [
        (0x1234_5678, b"unknown"),
        (BACKING_FORMAT, b"raw\0x"),
        (DATA_FILE, b"data.raw"),
    ];
    for image in [qcow2_v2(), qcow2_v3()] {
        let header = with_extensions(image, &named).qcow2();
        assert_eq!(header.backing_format, Some("raw".into()));
        let data_file = BackingReference::from_bytes(b"data.raw");
        assert_eq!(header.data_file, Some(data_file));
    }
    let long = [
        (BACKING_FORMAT, &b"sixteen letters!"[..]),
        (DATA_FILE, b"d"),
    ];
    let header = with_extensions(qcow2_v3(), &long).qcow2();
    assert_eq!(header.backing_format, None, "QEMU refuses it");
    assert!(header.data_file.is_some());
}

#[test]
fn the_list_of_extensions_ends_at_the_backing_file_name_and_at_an_overrun() {
    let (first, second) = ((BACKING_FORMAT, &b"raw"[..]), (DATA_FILE, &b"data"[..]));
    let image = with_extensions(qcow2_v3(), &[first, second]);
    assert!(image.qcow2().data_file.is_some());
    // The second begins behind the eight bytes and the padded text of the first.
    let ends = |at: u64| image.clone().be64(8, at).be32(16, 4).qcow2();
    assert_eq!(ends(112 + 16).data_file, None);
    assert_eq!(ends(112 + 16).backing_format, Some("raw".into()));
    assert_eq!(
        ends(112 + 16 + 8 + 4).data_file,
        Some(BackingReference::from_bytes(b"data"))
    );
    let overrun = image.clone().be32(112 + 4, u32::MAX).qcow2();
    assert_eq!((overrun.backing_format, overrun.data_file), (None, None));
    let within_fields = image.be32(100, 96).qcow2();
    assert_eq!(within_fields.backing_format, None);
    let many: Vec<(u32, &[u8])> = (0..64).map(|index| (0x1000 + index, &b""[..])).collect();
    let with_last = |before: &[(u32, &'static [u8])]| {
        with_extensions(qcow2_v3(), &[before, &[second]].concat()).qcow2()
    };
    assert!(with_last(&many[..63]).data_file.is_some());
    assert_eq!(with_last(&many).data_file, None);
}

#[test]
fn a_backing_name_ends_at_a_nul_and_at_the_cluster() {
    let name = |image: Image| image.qcow2().backing_file.map(|it| it.to_string());
    assert_eq!(
        name(with_backing(qcow2_v3(), b"../base\0.img")).unwrap(),
        "../base"
    );
    assert_eq!(name(with_backing(qcow2_v3(), b"\0x")), None);
    let long = name(with_backing(qcow2_v3(), &[b'x'; 2000])).unwrap();
    assert_eq!(long.len(), 1023);
    let at = |offset: u64| {
        let image = qcow2_v3().be64(8, offset).be32(16, 8);
        name(image.put(CLUSTER as usize - 4, b"base.img"))
    };
    assert_eq!(
        at(CLUSTER - 4).unwrap(),
        "base",
        "QEMU reads no other cluster"
    );
    assert_eq!(at(CLUSTER + 1), None);
}

#[test]
fn a_cut_image_has_the_fields_that_are_there() {
    for length in [8, 28, 60, 103] {
        let header = with_backing(qcow2_v3(), b"base.img").cut(length).qcow2();
        assert_eq!(header.version, 3);
        assert_eq!(header.backing_file, None);
    }
    assert_eq!(qcow2_v3().cut(60).qcow2().virtual_size, 1 << 30);
}
