//! The library in WebAssembly, and the packages for npm and Go that run it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

use crate::dist::output;
use crate::{race, repository};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Also install TypeScript in target/node, to check the types
    #[arg(long)]
    typescript: bool,
}

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the library, and writes it as target/wasm/vmdisk.wasm.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let file = build()?;
    println!(
        "{:>9} bytes  {}",
        fs::metadata(&file)?.len(),
        file.display()
    );
    if arguments.typescript {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-fund", "--no-audit", "--prefix"]);
        output(
            npm.arg(race::target_folder().join("node"))
                .arg("typescript@5.9.3"),
        )?;
    }
    Ok(())
}

fn build() -> anyhow::Result<PathBuf> {
    let mut build = Command::new("cargo");
    build.args([
        "build",
        "--release",
        "--quiet",
        "--package",
        "vmdisk-capi",
        "--target",
        TARGET,
    ]);
    build.env("RUSTFLAGS", race::release_flags()?);
    if !build.current_dir(repository()).status()?.success() {
        bail!(
            "the library could not be built; `rustup target add {TARGET}` installs what it needs"
        );
    }
    let target = race::target_folder();
    let file = target.join("wasm/vmdisk.wasm");
    fs::create_dir_all(target.join("wasm"))?;
    fs::copy(target.join(TARGET).join("release/vmdisk_capi.wasm"), &file)?;
    Ok(file)
}

/// Writes the packages for npm and for Go as archives.
pub(crate) fn packages(folder: &Path, version: &str) -> anyhow::Result<Vec<PathBuf>> {
    let wasm = build()?;
    let mut files = Vec::new();
    for (name, root, from) in [
        ("npm", "package", "bindings/npm"),
        ("go", "vmdisk-go", "bindings/go"),
    ] {
        let stage = tempfile::tempdir()?;
        let root = stage.path().join(root);
        crate::dist::install_all(&repository().join(from), &root)?;
        fs::copy(&wasm, root.join("vmdisk.wasm"))?;
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(repository().join(licence), root.join(licence))?;
        }
        fs::copy(repository().join("docs/wasm.md"), root.join("README.md"))?;
        let file = folder.join(format!("vmdisk-{name}-{version}.tgz"));
        crate::dist::archive(stage.path(), &file)?;
        files.push(file);
    }
    Ok(files)
}
