//! Damaged qcow2 headers: what this crate says QEMU refuses, against what the real QEMU refuses.
//!
//! Each field of a sound image is set to values around its bounds. Then both must be of one mind.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests make files and start qemu-img, stop at a failure and say what they skip"
)]

use crate::support::refusal::{Field, Order, VALUES, compare, set, sweep};
use crate::support::{image, qemu};

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
        Field(88, 8),
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
