//! Header extensions and backing file names of qcow2 made byte by byte: what is read, and each defect with its place.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

use crate::support::image::{CLUSTER, Image, qcow2_v2, qcow2_v3, with_backing, with_extensions};
use vmdisk_image::{
    BackingReference, Defect, DefectKind, Effect, EncryptionHeader, Extension, FeatureClass, Name,
};

const BACKING_FORMAT: u32 = Extension::BACKING_FORMAT;
const DATA_FILE: u32 = Extension::DATA_FILE;

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
fn an_unknown_incompatible_feature_is_named_by_the_images_own_table() {
    let mut names = Vec::new();
    for (class, bit, name) in [
        (0u8, 41u8, &b"time travel"[..]),
        (1, 41, b"harmless"),
        (0, 40, b"warp\x1b[2J"),
    ] {
        let mut entry = vec![class, bit];
        entry.extend(name);
        entry.resize(48, 0);
        names.extend(entry);
    }
    let image =
        with_extensions(qcow2_v3(), &[(Extension::FEATURE_NAMES, &names)]).be64(72, 0b11 << 40);
    let header = image.qcow2();
    assert_eq!(header.feature_names.len(), 3);
    assert_eq!(header.feature_names[1].class, FeatureClass::Compatible);
    let found = only(&image);
    assert_eq!(found.offset, 72);
    assert_eq!(found.effect(), Effect::Refused);
    assert_eq!(
        found.to_string(),
        "unknown incompatible feature bits 0x30000000000 (warp\\x1b[2J, time travel) (at byte 72)"
    );
}

#[test]
fn extensions_are_read_and_unknown_ones_are_kept() {
    let mut pointer = [0; 16];
    pointer[5] = 4;
    pointer[14..].copy_from_slice(&592u16.to_be_bytes());
    let image = with_extensions(
        qcow2_v3().be32(32, 2),
        &[
            (BACKING_FORMAT, b"qcow2"),
            (0xdead_beef, b"seventeen bytes.."),
            (DATA_FILE, b"/srv/data.raw"),
            (Extension::ENCRYPTION_HEADER, &pointer),
            (0x0102_0304, b""),
        ],
    )
    .be64(72, 1 << 2);
    let header = image.qcow2();
    // The header is beyond the end of the image.
    let part = "LUKS header";
    let missing = defect(4 * CLUSTER, DefectKind::Signature { part });
    assert_eq!(header.defects, [missing]);
    let (needed, found) = (592, 591);
    assert_eq!(
        only(&image.clone().be16(206, 591)),
        defect(200, DefectKind::TruncatedHeader { needed, found })
    );
    assert_eq!(header.backing_format, Some(Name::from("qcow2")));
    assert_eq!(header.backing_file, None);
    assert_eq!(
        header.data_file,
        Some(BackingReference::from_bytes(b"/srv/data.raw"))
    );
    assert_eq!(
        header.encryption_header,
        Some(EncryptionHeader {
            offset: 4 * CLUSTER,
            length: 592
        })
    );
    let ids: Vec<(u32, u32, u64)> = header
        .extensions
        .iter()
        .map(|extension| (extension.id, extension.length, extension.offset))
        .collect();
    assert_eq!(
        ids,
        [
            (BACKING_FORMAT, 5, 120),
            (0xdead_beef, 17, 136),
            (DATA_FILE, 13, 168),
            (Extension::ENCRYPTION_HEADER, 16, 192),
            (0x0102_0304, 0, 216),
        ]
    );
    let known: Vec<bool> = header.extensions.iter().map(Extension::is_known).collect();
    assert_eq!(known, [true, false, true, true, false]);
}

#[test]
fn a_version_2_image_has_extensions_too() {
    let image = with_backing(
        with_extensions(qcow2_v2(), &[(BACKING_FORMAT, b"raw")]),
        b"base.img",
    );
    let header = image.qcow2();
    assert_eq!(header.defects, []);
    assert_eq!(header.backing_format, Some(Name::from("raw")));
    assert_eq!(
        header.backing_file,
        Some(BackingReference::Relative("base.img".into()))
    );
}

