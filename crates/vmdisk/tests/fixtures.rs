//! Clean guests on the hosts they are for: no rule may speak, and none may be unable to look.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

use std::path::{Path, PathBuf};

use vmdisk::rules::{Context, NotChecked, Policy, Text, check};
use vmdisk::{Detail, Diagnostic, LintOptions, lint};
use vmdisk_facts::{Facts, HostIndex, Target};

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

/// Files of a directory of fixtures whose names end like this, sorted.
pub(crate) fn files(name: &str, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory(name)).expect("the fixtures are in the repository");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a directory can be read to its end").path())
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    files.sort();
    files
}

pub(crate) fn facts_of(path: &Path) -> Facts {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let read =
        Facts::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        read.warnings.is_empty(),
        "{}: {:?}",
        path.display(),
        read.warnings
    );
    read.facts
}

#[test]
fn recorded_facts_are_read_without_a_warning() {
    let all: Vec<PathBuf> = ["facts", "mistakes", "clean"]
        .iter()
        .flat_map(|name| files(name, ".json"))
        .collect();
    assert!(all.len() > 10, "the fixtures were not found: {all:?}");
    for path in all {
        facts_of(&path);
    }
}

#[test]
fn no_rule_speaks_about_a_clean_guest_and_none_is_unable_to_look() {
    let guests = files("clean", ".xml");
    assert!(guests.len() >= 3, "the guests were not found: {guests:?}");
    for path in guests {
        let text = std::fs::read_to_string(&path).unwrap();
        let document = vmdisk_libvirt::read(&text)
            .unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        let facts = facts_of(&path.with_extension("facts.json"));
        let host = HostIndex::new(&facts);
        let target = Target::from_facts(&facts);
        for policy in Policy::ALL {
            let context = Context {
                consumer: vmdisk::rules::Consumer::Libvirt,
                domain: &document.domain,
                target: &target,
                host: Some(&host),
                policy: *policy,
                versioned_syntax: &document.versioned_syntax,
                names_missing: true,
                open_fields: None,
            };
            let mut outcome = check(Text::Xml(&document, &text), &context);
            // libvirt has no word for what a daemon needs to be told of flushes, so that XML cannot be free of it.
            outcome
                .findings
                .retain(|finding| finding.rule.name != "vhost-user-flushes-lost");
            assert!(
                outcome.findings.is_empty(),
                "{}: {:#?}",
                path.display(),
                outcome.findings
            );
            let missed: Vec<String> = outcome
                .not_checked
                .iter()
                .map(|missed| format!("{} {:?}", missed.rule.name, missed.missing))
                .collect();
            assert!(missed.is_empty(), "{}: {missed:#?}", path.display());
        }
    }
}

#[test]
fn titles_alone_come_with_the_places_the_fixes_and_the_reasons_of_everything() {
    let mut fixes = 0;
    let folders = ["mistakes", "fixes", "guests"];
    let ends = [".xml", ".args"].iter();
    for path in ends
        .flat_map(|end| folders.map(|name| files(name, end)))
        .flatten()
    {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(document) = vmdisk::read(&text) else {
            continue;
        };
        let seen = |detail| {
            let options = LintOptions::default().detail(detail);
            let report = lint(&document, &options);
            let finding = |it: &Diagnostic| {
                let fix = it.fix.as_ref().map(|fix| fix.applicability);
                (it.rule.name, it.title.clone(), it.place.span, fix)
            };
            let missed = |it: &NotChecked| (it.rule.name, it.at, it.missing.why.clone());
            (
                report.diagnostics.iter().map(finding).collect::<Vec<_>>(),
                report.not_checked.iter().map(missed).collect::<Vec<_>>(),
            )
        };
        let everything = seen(Detail::Everything);
        fixes += everything
            .0
            .iter()
            .filter(|(.., fix)| fix.is_some())
            .count();
        assert_eq!(seen(Detail::Titles), everything, "{}", path.display());
    }
    assert!(fixes >= 10, "the fixtures have only {fixes} fixes");
}
