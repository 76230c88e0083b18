//! The container image: one layer with the binary, as an archive of the Open Container Initiative's layout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;
use serde_json::{Value, json};

use super::{Parts, VERSION, install, output};

/// Where an image has the program.
pub(super) const PROGRAM: &str = "/vmdisk";

/// Writes `vmdisk-VERSION-ARCH-container.tar`, which `podman load` and `docker load` read.
pub(super) fn write(parts: &Parts, folder: &Path) -> anyhow::Result<PathBuf> {
    let stage = tempfile::tempdir()?;
    let root = stage.path().join("root");
    install(&parts.binary, &root.join(&PROGRAM[1..]), 0o755)?;
    // Where the files of the caller are mounted.
    fs::create_dir(root.join("work"))?;
    let blobs = stage.path().join("image/blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let plain = stage.path().join("layer.tar");
    archive(&root, &plain)?;
    let content = digest(&plain)?;
    output(Command::new("gzip").arg("-9n").arg(&plain))?;
    let packed = stage.path().join("layer.tar.gz");
    let layer = blob(&blobs, &fs::read(packed)?, "layer.v1.tar+gzip")?;
    let architecture = match parts.arch.as_str() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("images have no name for {other} here"),
    };
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "Entrypoint": [PROGRAM],
            "WorkingDir": "/work",
            "Labels": {
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{content}")] },
    });
    let config = blob(&blobs, config.to_string().as_bytes(), "config.v1+json")?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    });
    let mut manifest = blob(&blobs, manifest.to_string().as_bytes(), "manifest.v1+json")?;
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": VERSION });
    let image = stage.path().join("image");
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    fs::write(image.join("index.json"), index.to_string())?;
    fs::write(
        image.join("oci-layout"),
        "{\"imageLayoutVersion\":\"1.0.0\"}",
    )?;
    let name = format!("vmdisk-{VERSION}-{}-container.tar", parts.arch);
    archive(&image, &folder.join(&name))?;
    Ok(folder.join(name))
}

/// Writes a blob by its digest, and returns its description.
fn blob(blobs: &Path, bytes: &[u8], kind: &str) -> anyhow::Result<Value> {
    let file = blobs.join("new");
    fs::write(&file, bytes)?;
    let digest = digest(&file)?;
    fs::rename(file, blobs.join(&digest))?;
    Ok(json!({
        "mediaType": format!("application/vnd.oci.image.{kind}"),
        "digest": format!("sha256:{digest}"),
        "size": bytes.len(),
    }))
}

fn digest(file: &Path) -> anyhow::Result<String> {
    let text = output(Command::new("sha256sum").arg(file))?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

fn archive(stage: &Path, file: &Path) -> anyhow::Result<()> {
    super::archive(stage, file, false)
}

/// Unpacks the root of an image, by its index.
pub(super) fn unpack(image: &Path, root: &Path) -> anyhow::Result<()> {
    let stage = tempfile::tempdir()?;
    output(
        Command::new("tar")
            .arg("-xf")
            .arg(image)
            .arg("-C")
            .arg(stage.path()),
    )?;
    let json =
        |path: &Path| -> anyhow::Result<Value> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
    let place = |descriptor: &Value| -> anyhow::Result<PathBuf> {
        let name = descriptor["digest"].as_str().unwrap_or_default();
        let name = name.trim_start_matches("sha256:");
        let file = stage.path().join("blobs/sha256").join(name);
        if digest(&file)? != name || descriptor["size"] != fs::metadata(&file)?.len() {
            bail!("{name} is not what its descriptor says");
        }
        Ok(file)
    };
    let index = json(&stage.path().join("index.json"))?;
    let manifest = json(&place(&index["manifests"][0])?)?;
    if json(&place(&manifest["config"])?)?["config"]["Entrypoint"] != json!([PROGRAM]) {
        bail!("the image does not start {PROGRAM}");
    }
    let layer = place(&manifest["layers"][0])?;
    output(
        Command::new("tar")
            .arg("-xzf")
            .arg(layer)
            .arg("-C")
            .arg(root),
    )?;
    Ok(())
}
