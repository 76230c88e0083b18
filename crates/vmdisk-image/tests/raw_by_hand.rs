//! Raw images made byte by byte: what a guest may have put there.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

use crate::support::counting::Counting;
use crate::support::image::Image;
use vmdisk_image::{
    DefectKind, Header, MbrPartition, MdMetadata, PartitionTable, RAW_READ, RawContent, RawGuess,
    SignatureKind, probe,
};

fn guess(image: &Image) -> RawGuess {
    let Header::Raw(guess) = image.header() else {
        panic!("not raw")
    };
    guess
}

fn kinds(image: &Image) -> Vec<SignatureKind> {
    guess(image)
        .signatures
        .iter()
        .map(|signature| signature.kind)
        .collect()
}

const MIB: usize = 1 << 20;

#[test]
fn empty_zeroed_and_used_images_are_distinguished() {
    let empty = guess(&Image(Vec::new()));
    assert_eq!(
        (empty.content, empty.looked_at, empty.length),
        (RawContent::Empty, 0, Some(0))
    );
    let zeros = guess(&Image::zeros(MIB));
    assert_eq!(
        (zeros.content, zeros.looked_at),
        (RawContent::Zero, RAW_READ as u64)
    );
    assert_eq!(zeros.signatures, []);
    let data = guess(&Image::zeros(MIB).put(RAW_READ - 1, &[1]));
    assert_eq!(data.content, RawContent::Data);
    // What lies farther away is not seen, and not claimed either.
    let far = guess(&Image::zeros(MIB).put(RAW_READ, &[1]));
    assert_eq!(
        (far.content, far.looked_at),
        (RawContent::Zero, RAW_READ as u64)
    );
    let one = guess(&Image(vec![0]));
    assert_eq!((one.content, one.looked_at), (RawContent::Zero, 1));
}

