//! Damaged headers: what this crate says QEMU refuses, against what the real QEMU refuses.
//!
//! Each field of a sound image is set to values around its bounds. Then both must be of one mind.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests make files and start qemu-img, stop at a failure and say what they skip"
)]

mod support;

use std::path::Path;

use support::image::{self, Image};
use support::qemu;
use vmdisk_image::{DefectKind, Effect, Header};

/// A field, by its place and width in bytes.
#[derive(Clone, Copy)]
struct Field(usize, usize);

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Big,
    Little,
}

fn set(image: &Image, Field(at, width): Field, order: Order, value: u64) -> Image {
    let bytes = value.to_be_bytes();
    let mut bytes = bytes[8 - width..].to_vec();
    if order == Order::Little {
        bytes.reverse();
    }
    image.clone().put(at, &bytes)
}

/// Whether QEMU, in the guise of `qemu-img info`, should refuse: system emulators refuse some more.
fn refused_by_qemu_img(header: &Header) -> bool {
    header.defects().iter().any(|defect| {
        let only_emulators = matches!(
            defect.kind,
            // qemu-img opens this one to convert it.
            DefectKind::LegacyEncryption
                // And `info` opens no data file in the newer versions.
                | DefectKind::DataFileMissing
        );
        defect.effect() == Effect::Refused && !only_emulators
    })
}

fn crashes(header: &Header) -> bool {
    header
        .defects()
        .iter()
        .any(|defect| defect.kind == DefectKind::EncryptionHeaderMissing)
}

/// Compares for one image, and says how they differ.
fn compare(directory: &Path, format: &str, what: &str, image: &Image) -> Option<String> {
    let file = "damaged.img";
    std::fs::write(directory.join(file), &image.0).unwrap();
    let header = image.header();
    if header.format().qemu_name() != Some(format) {
        // A signature or version that makes it another format, which the driver refuses.
        return qemu::opens(directory, format, file)
            .is_ok()
            .then(|| format!("{what}: QEMU opens it"));
    }
    let opened = qemu::opens(directory, format, file);
    match (refused_by_qemu_img(&header), opened) {
        // `qemu-img info` 7.2 does not check before it uses the header, and crashes without a word.
        _ if crashes(&header) => None,
        (true, Ok(_)) => Some(format!(
            "{what}: QEMU opens it, we say {:?}",
            header.defects()
        )),
        // QEMU read the header as a block table whose entries point anywhere. Entries are not read here.
        (false, Err(error)) if error.contains("free_data_block_offset") => {
            let noticed = header
                .defects()
                .iter()
                .any(|defect| defect.effect() == Effect::Damaged);
            (!noticed).then(|| format!("{what}: QEMU says {error}, and we notice nothing"))
        }
        (false, Err(error)) => Some(format!(
            "{what}: QEMU says {error}, we say {:?}",
            header.defects()
        )),
        (true, Err(_)) => None,
        (false, Ok(info)) => {
            let size = info["virtual-size"].as_u64();
            (size != header.virtual_size()).then(|| {
                format!(
                    "{what}: QEMU sees {size:?} bytes, we {:?}",
                    header.virtual_size()
                )
            })
        }
    }
}

