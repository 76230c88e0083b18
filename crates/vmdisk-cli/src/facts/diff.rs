//! `vmdisk facts diff`: what changed on a host, and what follows for its guests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use vmdisk::{Document, Facts, Host, lint};

use crate::args::{DiffArgs, TextFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::facts_file::read_facts;
use crate::input::inputs::{Input, Origin};
use crate::input::read;
use crate::io::Io;
use crate::output::{deliver, pretty_json};
use crate::sanitize;
use crate::stop::Stop;

/// What differs between any two collections and says nothing.
const PASSING: &[&str] = &["collected_at", "collector.version", "host.boot"];

/// Values that change while nobody changes the host, by the last key of their path.
const VOLATILE: &[&str] = &[
    "aio_nr",
    "alloc",
    "available_bytes",
    "data_percent",
    "free",
    "free_bytes",
    "metadata_percent",
];

/// The result of comparing two facts files; `vmdisk facts diff --format json` prints it.
///
/// Within version 1 keys are added, never removed, renamed or given another meaning.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk facts diff, version 1", rename = "FactsDiff")
)]
struct Difference {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// The facts before, as the file was given.
    old: String,
    /// The facts after, as the file was given.
    new: String,
    /// What differs, by the path of the value; what changes while nobody changes the host is left out.
    changes: Vec<Change>,
    /// Findings that only the new facts give, by the order of the domains.
    new_findings: Vec<ChangedFinding>,
    /// Findings that only the old facts give.
    gone_findings: Vec<ChangedFinding>,
}

impl Difference {
    /// The same without anything that acts on a terminal, line ends included.
    fn in_lines(&self) -> Self {
        let line = |text: &String| sanitize::line(text).into_owned();
        let change = |Change { path, old, new }: &Change| Change {
            path: line(path),
            old: old.as_ref().map(line),
            new: new.as_ref().map(line),
        };
        let finding = |finding: &ChangedFinding| ChangedFinding {
            domain: line(&finding.domain),
            disk: finding.disk.as_ref().map(line),
            title: line(&finding.title),
            ..*finding
        };
        Difference {
            schema_version: self.schema_version,
            old: line(&self.old),
            new: line(&self.new),
            changes: self.changes.iter().map(change).collect(),
            new_findings: self.new_findings.iter().map(finding).collect(),
            gone_findings: self.gone_findings.iter().map(finding).collect(),
        }
    }
}

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// One value that differs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Change {
    /// The path of the value; members of lists are identified by their names.
    path: String,
    /// The old value; null if there was none, which differs from a value known to be absent.
    old: Option<String>,
    /// The new value.
    new: Option<String>,
}

/// A finding that comes or goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Finding"))]
struct ChangedFinding {
    /// The domain, as the file was given.
    domain: String,
    /// How much it matters: `advice`, `warning` or `error`.
    severity: &'static str,
    /// Name of the rule.
    rule: &'static str,
    /// Name of the disk's target, if it is about one.
    disk: Option<String>,
    /// The mistake.
    title: String,
}

/// The JSON Schema of what is printed.
#[cfg(feature = "schema")]
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Difference)
}

/// Compares two facts files.
pub(super) fn run(args: &DiffArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let DiffArgs {
        old: old_file,
        new: new_file,
        domains,
        format,
        volatile,
    } = args;
    let old = read_facts(old_file, io, colors)?;
    let new = read_facts(new_file, io, colors)?;
    let mut difference = Difference {
        schema_version: SCHEMA_VERSION,
        old: old_file.display().to_string(),
        new: new_file.display().to_string(),
        changes: changes(flat(&old, *volatile), flat(&new, *volatile)),
        new_findings: Vec::new(),
        gone_findings: Vec::new(),
    };
    let (old, new) = (Host::new(old), Host::new(new));
    for file in domains {
        let input = Input::new(file.clone(), Origin::Named);
        let bytes = read::file(file).map_err(Stop::from)?;
        let document = read::document(&input, &bytes).map_err(Stop::from)?;
        let domain = file.display().to_string();
        let before = findings(&domain, &document, &old);
        let after = findings(&domain, &document, &new);
        difference
            .new_findings
            .extend(after.difference(&before).cloned());
        difference
            .gone_findings
            .extend(before.difference(&after).cloned());
    }
    let text = match format {
        TextFormat::Text => difference.in_lines().text(!domains.is_empty()),
        TextFormat::Json => pretty_json(&difference),
    };
    deliver(io, None, &text)?;
    Ok(Exit::clean_if(difference.is_empty()))
}

