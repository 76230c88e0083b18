//! Builds what ships.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::repository;

/// Builds the binary that ships for this processor, and returns its path.
pub(crate) fn build_release() -> anyhow::Result<PathBuf> {
    build_static(std::env::consts::ARCH)
}

/// Builds the binary for a release, which needs no C library, and returns its path.
pub(crate) fn build_static(arch: &str) -> anyhow::Result<PathBuf> {
    let target = format!("{arch}-unknown-linux-musl");
    let linker = format!(
        "CARGO_TARGET_{}_LINKER",
        target.replace('-', "_").to_uppercase()
    );
    let mut build = Command::new("cargo");
    build
        .args([
            "build",
            "--release",
            "--quiet",
            "--package",
            "vmdisk-cli",
            "--target",
            &target,
        ])
        .env("RUSTFLAGS", static_flags()?)
        .current_dir(repository());
    if arch != std::env::consts::ARCH && std::env::var_os(&linker).is_none() {
        // The linker of this host links for this host only.
        build.env(linker, "rust-lld");
    }
    if !build.status()?.success() {
        bail!("the release build failed; `rustup target add {target}` installs what it needs");
    }
    Ok(target_folder().join(target).join("release/vmdisk"))
}

/// Builds the libraries for C and Python, and returns their directory. Where `cargo-zigbuild` is installed, they are for a
/// processor and for the C library of RHEL 8 and all that came later; otherwise for this host.
pub(crate) fn build_libraries(arch: &str) -> anyhow::Result<Option<PathBuf>> {
    let has_zig = Command::new("cargo-zigbuild").arg("--version").output();
    let has_zig = has_zig.is_ok_and(|zig| zig.status.success());
    if arch != std::env::consts::ARCH && !has_zig {
        return Ok(None);
    }
    let target = format!("{arch}-unknown-linux-gnu");
    let mut build = Command::new("cargo");
    match has_zig {
        true => build.args(["zigbuild", "--target", &format!("{target}.2.28")]),
        false => build.arg("build"),
    };
    build.args(["--release", "--quiet"]);
    build.args(["--package", "vmdisk-capi", "--package", "vmdisk-python"]);
    build.env("RUSTFLAGS", release_flags()?);
    if !build.current_dir(repository()).status()?.success() {
        bail!(
            "the libraries could not be built; `rustup target add {target}` installs what they need"
        );
    }
    let folder = target_folder();
    Ok(Some(match has_zig {
        true => folder.join(target).join("release"),
        false => folder.join("release"),
    }))
}

/// The flags of the compiler for a binary that names no directory of this host: messages of a panic name the sources of
/// crates, which lie below cargo's home.
pub(crate) fn release_flags() -> anyhow::Result<String> {
    Ok(format!(
        "--remap-path-prefix={}=/cargo",
        cargo_home()?.display()
    ))
}

/// The flags of the compiler for the static binary. The list of the addresses that its start adjusts has a bit for each
/// word, instead of 24 bytes for each address, which were 1.1 MB. glibc reads such lists since 2.36 only, and the musl in
/// the binary always.
fn static_flags() -> anyhow::Result<String> {
    let packed = "-Clink-arg=-z -Clink-arg=pack-relative-relocs";
    Ok(format!("{} {packed}", release_flags()?))
}

/// The directory that cargo keeps crates in.
pub(crate) fn cargo_home() -> anyhow::Result<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(home)
        .context("neither CARGO_HOME nor HOME is set")
}

pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}