fn sweep(
    directory: &Path,
    format: &str,
    order: Order,
    sound: &Image,
    fields: &[Field],
    values: &[u64],
) {
    let mut differences = Vec::new();
    let mut refused = 0;
    let mut compared = 0;
    for field in fields {
        for value in values {
            let width = field.1 as u32;
            if width < 8 && *value >= 1 << (8 * width) {
                continue;
            }
            let damaged = set(sound, *field, order, *value);
            let what = format!("{format}, {value:#x} at {}", field.0);
            differences.extend(compare(directory, format, &what, &damaged));
            refused += u32::from(refused_by_qemu_img(&damaged.header()));
            compared += 1;
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {compared}:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(
        refused > 0 && refused < compared,
        "{refused} of {compared} refused: the test sees one side only"
    );
}

const VALUES: &[u64] = &[
    0,
    1,
    2,
    3,
    4,
    6,
    7,
    8,
    9,
    13,
    14,
    16,
    17,
    21,
    22,
    63,
    64,
    72,
    103,
    104,
    105,
    112,
    120,
    511,
    512,
    513,
    1023,
    1024,
    4096,
    65535,
    65536,
    65537,
    131_072,
    196_608,
    262_144,
    1 << 20,
    1 << 21,
    1 << 24,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 32,
    1 << 40,
    1 << 56,
    (1 << 62) + 512,
];

fn image_of(directory: &Path, format: &str, options: &str) -> Image {
    qemu::create(directory, format, options, &["sound.img", "4M"]);
    Image(std::fs::read(directory.join("sound.img")).unwrap())
}

#[test]
fn qcow2_refuses_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let fields = [
        Field(4, 4),
        Field(8, 8),
        Field(20, 4),
        Field(24, 8),
        Field(32, 4),
        Field(36, 4),
        Field(40, 8),
        Field(48, 8),
        Field(56, 4),
        Field(64, 8),
        Field(72, 8),
        Field(80, 8),
        Field(96, 4),
        Field(100, 4),
        Field(104, 1),
    ];
    sweep(
        directory,
        "qcow2",
        Order::Big,
        &image::qcow2_v3(),
        &fields,
        VALUES,
    );
    sweep(
        directory,
        "qcow2",
        Order::Big,
        &image::qcow2_v2(),
        &fields[..10],
        VALUES,
    );
}

#[test]
fn qcow2_extensions_refuse_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    // Lengths of every extension, one by one; data that is long enough for most.
    let data = [0u8; 32];
    for id in [
        0xe279_2aca_u32,
        0x4441_5441,
        0x6803_f857,
        0x0537_be77,
        0x2385_2875,
        0x1234_5678,
    ] {
        let sound = image::with_extensions(image::qcow2_v3(), &[(id, &data[..24])]);
        let differences: Vec<String> = VALUES
            .iter()
            .filter(|value| **value <= 0xffff_ffff)
            .filter_map(|value| {
                let damaged = set(&sound, Field(116, 4), Order::Big, *value);
                compare(
                    directory,
                    "qcow2",
                    &format!("extension {id:#x} of length {value}"),
                    &damaged,
                )
            })
            .collect();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
    // The bitmaps extension, believed because its feature bit says so.
    let mut bitmaps = [0u8; 24];
    bitmaps[3] = 1;
    bitmaps[15] = 32;
    bitmaps[21] = 2;
    let sound = image::with_extensions(image::qcow2_v3(), &[(0x2385_2875, &bitmaps)]).be64(88, 1);
    // A directory of one bitmap: its table at the L1 table's place, its name `b`.
    let sound = sound.be64(0x2_0000, 0x3_0000).be32(0x2_0008, 1);
    let fields = [Field(120, 4), Field(124, 4), Field(136, 8)];
    for field in fields {
        for value in [0u64, 4, 512, 65535, 65536, 65537, 0x7fff_ffff, 1 << 40] {
            if field.1 == 4 && value > 0xffff_ffff {
                continue;
            }
            let damaged = set(&sound, field, Order::Big, value);
            let refused = refused_by_qemu_img(&damaged.header());
            std::fs::write(directory.join("damaged.img"), &damaged.0).unwrap();
            let opened = qemu::opens(directory, "qcow2", "damaged.img");
            // What we refuse, QEMU refuses; it goes on to read the directory and refuses more.
            assert!(
                !refused || opened.is_err(),
                "{value:#x} at {}: {:?}",
                field.0,
                damaged.header().defects()
            );
        }
    }
}

#[test]
fn qcow2_backing_names_refuse_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let sound = image::with_backing(image::qcow2_v3(), b"base.img");
    let fields = [Field(8, 8), Field(16, 4)];
    sweep(directory, "qcow2", Order::Big, &sound, &fields, VALUES);
    // A name that just fits, and does not, at the end of the first cluster.
    let mut differences = Vec::new();
    for offset in [
        65536 - 1024u64,
        65536 - 1023,
        65536 - 9,
        65536 - 8,
        65536 - 7,
        65535,
        65536,
    ] {
        for length in [1u64, 8, 9, 1022, 1023, 1024] {
            let damaged = image::qcow2_v3().be64(8, offset).be32(16, length as u32);
            let damaged = damaged.put(offset as usize, &vec![b'x'; length as usize]);
            let what = format!("backing name of {length} at {offset}");
            differences.extend(compare(directory, "qcow2", &what, &damaged));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn qcow_and_qed_refuse_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let qcow = image_of(directory, "qcow", "");
    let fields = [
        Field(4, 4),
        Field(24, 8),
        Field(32, 1),
        Field(33, 1),
        Field(36, 4),
    ];
    sweep(directory, "qcow", Order::Big, &qcow, &fields, VALUES);
    let qed = image_of(directory, "qed", "");
    let fields = [
        Field(4, 4),
        Field(8, 4),
        Field(16, 8),
        Field(24, 8),
        Field(32, 8),
        Field(40, 8),
        Field(48, 8),
    ];
    sweep(directory, "qed", Order::Little, &qed, &fields, VALUES);
}

#[test]
fn vdi_and_parallels_refuse_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let vdi = image_of(directory, "vdi", "");
    let fields = [
        Field(68, 4),
        Field(76, 4),
        Field(340, 4),
        Field(344, 4),
        Field(360, 4),
        Field(368, 8),
        Field(376, 4),
        Field(384, 4),
        Field(424, 4),
        Field(440, 4),
    ];
    sweep(directory, "vdi", Order::Little, &vdi, &fields, VALUES);
    let parallels = image_of(directory, "parallels", "");
    let fields = [
        Field(16, 4),
        Field(28, 4),
        Field(32, 4),
        Field(36, 8),
        Field(44, 4),
        Field(48, 4),
    ];
    sweep(
        directory,
        "parallels",
        Order::Little,
        &parallels,
        &fields,
        VALUES,
    );
}

#[test]
fn vpc_refuses_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    // The footer's fields, with its checksum put right after, and wrong once.
    let vpc = image_of(directory, "vpc", "");
    let mut differences = Vec::new();
    let mut refused = 0;
    for field in [
        Field(16, 8),
        Field(28, 4),
        Field(40, 8),
        Field(48, 8),
        Field(56, 2),
        Field(58, 1),
        Field(60, 4),
    ] {
        for value in VALUES
            .iter()
            .filter(|value| field.1 == 8 || **value < 1 << (8 * field.1))
        {
            let damaged = set(&vpc, field, Order::Big, *value).be32(64, 0);
            let sum: u32 = damaged.0[..512].iter().map(|byte| u32::from(*byte)).sum();
            let damaged = damaged.be32(64, !sum);
            let what = format!("vpc, {value:#x} at {}", field.0);
            differences.extend(compare(directory, "vpc", &what, &damaged));
            refused += u32::from(refused_by_qemu_img(&damaged.header()));
        }
    }
    for creator in [
        b"win ", b"qem2", b"d2v ", b"tap\0", b"CTXS", b"vpc ", b"vs  ", b"WIN ",
    ] {
        let damaged = vpc.clone().put(28, creator).be64(48, 4 << 20).be32(64, 0);
        let sum: u32 = damaged.0[..512].iter().map(|byte| u32::from(*byte)).sum();
        let what = format!("vpc by {}", String::from_utf8_lossy(creator));
        differences.extend(compare(directory, "vpc", &what, &damaged.be32(64, !sum)));
    }
    differences.extend(compare(
        directory,
        "vpc",
        "vpc, wrong checksum",
        &vpc.clone().be32(64, 7),
    ));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(refused > 10, "{refused}");
    let fields = [
        Field(512, 8),
        Field(528, 8),
        Field(540, 4),
        Field(544, 4),
        Field(548, 4),
    ];
    sweep(directory, "vpc", Order::Big, &vpc, &fields, VALUES);
}