impl Difference {
    fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.new_findings.is_empty() && self.gone_findings.is_empty()
    }

    /// The difference for people.
    fn text(&self, has_domains: bool) -> String {
        let mut out = String::new();
        for Change { path, old, new } in &self.changes {
            let _ = match (old, new) {
                (Some(old), Some(new)) => writeln!(out, "~ {path}: {old} → {new}"),
                (Some(old), None) => writeln!(out, "- {path}: {old}"),
                (None, Some(new)) => writeln!(out, "+ {path}: {new}"),
                (None, None) => Ok(()),
            };
        }
        for (word, findings) in [("new", &self.new_findings), ("gone", &self.gone_findings)] {
            for found in findings {
                let ChangedFinding {
                    domain,
                    severity,
                    rule,
                    disk: _, // The title names it.
                    title,
                } = found;
                let _ = writeln!(out, "{word} finding: {domain}: {severity}[{rule}]: {title}");
            }
        }
        if self.is_empty() {
            out.push_str("no differences\n");
        }
        if has_domains {
            let (come, gone) = (self.new_findings.len(), self.gone_findings.len());
            let plural = if come == 1 { "" } else { "s" };
            let _ = writeln!(out, "{come} new finding{plural}, {gone} gone");
        }
        out
    }
}

fn findings(domain: &str, document: &Document, host: &Host) -> BTreeSet<ChangedFinding> {
    lint(document, &host.options())
        .diagnostics
        .into_iter()
        .map(|found| ChangedFinding {
            domain: domain.to_owned(),
            severity: found.severity.as_str(),
            rule: found.rule.name,
            disk: found.disk.and_then(|disk| disk.target),
            title: found.title,
        })
        .collect()
}

/// Every value by its path of keys; local ids are replaced by names.
fn flat(facts: &Facts, shows_volatile: bool) -> BTreeMap<String, String> {
    let tree: Value =
        serde_json::from_str(&facts.to_json()).expect("the facts were just written as JSON");
    let mut ids = BTreeMap::new();
    for group in ["mounts", "filesystems", "blockdevs"] {
        for member in tree[group].as_array().into_iter().flatten() {
            if let (Some(id), Some(name)) = (member["id"].as_str(), name(member)) {
                ids.insert(id.to_owned(), name);
            }
        }
    }
    // A file system is named after its first mount.
    for mount in tree["mounts"].as_array().into_iter().flatten().rev() {
        if let (Some(fs), Some(point)) = (mount["fs"].as_str(), mount["point"].as_str()) {
            ids.insert(fs.to_owned(), format!("on {point}"));
        }
    }
    let mut found = BTreeMap::new();
    walk(&tree, String::new(), "", &ids, &mut found);
    found.retain(|path, _| {
        // A value that is known to be unknown has keys below its own.
        let is_volatile = || {
            path.split('.')
                .rev()
                .take(2)
                .any(|key| VOLATILE.contains(&key))
        };
        !PASSING.contains(&path.as_str()) && (shows_volatile || !is_volatile())
    });
    found
}

/// The name of a member of a list, independent of its position.
fn name(member: &Value) -> Option<String> {
    let text = |key: &str| member[key].as_str().map(str::to_owned);
    // One directory is measured with several disks.
    if member["measured_at"].is_string() {
        let conditions = ["path", "form", "cache", "io", "engine", "accelerator"];
        let words: Vec<String> = conditions.into_iter().filter_map(text).collect();
        return Some(words.join(", "));
    }
    let device = member["paths"][0].as_str().map(str::to_owned);
    text("path")
        .or_else(|| text("point"))
        .or(device)
        .or_else(|| text("dev"))
        .or_else(|| text("what"))
        .or_else(|| text("quantity"))
        .or_else(|| text("rule"))
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
            let mut names = BTreeMap::new();
            for (number, value) in all.iter().enumerate() {
                let id = value["id"].as_str().and_then(|id| ids.get(id)).cloned();
                let called = id
                    .or_else(|| name(value))
                    .unwrap_or_else(|| number.to_string());
                // Two members with one name are two values.
                let count = names.entry(called.clone()).or_insert(0);
                *count += 1;
                let called = match *count {
                    1 => called,
                    nth => format!("{called} {nth}"),
                };
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

fn changes(mut old: BTreeMap<String, String>, new: BTreeMap<String, String>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (path, after) in new {
        match old.remove(&path) {
            Some(before) if before == after => {}
            before => changes.push(Change {
                path,
                old: before,
                new: Some(after),
            }),
        }
    }
    changes.extend(old.into_iter().map(|(path, before)| Change {
        path,
        old: Some(before),
        new: None,
    }));
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes
}
