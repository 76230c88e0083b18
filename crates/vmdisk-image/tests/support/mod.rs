//! Helpers of the tests of this crate: builders of images, and access to the real qemu-img.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "tests make files and start qemu-img, stop at a failure and say what they skip; each uses a part of this"
)]

pub(crate) mod agree;
pub(crate) mod counting;
pub(crate) mod fuzz;
pub(crate) mod image;
pub(crate) mod microsoft;
pub(crate) mod qemu;
