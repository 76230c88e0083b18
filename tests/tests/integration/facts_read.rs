//! Each fact has a reader: a rule, a choice of the planner, a step of a trace or a report. A fact without one costs its
//! type, its page, its collector and a place in every recorded host.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vmdisk_tests::repository;

/// What tells of the facts themselves: how they were made.
const ABOUT_THE_FILE: &[&str] = &[
    "Collector.privileged",
    "Collector.probed_dio",
    "Redaction.salt_id",
];

/// Crates with readers, and what of them only writes facts again.
const READERS: &[&str] = &[
    "vmdisk",
    "vmdisk-bench-runner",
    "vmdisk-cli",
    "vmdisk-libvirt",
    "vmdisk-lsp",
    "vmdisk-plan",
    "vmdisk-qemu",
    "vmdisk-rule",
    "vmdisk-rules",
    "vmdisk-trace",
];
const WRITES_FACTS: &[&str] = &["/src/redact/", "vmdisk-cli/src/facts/", "/tests.rs"];

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The code of the files of a crate, without comments and tests.
fn code_of(name: &str) -> Vec<String> {
    let mut files = Vec::new();
    sources(
        &repository().join("crates").join(name).join("src"),
        &mut files,
    );
    files.sort();
    let is_read = |path: &PathBuf| {
        let path = path.to_string_lossy();
        !WRITES_FACTS.iter().any(|part| path.contains(part))
    };
    let text = |path: PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        lines.map(|line| format!("{line}\n")).collect()
    };
    files.into_iter().filter(is_read).map(text).collect()
}

/// The members of all structs that hold a fact.
fn facts(code: &[String]) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for text in code {
        let mut owner = "";
        for line in text.lines().map(str::trim) {
            if let Some(rest) = line.strip_prefix("pub struct ") {
                owner = rest.split([' ', '<', '(', ';']).next().unwrap_or_default();
            } else if let Some((name, of)) =
                line.strip_prefix("pub ").and_then(|it| it.split_once(": "))
                && of.contains("Fact<")
                && of.ends_with(',')
                && !name.starts_with('$')
            {
                facts.push((owner.to_owned(), name.to_owned()));
            }
        }
    }
    facts
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !(it.is_alphanumeric() || it == '_'))
        .filter(|word| !word.is_empty())
}

#[test]
fn every_fact_has_a_reader() {
    let declared = code_of("vmdisk-facts");
    let readers: Vec<String> = READERS.iter().flat_map(|name| code_of(name)).collect();
    let mut read: BTreeSet<&str> = readers.iter().flat_map(|text| words(text)).collect();
    // The crate's own questions about facts; a declaration has no dot before the name.
    for text in &declared {
        let after_dots = text.split('.').skip(1);
        read.extend(
            after_dots
                .filter_map(|rest| words(rest.split(['(', ' ', ',', ';', ')']).next()?).next()),
        );
    }
    let facts = facts(&declared);
    assert!(facts.len() > 250, "only {} facts were found", facts.len());
    let unread: BTreeSet<String> = facts
        .iter()
        .filter(|(_, name)| !read.contains(name.as_str()))
        .map(|(owner, name)| format!("{owner}.{name}"))
        .collect();
    let known: BTreeSet<String> = ABOUT_THE_FILE
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    let new: Vec<&String> = unread.difference(&known).collect();
    assert!(
        new.is_empty(),
        "nobody reads {new:?}: give each a rule, or do not collect it"
    );
    let gone: Vec<&String> = known.difference(&unread).collect();
    assert!(
        gone.is_empty(),
        "{gone:?} have a reader or are gone: take them from the list"
    );
}
