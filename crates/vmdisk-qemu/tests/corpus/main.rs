//! libvirt's own test data, which lives outside this repository (`VMDISK_CORPUS`): what we write is what
//! libvirt writes, and what libvirt writes is read back.

// A test may look at files and print; the crate may not.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stderr)]

mod guests;
mod reading;
mod support;
mod writing;
