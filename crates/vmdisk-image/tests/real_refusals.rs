//! Damaged headers of other formats than qcow2: what this crate says QEMU refuses, against what the real QEMU refuses.
//!
//! Each field of a sound image is set to values around its bounds. Then both must be of one mind.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests make files and start qemu-img, stop at a failure and say what they skip"
)]

use crate::support::image::Image;
use crate::support::qemu;
use crate::support::refusal::{FEW, Field, Order, VALUES, compare, image_of, set, sweep};

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
    sweep(directory, "vmdk", Order::Little, &vmdk, &fields, FEW);
    // Grain directories of 16 Mi to 64 Mi entries, around QEMU's limit, and offsets up to the largest possible file.
    let (sizes, offsets) = ([Field(12, 8)], [Field(48, 8), Field(56, 8)]);
    let around = (38..43).map(|bits| 1 << bits);
    let values: Vec<u64> = around.flat_map(|it| [it, it + 1]).collect();
    sweep(directory, "vmdk", Order::Little, &vmdk, &sizes, &values);
    let around = [
        0,
        1,
        1 << 20,
        (1 << 54) - (1 << 21) - 1,
        (1 << 54) - (1 << 21),
        1 << 54,
    ];
    sweep(directory, "vmdk", Order::Little, &vmdk, &offsets, &around);
    let mut differences = Vec::new();
    for (from, to) in [
        ("CID=", "XID="),
        ("parentCID=", "parentXID="),
        ("CID=", "CID=xyz"),
        ("CID=", "CID= "),
        ("CID=", "CID=-"),
        ("# Disk", "\0 Disk"),
    ] {
        let at = vmdk.0.windows(from.len());
        let at = at.into_iter().position(|it| it == from.as_bytes()).unwrap();
        differences.extend(compare(
            directory,
            "vmdk",
            &format!("{from} -> {to} in a sparse file"),
            &Image(vmdk.0.clone()).put(at, to.as_bytes()),
        ));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
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
        ("\"flat-flat.vmdk\"", "\"\""),
        ("version=1", "version=2"),
        ("version=1", "version=3"),
        ("CID=", "CID=xyz"),
        ("CID=", "XID="),
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
fn old_formats_refuse_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let vdi = [68, 340, 344, 360, 376, 384].map(|at| Field(at, 4));
    let qed = [4, 8, 12].map(|at| Field(at, 4));
    let large = [16, 40, 48].map(|at| Field(at, 8));
    let qcow = [
        Field(8, 8),
        Field(16, 4),
        Field(24, 8),
        Field(32, 1),
        Field(33, 1),
    ];
    let qcow = [&qcow[..], &[Field(36, 4), Field(40, 8)]].concat();
    let parallels = [16, 28, 32].map(|at| Field(at, 4));
    let parallels = [&parallels[..], &[36, 56].map(|at| Field(at, 8))].concat();
    for (format, order, fields) in [
        ("vdi", Order::Little, [&vdi[..], &[Field(368, 8)]].concat()),
        ("qed", Order::Little, [&qed[..], &large[..]].concat()),
        ("qcow", Order::Big, qcow),
        ("parallels", Order::Little, parallels),
    ] {
        let sound = image_of(directory, format, "");
        sweep(directory, format, order, &sound, &fields, VALUES);
    }
}

#[test]
fn vpc_refuses_what_qemu_refuses() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let sound = image_of(directory, "vpc", "force_size=on");
    let dynamic = [Field(528, 8), Field(540, 4), Field(544, 4)];
    sweep(directory, "vpc", Order::Big, &sound, &dynamic, VALUES);
    // Fields of the footer, with a checksum that fits.
    let footer = [Field(16, 8), Field(48, 8), Field(56, 2), Field(60, 4)];
    let mut differences = Vec::new();
    for field in footer {
        for value in VALUES {
            let mut image = set(&sound, field, Order::Big, *value).be32(64, 0);
            let sum: u32 = image.0[..512].iter().map(|byte| u32::from(*byte)).sum();
            image = image.be32(64, !sum);
            let what = format!("vpc, {value:#x} at {}", field.0);
            differences.extend(compare(directory, "vpc", &what, &image));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
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
    let around = [504, 511, 512, 3999, 4000, 4001, 4032, 4039, 4040, 4041];
    let values: Vec<u64> = FEW
        .iter()
        .copied()
        .filter(|value| *value <= 0x8000_0000)
        .chain(around)
        .collect();
    sweep(directory, "luks", Order::Big, &luks, &fields, &values);
}
