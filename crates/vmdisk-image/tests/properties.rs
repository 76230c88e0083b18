//! What holds for any bytes: no panic, bounded reads, and the same answer for the same image.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

use crate::support::fuzz::fuzz_probe;
use crate::support::image::{
    BACKING_FORMAT, DATA_FILE, Image, qcow2_v2, qcow2_v3, with_backing, with_extensions,
};
use crate::support::microsoft::{vhdx, vpc_footer};
use proptest::prelude::*;
use vmdisk_image::BackingReference;

/// Sound images of every format, of which mutations are made.
fn sound() -> Vec<Vec<u8>> {
    let full = with_extensions(
        qcow2_v3().be32(32, 2).be64(72, 0b1_0111).be64(88, 3),
        &[
            (BACKING_FORMAT, b"qcow2"),
            (DATA_FILE, b"data.raw"),
            (7, b"unknown"),
        ],
    );
    let vmdk = "# Disk DescriptorFile\nversion=1\nCID=1234abcd\nparentCID=ffffffff\nparentFileNameHint=\"base.vmdk\"\n\
                createType=\"monolithicFlat\"\nRW 8192 FLAT \"flat.vmdk\" 0\n";
    vec![
        qcow2_v2().0,
        qcow2_v3().0,
        with_backing(full, b"json:{\"driver\":\"raw\"}").0,
        qcow2_v3()
            .be32(4, 1)
            .be64(24, 1 << 20)
            .put(32, &[12, 9])
            .be64(8, 100)
            .be32(16, 4)
            .put(100, b"base")
            .cut(4096)
            .0,
        Image::zeros(4096)
            .put(0, b"QED\0\0\0\x01\0\x04\0\0\0\x01\0\0\0\x01")
            .0,
        Image::zeros(2048)
            .put(0, b"KDMV")
            .le32(4, 1)
            .le64(12, 2048)
            .le64(20, 128)
            .le64(28, 1)
            .le64(36, 2)
            .put(512, vmdk.as_bytes())
            .0,
        vmdk.as_bytes().to_vec(),
        Image::zeros(1024)
            .put(64, &[0x7f, 0x10, 0xda, 0xbe])
            .le32(68, 0x1_0001)
            .0,
        vpc_footer(2, 4 << 20, u64::MAX).0,
        vhdx().0,
        Image::zeros(4096)
            .put(0, b"LUKS\xba\xbe\0\x01aes")
            .put(40, b"xts-plain64")
            .be32(104, 4096)
            .0,
        Image::zeros(4096).put(0, b"LUKS\xba\xbe\0\x02").0,
        Image::zeros(4096).put(0, b"WithouFreSpacExt").le32(16, 2).0,
        Image::zeros(80_000)
            .put(510, &[0x55, 0xaa])
            .put(0x438, &[0x53, 0xef])
            .0,
    ]
}

const SIGNATURES: &[&[u8]] = &[
    b"",
    b"QFI\xfb\0\0\0\x01",
    b"QFI\xfb\0\0\0\x02",
    b"QFI\xfb\0\0\0\x03",
    b"QED\0",
    b"KDMV",
    b"COWD",
    b"version=1\n",
    b"conectix",
    b"vhdxfile",
    b"LUKS\xba\xbe\0\x01",
    b"LUKS\xba\xbe\0\x02",
    b"WithoutFreeSpace",
    b"WithouFreSpacExt",
];

proptest! {
    #[test]
    fn any_bytes_behind_any_signature_are_read_within_bounds(
        signature in prop::sample::select(SIGNATURES),
        bytes in prop::collection::vec(any::<u8>(), 0..6000),
    ) {
        fuzz_probe(&[signature, &bytes].concat());
    }

    #[test]
    fn a_sound_image_with_some_bytes_changed_is_read_within_bounds(
        image in prop::sample::select(sound()),
        changes in prop::collection::vec((0usize..4096, prop::sample::select(&[0u8, 1, 2, 9, 16, 0x7f, 0x80, 0xff][..])), 0..24),
        far_changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut image = image;
        for (at, value) in changes {
            // The first bytes hold most of the fields.
            let at = if at % 2 == 0 { at % 160 } else { at };
            if let Some(byte) = image.get_mut(at) {
                *byte = value;
            }
        }
        for (at, value) in far_changes {
            let at = at.index(image.len());
            image[at] = value;
        }
        if let Some(cut) = cut {
            image.truncate(cut.index(image.len()));
        }
        fuzz_probe(&image);
    }

    #[test]
    fn the_fields_of_a_qcow2_are_read_as_written(
        cluster_bits in 9u32..=21,
        size in any::<u64>(),
        snapshots in any::<u32>(),
        features in any::<[u64; 3]>(),
        order in any::<u32>(),
    ) {
        let image = qcow2_v3()
            .be32(20, cluster_bits).be64(24, size)
            .be32(60, snapshots)
            .be64(72, features[0]).be64(80, features[1]).be64(88, features[2])
            .be32(96, order);
        let header = image.qcow2();
        prop_assert_eq!(header.cluster_size(), Some(1 << cluster_bits));
        prop_assert_eq!(header.virtual_size, size);
        prop_assert_eq!(header.snapshots, snapshots);
        prop_assert_eq!(header.incompatible.bits, features[0]);
        prop_assert_eq!(header.compatible.bits, features[1]);
        prop_assert_eq!(header.autoclear.bits, features[2]);
        prop_assert_eq!(header.refcount_order, order);
    }

    #[test]
    fn every_name_is_kept_and_shown_without_control_characters(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let reference = BackingReference::from_bytes(&bytes);
        prop_assert_eq!(reference.name().as_bytes(), &bytes);
        let shown = reference.to_string();
        prop_assert!(!shown.contains(char::is_control), "{:?}", shown);
        let kept = with_backing(qcow2_v3(), &bytes).qcow2().backing_file;
        let opened: Vec<u8> = bytes.iter().copied().take_while(|byte| *byte != 0).collect();
        prop_assert_eq!(kept.map(|kept| kept.name().as_bytes().to_vec()).unwrap_or_default(), opened);
    }
}
