//! The crates in the binary, their licences, and the bill of materials.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::dist::output;
use crate::repository;

/// Starts of the names of files with licences.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "UNLICENSE"];

/// A crate of others in the program or the libraries.
struct Crate {
    name: String,
    version: String,
    licence: String,
}

fn crates() -> anyhow::Result<Vec<Crate>> {
    let mut tree = Command::new("cargo");
    tree.args([
        "tree",
        "--package",
        "vmdisk-cli",
        "--package",
        "vmdisk-capi",
        "--package",
        "vmdisk-python",
        "--edges",
        "normal",
        "--locked",
    ]);
    tree.args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]);
    let lines = output(tree.current_dir(repository()))?;
    let lines: BTreeSet<&str> = lines.lines().collect();
    let others = lines.into_iter().filter_map(|line| {
        let (id, licence) = line.split_once('|')?;
        let (name, rest) = id.split_once(" v")?;
        let mut words = rest.split(' ');
        let version = words.next()?;
        // `name v1.2.3 (/path)` is ours.
        (!id.contains(" (/")).then(|| Crate {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: licence.to_owned(),
        })
    });
    Ok(others.collect())
}

/// The bill of materials in CycloneDX: what scanners for known vulnerabilities read.
pub(super) fn materials(version: &str) -> anyhow::Result<String> {
    let component = |name: &str, version: &str, licence: &str, kind: &str| {
        let purl = format!("pkg:cargo/{name}@{version}");
        json!({
            "type": kind, "name": name, "version": version, "bom-ref": purl, "purl": purl,
            // Some old crates separate licences by a slash.
            "licenses": [{ "expression": licence.replace('/', " OR ") }],
        })
    };
    let crates = crates()?;
    let components = crates
        .iter()
        .map(|it| component(&it.name, &it.version, &it.licence, "library"));
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component("vmdisk-cli", version, "MIT OR Apache-2.0", "application") },
        "components": components.collect::<Vec<Value>>(),
    });
    Ok(format!("{bill:#}\n"))
}

/// Returns the list of crates with their licences, and each text once.
pub(super) fn third_party() -> anyhow::Result<String> {
    let crates = crates()?;
    let folders = folders()?;
    let mut list = String::from("The program and the libraries contain these crates.\n\n");
    let mut texts: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for Crate {
        name,
        version,
        licence,
    } in &crates
    {
        let _ = writeln!(list, "{name} {version}: {licence}");
        let key = format!("{name} {version}");
        let folder = folders.get(&key).with_context(|| key.clone())?;
        for text in licences_in(folder)? {
            texts.entry(text).or_default().insert(name);
        }
    }
    for (text, names) in texts {
        let names: Vec<&str> = names.into_iter().collect();
        let line = "-".repeat(80);
        let _ = write!(
            list,
            "\n{line}\n{}\n{line}\n\n{}\n",
            names.join(", "),
            text.trim_end()
        );
    }
    Ok(list)
}

/// The folders of all crates, by name and version.
fn folders() -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut metadata = Command::new("cargo");
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output(metadata.current_dir(repository()))?)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let folder = |package: &Value| {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let manifest = PathBuf::from(text("manifest_path"));
        let folder = manifest.parent().unwrap_or(Path::new("/")).to_owned();
        (format!("{} {}", text("name"), text("version")), folder)
    };
    Ok(packages.iter().map(folder).collect())
}

fn licences_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            texts.push(std::fs::read_to_string(&path)?);
        }
    }
    Ok(texts)
}
