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
use crate::support::refusal::{FEW, Field, Order, sweep};

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
        "key-secret=key,iter-time=10,hash-alg=sha512",
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
