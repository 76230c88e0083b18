//! The library in WebAssembly, the packages for npm and Go that run it, and the playground, a page with all of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::dist::output;
use crate::{release, repository};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Also install TypeScript and bundlers in target/node, to check the package
    #[arg(long)]
    typescript: bool,
}

const TARGET: &str = "wasm32-unknown-unknown";

/// Facts of the playground, by the words of its list.
const HOSTS: [(&str, &str); 10] = [
    ("xfs on NVMe", "xfs-nvme"),
    ("btrfs with checksums, Linux 6.1", "btrfs-checksums-6.1"),
    ("btrfs with checksums, Linux 6.18", "btrfs-checksums-6.18"),
    ("btrfs without copy-on-write", "btrfs-nocow-6.18"),
    ("thin LVM, 64 KiB chunks", "lvm-thin-64k"),
    ("thin LVM, nearly full", "lvm-thin-nearly-full"),
    ("a disk with 4096-byte sectors", "disk-4kn"),
    ("LUKS without discards", "luks-without-discards"),
    ("a degraded RAID", "md-degraded"),
    ("io_uring disabled", "io-uring-disabled"),
];

/// Builds the library, and writes it as target/wasm/vmdisk.wasm.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let file = build("vmdisk.wasm", &[])?;
    println!(
        "{:>9} bytes  {}",
        fs::metadata(&file)?.len(),
        file.display()
    );
    if arguments.typescript {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-fund", "--no-audit", "--prefix"]);
        npm.arg(release::target_folder().join("node"));
        output(npm.args([
            "typescript@5.9.3",
            "esbuild@0.25.12",
            "webpack@5",
            "webpack-cli@6",
        ]))?;
    }
    Ok(())
}

/// Builds the library with these options of cargo for features, and returns its file below target/wasm.
fn build(name: &str, features: &[&str]) -> anyhow::Result<PathBuf> {
    let target = release::target_folder();
    // Cargo has one lock for the release builds of all targets, and this one is not to wait for them.
    let own = target.join("wasm/cargo");
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--quiet", "--package", "vmdisk-capi"]);
    build.args(["--target", TARGET, "--target-dir"]).arg(&own);
    build.args(features);
    build.env("RUSTFLAGS", release::release_flags()?);
    if !build.current_dir(repository()).status()?.success() {
        bail!(
            "the library could not be built; `rustup target add {TARGET}` installs what it needs"
        );
    }
    let file = target.join("wasm").join(name);
    // Tests that run meanwhile read the old file or the new one.
    let new = tempfile::NamedTempFile::new_in(target.join("wasm"))?;
    fs::copy(
        own.join(TARGET).join("release/vmdisk_capi.wasm"),
        new.path(),
    )?;
    new.persist(&file)?;
    Ok(file)
}

/// Writes the packages for npm and for Go as archives.
pub(crate) fn packages(folder: &Path, version: &str) -> anyhow::Result<Vec<PathBuf>> {
    let wasm = build("vmdisk.wasm", &[])?;
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
        crate::dist::archive(stage.path(), &file, true)?;
        files.push(file);
    }
    Ok(files)
}

/// Writes target/playground/index.html, a page that needs no other file.
pub(crate) fn playground() -> anyhow::Result<()> {
    let wasm = build("playground.wasm", &["--no-default-features"])?;
    let read =
        |path: &str| fs::read_to_string(repository().join(path)).with_context(|| path.to_owned());
    let hosts = HOSTS.iter().map(|(label, name)| {
        let facts = read(&format!("fixtures/facts/{name}.json"))?;
        let facts = serde_json::from_str::<serde_json::Value>(&facts)?.to_string();
        Ok(serde_json::json!({"label": label, "name": name, "facts": facts}))
    });
    let hosts: Vec<serde_json::Value> = hosts.collect::<anyhow::Result<_>>()?;
    // A text of a script must not end it.
    let hosts = serde_json::to_string(&hosts)?.replace("</", "<\\/");
    let packed = format!("gzip -9nc '{}' | base64 -w0", wasm.display());
    let packed = output(Command::new("sh").args(["-c", &packed]))?;
    // A script that is not a module runs from file://, too.
    let loader = read("bindings/npm/vmdisk.js")?.replace("\nexport ", "\n");
    let page = read("bindings/playground/page.html")?
        .replace("/*STYLE*/", &read("bindings/playground/page.css")?)
        .replace("/*LOADER*/", &loader)
        .replace("/*PAGE*/", &read("bindings/playground/page.js")?)
        .replace("\"HOSTS\"", &hosts)
        .replace("WASM", &packed);
    let folder = release::target_folder().join("playground");
    fs::create_dir_all(&folder)?;
    let file = folder.join("index.html");
    fs::write(&file, page)?;
    let size = output(
        Command::new("sh").args(["-c", &format!("gzip -9nc '{}' | wc -c", file.display())]),
    )?;
    println!(
        "{:>9} bytes  {} ({} compressed)",
        fs::metadata(&file)?.len(),
        file.display(),
        size.trim()
    );
    Ok(())
}
