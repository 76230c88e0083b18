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

mod support;

use support::image::Image;
use support::qemu;
use support::refusal::{FEW, Field, Order, compare, image_of, refused_by_qemu_img, set, sweep};

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
    sweep(directory, "qcow", Order::Big, &qcow, &fields, FEW);
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
    sweep(directory, "qed", Order::Little, &qed, &fields, FEW);
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
    sweep(directory, "vdi", Order::Little, &vdi, &fields, FEW);
    let parallels = image_of(directory, "parallels", "");
    let fields = [
        Field(16, 4),
        Field(28, 4),
        Field(32, 4),
        Field(36, 8),
        Field(44, 4),
        Field(48, 4),
    ];
    let bounds = [4_186_127, 4_186_128, 0x1fff_ffff, 0x2000_0000];
    let values: Vec<u64> = FEW.iter().copied().chain(bounds).collect();
    sweep(
        directory,
        "parallels",
        Order::Little,
        &parallels,
        &fields,
        &values,
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
        for value in FEW
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
    sweep(directory, "vpc", Order::Big, &vpc, &fields, FEW);
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
    sweep(directory, "vmdk", Order::Little, &vmdk, &fields, FEW);
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
    sweep(directory, "vhdx", Order::Little, &vhdx, &fields, FEW);
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