#[test]
fn the_list_of_extensions_ends_at_the_backing_file_name() {
    // Directly after the fields, without an end marker; the bytes after the name are not an extension.
    let image = qcow2_v3()
        .be64(8, 128)
        .be32(16, 8)
        .put(112, &[0xe2, 0x79, 0x2a, 0xca, 0, 0, 0, 3]);
    let image = image
        .put(120, b"raw")
        .put(128, b"base.img")
        .put(136, &[9; 64]);
    let header = image.qcow2();
    assert_eq!(header.defects, []);
    assert_eq!(header.backing_format, Some(Name::from("raw")));
    assert_eq!(header.extensions.len(), 1);
}

#[test]
fn a_backing_name_is_kept_byte_by_byte() {
    let names: [&[u8]; 5] = [
        b"../a,b:c.img",
        b"/srv/\xff\xfe",
        b"json:{\"driver\":\"raw\"}",
        b"nbd://host/export",
        b" spaced \n",
    ];
    for name in names {
        let header = with_backing(qcow2_v3(), name).qcow2();
        assert_eq!(header.defects, []);
        assert_eq!(header.backing_file.unwrap().name().as_bytes(), name);
    }
}

#[test]
fn a_nul_in_a_name_ends_it_where_qemu_ends_it_and_the_rest_is_reported() {
    let image = with_backing(qcow2_v3(), b"/etc/shadow\0.img");
    assert_eq!(
        image.qcow2().backing_file,
        Some(BackingReference::Absolute("/etc/shadow".into()))
    );
    let name = Name::from(&b"/etc/shadow\0.img"[..]);
    assert_eq!(
        only(&image),
        defect(
            0x800,
            DefectKind::NameWithNul {
                part: "backing file name",
                name
            }
        )
    );
}

#[test]
fn places_and_lengths_of_backing_names_are_judged() {
    let too_long = qcow2_v3()
        .be64(8, 0x800)
        .be32(16, 1024)
        .put(0x800, &[b'x'; 1024]);
    assert_eq!(
        only(&too_long),
        defect(
            16,
            DefectKind::BackingNameTooLong {
                length: 1024,
                maximum: 1023
            }
        )
    );
    assert_eq!(
        too_long
            .qcow2()
            .backing_file
            .unwrap()
            .name()
            .as_bytes()
            .len(),
        1023
    );
    let huge = qcow2_v3().be64(8, 0x800).be32(16, u32::MAX);
    assert!(huge.kinds().contains(&DefectKind::BackingNameTooLong {
        length: u64::from(u32::MAX),
        maximum: 1023
    }));
    let at_end = qcow2_v3()
        .be64(8, CLUSTER - 4)
        .be32(16, 5)
        .put(CLUSTER as usize - 4, b"abcd");
    assert_eq!(
        only(&at_end),
        defect(
            16,
            DefectKind::BackingNameTooLong {
                length: 5,
                maximum: 4
            }
        )
    );
    let outside = qcow2_v3().be64(8, CLUSTER + 1).be32(16, 5);
    assert_eq!(
        only(&outside),
        defect(
            8,
            DefectKind::BackingNameOutsideHeader {
                offset: CLUSTER + 1
            }
        )
    );
    assert_eq!(outside.qcow2().backing_file, None);
    let over = qcow2_v3().be64(8, 100).be32(16, 4);
    assert_eq!(
        over.kinds()[0],
        DefectKind::BackingNameOverHeader {
            offset: 100,
            end: 112
        }
    );
    let empty = qcow2_v3().be64(8, 0x800);
    assert_eq!(only(&empty), defect(16, DefectKind::BackingNameEmpty));
}

