//! `vmdisk facts diff`: what changed on a host, and what follows for its guests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use vmdisk::{Document, Facts, HostIndex, LintOptions, Target, lint};

use crate::args::DiffArgs;
use crate::color::Colors;
use crate::exit::Exit;
use crate::host::read_facts;
use crate::io::Io;
use crate::lint::inputs::{Input, Origin};
use crate::lint::read;
use crate::output::deliver;
use crate::sanitize;
use crate::stop::Stop;

/// What differs between any two collections and says nothing.
const PASSING: &[&str] = &["collected_at", "collector.version", "host.boot"];

/// Compares two facts files.
pub(super) fn run(args: &DiffArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let DiffArgs { old, new, domains } = args;
    let (old, new) = (read_facts(old, io, colors)?, read_facts(new, io, colors)?);
    let mut out = changes(&flat(&old), &flat(&new));
    let is_changed = !out.is_empty();
    let (mut come, mut gone) = (0, 0);
    for file in domains {
        let input = Input {
            file: file.clone(),
            origin: Origin::Named,
        };
        let bytes = read::file(file).map_err(Stop::from)?;
        let document = read::document(&input, &bytes).map_err(Stop::from)?;
        let (before, after) = (findings(&document, &old), findings(&document, &new));
        for finding in after.difference(&before) {
            come += 1;
            let _ = writeln!(out, "new finding: {}: {finding}", file.display());
        }
        for finding in before.difference(&after) {
            gone += 1;
            let _ = writeln!(out, "gone finding: {}: {finding}", file.display());
        }
    }
    if !domains.is_empty() {
        let plural = if come == 1 { "" } else { "s" };
        let _ = writeln!(out, "{come} new finding{plural}, {gone} gone");
    }
    deliver(io, None, &sanitize::lines(&out))?;
    Ok(if is_changed || come + gone > 0 {
        Exit::Findings
    } else {
        Exit::Clean
    })
}

fn findings(document: &Document, facts: &Facts) -> BTreeSet<String> {
    let index = HostIndex::new(facts);
    let options = LintOptions {
        host: Some(&index),
        target: Target::from_facts(facts),
        ..LintOptions::default()
    };
    lint(document, &options)
        .diagnostics
        .iter()
        .map(|found| format!("{}[{}]: {}", found.severity, found.rule.name, found.title))
        .collect()
}

/// Every value by the keys that lead to it; what is known under a local id is named by what it is.
fn flat(facts: &Facts) -> BTreeMap<String, String> {
    let tree: Value =
        serde_json::from_str(&facts.to_json()).expect("what was just written is JSON");
    let mut ids = BTreeMap::new();
    for group in ["mounts", "filesystems", "blockdevs"] {
        for member in tree[group].as_array().into_iter().flatten() {
            if let (Some(id), Some(name)) = (member["id"].as_str(), name(member)) {
                ids.insert(id.to_owned(), name);
            }
        }
    }
    // A file system is called after the first mount that shows it.
    for mount in tree["mounts"].as_array().into_iter().flatten().rev() {
        if let (Some(fs), Some(point)) = (mount["fs"].as_str(), mount["point"].as_str()) {
            ids.insert(fs.to_owned(), format!("on {point}"));
        }
    }
    let mut found = BTreeMap::new();
    walk(&tree, String::new(), "", &ids, &mut found);
    found.retain(|path, _| !PASSING.contains(&path.as_str()));
    found
}

/// What a member of a list is called wherever it stands.
fn name(member: &Value) -> Option<String> {
    let text = |key: &str| member[key].as_str().map(str::to_owned);
    let device = member["paths"][0].as_str().map(str::to_owned);
    text("path")
        .or_else(|| text("point"))
        .or(device)
        .or_else(|| text("dev"))
        .or_else(|| text("what"))
}

fn walk(
    value: &Value,
    path: String,
    key: &str,
    ids: &BTreeMap<String, String>,
    found: &mut BTreeMap<String, String>,
) {
    /// Keys behind which local ids stand.
    const REFERENCES: [&str; 7] = [
        "mount",
        "fs",
        "devices",
        "slaves",
        "holders",
        "partitions",
        "parent",
    ];
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == "id" && map.len() > 1 && !path.starts_with("host") {
                    continue;
                }
                let inner = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                walk(value, inner, key, ids, found);
            }
        }
        Value::Array(all) => {
            for (number, value) in all.iter().enumerate() {
                let id = value["id"].as_str().and_then(|id| ids.get(id)).cloned();
                let called = id
                    .or_else(|| name(value))
                    .unwrap_or_else(|| number.to_string());
                walk(value, format!("{path}[{called}]"), key, ids, found);
            }
        }
        Value::String(text) if REFERENCES.contains(&key) => {
            found.insert(path, ids.get(text).unwrap_or(text).clone());
        }
        Value::String(text) => {
            found.insert(path, text.clone());
        }
        Value::Null => {
            found.insert(path, "absent".to_owned());
        }
        Value::Bool(_) | Value::Number(_) => {
            found.insert(path, value.to_string());
        }
    }
}

fn changes(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for path in paths {
        let _ = match (old.get(path), new.get(path)) {
            (Some(before), Some(after)) if before != after => {
                writeln!(out, "~ {path}: {before} → {after}")
            }
            (Some(before), None) => writeln!(out, "- {path}: {before}"),
            (None, Some(after)) => writeln!(out, "+ {path}: {after}"),
            (Some(_), Some(_)) | (None, None) => Ok(()),
        };
    }
    out
}