#[test]
fn vmdk_refuses_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let vmdk = image_of(directory, "vmdk", "");
    let fields = [
        Field(4, 4),
        Field(12, 8),
        Field(20, 8),
        Field(44, 4),
        Field(56, 8),
        Field(64, 8),
        Field(77, 2),
    ];
    sweep(directory, "vmdk", Order::Little, &vmdk, &fields, VALUES);
    qemu::create(
        directory,
        "vmdk",
        "subformat=monolithicFlat",
        &["flat.vmdk", "4M"],
    );
    let sound = std::fs::read_to_string(directory.join("flat.vmdk")).unwrap();
    let damaged = [
        ("monolithicFlat", "monolithicSparse"),
        ("monolithicFlat", "twoGbMaxExtentFlat"),
        ("monolithicFlat", "vmfs"),
        ("monolithicFlat", "fullDevice"),
        ("monolithicFlat", "custom"),
        ("createType", "create"),
        ("createType=\"monolithicFlat\"", "createType=monolithicFlat"),
        ("RW 8192", "RDONLY 8192"),
        ("RW 8192", "rw 8192"),
        ("RW 8192", "RW 0"),
        ("RW 8192", "RW -1"),
        ("RW 8192", "  RW   8192  "),
        ("FLAT \"flat-flat.vmdk\" 0", "FLAT \"flat-flat.vmdk\""),
        ("FLAT \"flat-flat.vmdk\" 0", "VMFS \"flat-flat.vmdk\""),
        ("FLAT \"flat-flat.vmdk\" 0", "VMFS \"flat-flat.vmdk\" 0"),
        ("FLAT \"flat-flat.vmdk\" 0", "FLAT flat-flat.vmdk 0"),
        ("FLAT \"flat-flat.vmdk\" 0", "ZERO"),
        ("FLAT \"flat-flat.vmdk\" 0", "FLAT \"flat-flat.vmdk\" -1"),
        ("version=1", "version=2"),
        ("version=1", "version=3"),
        ("CID=", "CID=xyz"),
    ];
    let mut differences = Vec::new();
    for (from, to) in damaged {
        assert!(sound.contains(from), "{sound}");
        let image = Image(sound.replace(from, to).into_bytes());
        differences.extend(compare(
            directory,
            "vmdk",
            &format!("{from} -> {to}"),
            &image,
        ));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn vhdx_refuses_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let vhdx = image_of(directory, "vhdx", "block_size=1M");
    // Headers and the region table are under a checksum: whatever changes in one makes it invalid.
    let mut differences = Vec::new();
    for (what, places) in [
        ("first header", &[0x1_0010][..]),
        ("second header", &[0x2_0010]),
        ("both headers", &[0x1_0010, 0x2_0010]),
        ("region table", &[0x3_0018]),
        ("signature of the first header", &[0x1_0000]),
        ("signatures of both headers", &[0x1_0000, 0x2_0000]),
        ("signature of the region table", &[0x3_0000]),
    ] {
        let mut damaged = vhdx.clone();
        for place in places {
            damaged.0[*place] ^= 0x55;
        }
        differences.extend(compare(directory, "vhdx", what, &damaged));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // The metadata is not.
    let base = (1 << 20..vhdx.0.len())
        .step_by(1 << 20)
        .find(|at| vhdx.0[*at..].starts_with(b"metadata"))
        .unwrap();
    let mut fields = vec![Field(base + 10, 2)];
    for entry in 0..5 {
        let at = base + 32 + entry * 32;
        fields.extend([Field(at, 4), Field(at + 24, 4)]);
        let item = base + u32::from_le_bytes(vhdx.0[at + 16..at + 20].try_into().unwrap()) as usize;
        fields.push(Field(item, 4));
    }
    sweep(directory, "vhdx", Order::Little, &vhdx, &fields, VALUES);
}

#[test]
fn luks_refuses_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    qemu::create_encrypted(
        directory,
        "luks",
        "key-secret=key,iter-time=10",
        &["sound.img", "4M"],
    );
    let luks = Image(std::fs::read(directory.join("sound.img")).unwrap());
    let fields = [
        Field(6, 2),
        Field(8, 4),
        Field(40, 4),
        Field(72, 4),
        Field(104, 4),
        Field(108, 4),
        Field(208, 4),
        Field(248, 4),
        Field(252, 4),
        Field(212, 4),
    ];
    // Beyond this, QEMU's sum of 32 bits wraps and it lets a key slot reach over everything.
    let values: Vec<u64> = VALUES
        .iter()
        .copied()
        .filter(|value| *value <= 0x8000_0000)
        .collect();
    sweep(directory, "luks", Order::Big, &luks, &fields, &values);
}