#[test]
fn extensions_that_break_their_rules_are_defects() {
    let overrun = qcow2_v3().be32(112, 0x1234).be32(116, 1 << 20);
    let kind = DefectKind::ExtensionOverrun {
        id: 0x1234,
        length: 1 << 20,
        room: CLUSTER - 120,
    };
    assert_eq!(only(&overrun), defect(112, kind));
    let long = with_extensions(qcow2_v3(), &[(BACKING_FORMAT, b"sixteen bytes !!")]);
    assert!(matches!(
        only(&long).kind,
        DefectKind::ExtensionLength {
            id: BACKING_FORMAT,
            length: 16,
            ..
        }
    ));
    let twice = with_extensions(
        qcow2_v3(),
        &[(BACKING_FORMAT, b"raw"), (BACKING_FORMAT, b"qcow2")],
    );
    assert_eq!(
        only(&twice),
        defect(128, DefectKind::ExtensionRepeated { id: BACKING_FORMAT })
    );
    assert_eq!(twice.qcow2().backing_format, Some(Name::from("qcow2")));
    let many: Vec<(u32, &[u8])> = (0..100).map(|index| (0x1000 + index, &b""[..])).collect();
    let many = with_extensions(qcow2_v3(), &many);
    assert_eq!(
        only(&many).kind,
        DefectKind::TooManyExtensions { limit: 64 }
    );
    assert_eq!(many.qcow2().extensions.len(), 64);
    for entry in [&[3u8, 0][..], &[0, 64], &[0, 1]] {
        let length = if entry == [0, 1] { 47 } else { 48 };
        let mut table = entry.to_vec();
        table.resize(length, 0);
        let image = with_extensions(qcow2_v3(), &[(Extension::FEATURE_NAMES, &table)]);
        assert_eq!(only(&image), defect(120, DefectKind::FeatureName));
    }
}

#[test]
fn data_files_and_their_bits_have_to_agree() {
    let named = with_extensions(qcow2_v3(), &[(DATA_FILE, b"data.raw")]);
    assert_eq!(only(&named), defect(72, DefectKind::DataFileUnused));
    assert_eq!(
        only(&qcow2_v3().be64(72, 1 << 2)),
        defect(72, DefectKind::DataFileMissing)
    );
    assert_eq!(
        only(&qcow2_v3().be64(88, 1 << 1)),
        defect(88, DefectKind::RawDataFileMissing)
    );
    let raw = with_backing(named.be64(72, 1 << 2).be64(88, 1 << 1), b"base.img");
    assert_eq!(only(&raw), defect(88, DefectKind::BackingAndRawDataFile));
    let header = raw.header();
    let files: Vec<String> = header.files().map(|(_, file)| file.to_string()).collect();
    assert_eq!(files, ["base.img", "data.raw"]);
    let empty = with_extensions(qcow2_v3(), &[(DATA_FILE, b"")]).be64(72, 1 << 2);
    assert_eq!(only(&empty).kind, DefectKind::DataFileMissing);
    let long = with_extensions(qcow2_v3(), &[(DATA_FILE, &[b'x'; 5000])]).be64(72, 1 << 2);
    let kind = DefectKind::NotRead {
        part: "data file name",
        length: 5000,
        limit: 4096,
    };
    assert_eq!(only(&long), defect(120, kind));
}

fn header_defects(image: &Image) -> Vec<Defect> {
    image.header().defects().to_vec()
}

#[test]
fn a_snapshot_with_too_much_extra_data_is_refused() {
    let table = 2 * CLUSTER as usize;
    let sound = qcow2_v3().be32(60, 2).be64(64, table as u64);
    // The first entry has 1024 bytes of extra data and names of 3 bytes; the second begins at the next multiple of 8.
    let sound = sound
        .put(table, &[0; 4096])
        .be16(table + 12, 1)
        .be16(table + 14, 2);
    let sound = sound.be32(table + 36, 1024);
    let second = table + 40 + 1024 + 8;
    assert_eq!(header_defects(&sound), []);
    let kind = DefectKind::SnapshotExtraData {
        index: 1,
        length: 1025,
        maximum: 1024,
    };
    let found = only(&sound.be32(second + 36, 1025));
    assert_eq!(found, defect(second as u64 + 36, kind));
    assert_eq!(found.effect(), Effect::Refused);
}