#[test]
fn partition_tables_are_read() {
    let entry = |kind: u8, first: u32, count: u32, boot: u8| {
        let mut entry = [boot, 0, 0, 0, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        entry[8..12].copy_from_slice(&first.to_le_bytes());
        entry[12..].copy_from_slice(&count.to_le_bytes());
        entry
    };
    let boot = Image::zeros(MIB).put(510, &[0x55, 0xaa]);
    let mbr = boot
        .clone()
        .put(446, &entry(0x83, 2048, 1000, 0x80))
        .put(478, &entry(0x82, 63, 9, 0));
    let partitions = vec![
        MbrPartition {
            kind: 0x83,
            bootable: true,
            first_sector: 2048,
            sectors: 1000,
        },
        MbrPartition {
            kind: 0x82,
            bootable: false,
            first_sector: 63,
            sectors: 9,
        },
    ];
    assert_eq!(
        guess(&mbr).partition_table,
        Some(PartitionTable::Mbr { partitions })
    );
    assert_eq!(
        guess(&boot).partition_table,
        Some(PartitionTable::Mbr { partitions: vec![] })
    );
    // Code in the place of the entries.
    assert_eq!(
        guess(&boot.clone().put(446, &[0xeb; 64])).partition_table,
        None
    );
    let protective = boot.put(446, &entry(0xee, 1, u32::MAX, 0));
    assert_eq!(
        guess(&protective).partition_table,
        Some(PartitionTable::ProtectiveMbrOnly)
    );
    for sector_size in [512, 4096] {
        let gpt = protective.clone().put(sector_size, b"EFI PART");
        let sector_size = sector_size as u32;
        assert_eq!(
            guess(&gpt).partition_table,
            Some(PartitionTable::Gpt { sector_size })
        );
    }
}

#[test]
fn file_systems_are_known_by_their_signatures() {
    let places: [(usize, &[u8], SignatureKind); 24] = [
        (0, b"XFSB", SignatureKind::Xfs),
        (0, b"hsqs", SignatureKind::Squashfs),
        (3, b"NTFS    ", SignatureKind::Ntfs),
        (3, b"EXFAT   ", SignatureKind::ExFat),
        (3, b"ReFS\0\0\0\0", SignatureKind::ReFs),
        (3, b"-FVE-FS-", SignatureKind::BitLocker),
        (32, b"NXSB", SignatureKind::Apfs),
        (1024, &[0x10, 0x20, 0xf5, 0xf2], SignatureKind::F2fs),
        (1024, &[0xe2, 0xe1, 0xf5, 0xe0], SignatureKind::Erofs),
        (1024, b"H+\0\x04", SignatureKind::HfsPlus),
        (0x8001, b"CD001", SignatureKind::Iso9660),
        (0x9001, b"NSR02", SignatureKind::Udf),
        (0x1_0040, b"_BHRfS_M", SignatureKind::Btrfs),
        (0x1_0034, b"ReIsEr2Fs", SignatureKind::ReiserFs),
        (0x1_0000, &[1, 0x16, 0x19, 0x70], SignatureKind::Gfs2),
        (0x2000, b"OCFSV2", SignatureKind::Ocfs2),
        (0x8000, b"JFS1", SignatureKind::Jfs),
        (4086, b"SWAPSPACE2", SignatureKind::Swap { page_size: 4096 }),
        (
            65526,
            b"SWAPSPACE2",
            SignatureKind::Swap { page_size: 65536 },
        ),
        (0, b"bluestore block device\n", SignatureKind::BlueStore),
        (0, &[0x1f, 0x8b, 8], SignatureKind::Gzip),
        (0, b"\xfd7zXZ\0", SignatureKind::Xz),
        (0, &[0x28, 0xb5, 0x2f, 0xfd], SignatureKind::Zstd),
        (257, b"ustar", SignatureKind::Tar),
    ];
    for (at, magic, kind) in places {
        let image = Image::zeros(MIB).put(at, magic);
        assert_eq!(kinds(&image), [kind], "{kind:?}");
        assert_eq!(guess(&image).file_system().is_some(), kind.is_file_system());
        assert_eq!(guess(&image).signatures[0].offset, at as u64);
    }
    assert_eq!(
        kinds(&Image::zeros(MIB).put(0, b"BZh91AY&SY")),
        [SignatureKind::Bzip2]
    );
}

#[test]
fn the_version_of_ext_follows_from_its_features() {
    let ext = Image::zeros(MIB).put(0x438, &[0x53, 0xef]);
    assert_eq!(kinds(&ext), [SignatureKind::Ext { version: 2 }]);
    let ext3 = ext.le32(0x45c, 0x3c).le32(0x460, 2).le32(0x464, 3);
    assert_eq!(kinds(&ext3), [SignatureKind::Ext { version: 3 }]);
    assert_eq!(
        kinds(&ext3.le32(0x460, 0x2c2)),
        [SignatureKind::Ext { version: 4 }]
    );
}

#[test]
fn fat_is_not_a_partition_table() {
    let fat = Image::zeros(MIB)
        .put(0, &[0xeb, 0x3c, 0x90])
        .le16(11, 512)
        .put(82, b"FAT32   ")
        .put(510, &[0x55, 0xaa]);
    assert_eq!(kinds(&fat), [SignatureKind::Fat]);
    assert_eq!(guess(&fat).partition_table, None);
    // The text alone is not a file system.
    assert_eq!(kinds(&Image::zeros(MIB).put(82, b"FAT32   ")), []);
}

#[test]
fn volume_managers_and_raid_are_known_wherever_they_keep_their_metadata() {
    for sector in 0..4 {
        let at = sector * 512;
        let image = Image::zeros(MIB)
            .put(at, b"LABELONE")
            .put(at + 24, b"LVM2 001");
        assert_eq!(kinds(&image), [SignatureKind::Lvm2]);
    }
    assert_eq!(kinds(&Image::zeros(MIB).put(512, b"LABELONE")), []);
    let superblock = [0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0];
    let length = 10 * MIB + 5 * 512;
    let places = [
        (0, MdMetadata::V1_1),
        (4096, MdMetadata::V1_2),
        // 8 KiB before the end, down to a multiple of 4 KiB.
        ((length - 8192) / 4096 * 4096, MdMetadata::V1_0),
    ];
    for (at, metadata) in places {
        let image = Image::zeros(length).put(at, &superblock);
        assert_eq!(kinds(&image), [SignatureKind::Md { metadata }]);
        assert_eq!(guess(&image).signatures[0].offset, at as u64);
    }
    for magic in [0xa92b_4efc_u32.to_le_bytes(), 0xa92b_4efc_u32.to_be_bytes()] {
        for length in [
            10 * MIB,
            10 * MIB + 512,
            10 * MIB + 5 * 4096,
            11 * MIB - 512,
        ] {
            let image = Image::zeros(length).put(length / 65536 * 65536 - 65536, &magic);
            assert_eq!(
                kinds(&image),
                [SignatureKind::Md {
                    metadata: MdMetadata::V0_90
                }]
            );
        }
    }
}

#[test]
fn several_signatures_are_reported_in_order() {
    let image = Image::zeros(MIB)
        .put(0x1_0040, b"_BHRfS_M")
        .put(0x438, &[0x53, 0xef])
        .put(512, b"LABELONE")
        .put(536, b"LVM2 001");
    assert_eq!(
        kinds(&image),
        [
            SignatureKind::Lvm2,
            SignatureKind::Ext { version: 2 },
            SignatureKind::Btrfs
        ]
    );
}

#[test]
fn the_end_is_not_read_if_the_length_is_unknown() {
    let image = Image::zeros(MIB).put(MIB - 8192, &[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]);
    let mut input = Counting::new(image.0.as_slice());
    input.tell_length = false;
    let Header::Raw(guess) = probe(&mut input).unwrap() else {
        panic!()
    };
    assert_eq!((guess.signatures, guess.length), (vec![], None));
    assert_eq!(input.farthest, RAW_READ as u64);
}

#[test]
fn an_unreadable_part_is_a_defect_and_the_rest_is_read() {
    let image = Image::zeros(MIB).put(0, b"XFSB");
    for from in [4096, RAW_READ as u64] {
        let mut input = Counting::new(image.0.as_slice());
        input.fails_from = Some(from);
        let Header::Raw(guess) = probe(&mut input).unwrap() else {
            panic!()
        };
        assert_eq!(guess.signatures[0].kind, SignatureKind::Xfs);
        assert!(matches!(
            guess.defects[0].kind,
            DefectKind::Unreadable { .. }
        ));
        assert_eq!(guess.looked_at, from);
    }
    let mut input = Counting::new(image.0.as_slice());
    input.fails_from = Some(0);
    let error = probe(&mut input).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read 4096 bytes at offset 0: input/output error"
    );
}
