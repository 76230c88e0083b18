//! Real images with single damaged bytes: what this crate says QEMU refuses, against what the real QEMU refuses.
//!
//! The sweeps of fields know which fields there are. These tests do not: they damage every byte of the metadata, so they
//! find the parts that this crate does not read.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make files and start qemu-img, and stop at a failure"
)]

use std::path::Path;

use crate::support::image::Image;
use crate::support::qemu;
use crate::support::refusal::compare;

/// The bits to change, in turn: a small number, one that breaks an alignment, a sign, and all.
const MASKS: [u8; 4] = [0x01, 0x08, 0x80, 0xff];

/// The offsets of the bytes to damage: the header, and every other piece with a byte that is not zero.
fn metadata(image: &Image) -> Vec<usize> {
    const PIECE: usize = 8;
    const HEADER: usize = 128;
    let pieces = image.0.chunks(PIECE).enumerate();
    pieces
        .filter(|(index, piece)| index * PIECE < HEADER || piece.iter().any(|byte| *byte != 0))
        .flat_map(|(index, piece)| (index * PIECE..).take(piece.len()))
        .collect()
}

/// Damages one byte after the other, and compares each time.
fn damage(directory: &Path, format: &str, file: &str, is_metadata: impl Fn(usize) -> bool) {
    let sound = Image(std::fs::read(directory.join(file)).unwrap());
    let own = tempfile::tempdir_in(directory).unwrap();
    let offsets = metadata(&sound).into_iter().filter(|at| is_metadata(*at));
    let differences: Vec<String> = offsets
        .filter_map(|at| {
            let (old, new) = (sound.0[at], sound.0[at] ^ MASKS[at % MASKS.len()]);
            let what = format!("{file}, byte {at:#x}, {old:#x} -> {new:#x}");
            compare(own.path(), format, &what, &sound.clone().put(at, &[new]))
        })
        .collect();
    let count = differences.len();
    assert!(
        differences.is_empty(),
        "{count}:\n{}",
        differences.join("\n")
    );
}

/// The bytes of a LUKS header without the key material, which is random.
const LUKS_HEADER: usize = 592;

#[test]
fn a_damaged_byte_of_qcow2_is_reported_if_qemu_refuses_it() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    qemu::create(directory, "raw", "", &["base.raw", "4M"]);
    let backing = ["full.qcow2", "4M", "-b", "base.raw", "-F", "raw"];
    qemu::create(directory, "qcow2", "", &backing);
    qemu::succeed(directory, &["snapshot", "-c", "first", "full.qcow2"]);
    for (file, options) in [
        ("old.qcow2", "compat=0.10"),
        (
            "new.qcow2",
            "extended_l2=on,compression_type=zstd,lazy_refcounts=on",
        ),
        ("data.qcow2", "data_file=data.raw,data_file_raw=on"),
    ] {
        qemu::create(directory, "qcow2", options, &[file, "4M"]);
    }
    for file in ["full.qcow2", "old.qcow2", "new.qcow2", "data.qcow2"] {
        damage(directory, "qcow2", file, |at| {
            // An offset of a snapshot table is damaged by the sweep of fields, with entries of zeroes.
            !(0x3c..0x48).contains(&at) || file == "full.qcow2"
        });
    }
}

#[test]
fn a_damaged_byte_of_luks_is_reported_if_qemu_refuses_it() {
    if !qemu::is_installed() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let options = "key-secret=key,iter-time=10,hash-alg=sha512";
    qemu::create_encrypted(directory, "luks", options, &["plain.luks", "64K"]);
    damage(directory, "luks", "plain.luks", |at| at < LUKS_HEADER);
    let options =
        "encrypt.format=luks,encrypt.key-secret=key,encrypt.iter-time=10,encrypt.hash-alg=sha512";
    qemu::create_encrypted(directory, "qcow2", options, &["luks.qcow2", "64K"]);
    let bytes = std::fs::read(directory.join("luks.qcow2")).unwrap();
    let mut found = bytes.windows(6);
    let begin = found.position(|it| it == b"LUKS\xba\xbe").unwrap();
    damage(directory, "qcow2", "luks.qcow2", |at| {
        (0x60..0x90).contains(&at) || (begin..begin + LUKS_HEADER).contains(&at)
    });
}
