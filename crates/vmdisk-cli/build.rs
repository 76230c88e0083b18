//! Asks the linker for relative relocations in their short form: two bits instead of 24 bytes for each address in the
//! data, together half a megabyte.
//!
//! A C library before glibc 2.36 does not start such a program. The files of a release need the C library of the host
//! that built them anyway, so that its version decides. A linker that does not know the option warns and links as before.

#![allow(clippy::print_stdout, reason = "cargo reads it")]

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_own_host = env::var_os("TARGET") == env::var_os("HOST");
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE")
        .is_ok_and(|features| features.split(',').any(|feature| feature == "crt-static"));
    if is_own_host && !is_static && has_glibc_since(2, 36) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether this host has glibc of this version or a newer one.
fn has_glibc_since(major: u32, minor: u32) -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else {
        return false;
    };
    // `glibc 2.36`
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("glibc ").unwrap_or_default();
    let mut parts = version.split('.').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(found_major)), Some(Ok(found_minor))) => {
            (found_major, found_minor) >= (major, minor)
        }
        _ => false,
    }
}
