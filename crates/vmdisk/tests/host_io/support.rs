//! Runs the rules over a disk on a recorded host, and boils down what they said.

use std::path::{Path, PathBuf};

use vmdisk::rules::{Context, Finding, Outcome, Policy, Text, check};
use vmdisk_facts::{Facts, HostIndex, Target};
use vmdisk_fields::{NeutralSpeller, Phrase};

pub(crate) const DIRECT: [&str; 7] = [
    "btrfs-cow-image",
    "btrfs-dio-buffered",
    "btrfs-dio-csum-corruption",
    "btrfs-dio-raid-mirror-divergence",
    "io-native-on-buffered-dio",
    "odirect-silently-buffered",
    "odirect-unsupported",
];

pub(crate) const CACHE: [&str; 5] = [
    "cache-implicit",
    "cache-unsafe",
    "cache-writethrough",
    "native-without-direct",
    "shareable-cached",
];

pub(crate) const FORMAT: [&str; 2] = ["format-mismatch", "format-missing"];

pub(crate) const THIN: [&str; 4] = [
    "detect-zeroes-unmap-no-discard",
    "discard-missing-thin",
    "thin-chunk-large-with-snapshots",
    "thin-zeroing-off",
];

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

pub(crate) fn facts_in(file: &Path) -> Facts {
    let text =
        std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let read =
        Facts::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let warnings = &read.warnings;
    assert!(warnings.is_empty(), "{}: {warnings:?}", file.display());
    read.facts
}

/// The recorded host of this name.
pub(crate) fn recorded(host: &str) -> Facts {
    facts_in(&fixtures().join(format!("facts/{host}.json")))
}

/// A host as a person writes it down.
pub(crate) fn written(yaml: &str) -> Facts {
    let text = format!("schema_version: '1.0'\n{yaml}");
    let read = Facts::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    read.facts
}

/// A disk with these attributes in its `<driver>`, this source and these further children.
pub(crate) fn disk(device: &str, driver: &str, source: &str, rest: &str) -> String {
    let (kind, source) = if source.starts_with("/dev/") {
        ("block", format!("<source dev='{source}'/>"))
    } else if source.is_empty() {
        ("file", String::new())
    } else {
        ("file", format!("<source file='{source}'/>"))
    };
    let target = match device {
        "cdrom" => "<target dev='sda' bus='sata'/>",
        "floppy" => "<target dev='fda' bus='fdc'/>",
        "lun" => "<target dev='sda' bus='scsi'/>",
        _ => "<target dev='vda' bus='virtio'/>",
    };
    format!(
        "<disk type='{kind}' device='{device}'><driver name='qemu' {driver}/>{source}{target}{rest}</disk>"
    )
}

/// A phrase in plain words.
pub(crate) fn in_words(phrase: &Phrase) -> String {
    phrase.render(&NeutralSpeller)
}

/// What all rules say of a guest or a disk.
pub(crate) fn run(xml: &str, facts: Option<&Facts>, target: &str, policy: Policy) -> Outcome {
    let document = vmdisk_libvirt::read(xml).unwrap_or_else(|failure| panic!("{failure:?}\n{xml}"));
    let problems = &document.problems;
    assert!(problems.is_empty(), "{problems:?}\n{xml}");
    let target = match target {
        "" => Target::default(),
        text => text.parse().expect("a test names a valid target"),
    };
    let host = facts.map(HostIndex::new);
    check(
        Text::Xml(&document, xml),
        &Context {
            consumer: vmdisk::rules::Consumer::Libvirt,
            domain: &document.domain,
            target: &target,
            host: host.as_ref(),
            policy,
            versioned_syntax: &document.versioned_syntax,
            names_missing: true,
            open_fields: None,
        },
    )
}

/// What all rules say of it on this host.
pub(crate) fn on(facts: &Facts, xml: &str) -> Outcome {
    run(xml, Some(facts), "", Policy::default())
}

/// What these rules said, as `rule severity`, sorted.
pub(crate) fn said(outcome: &Outcome, rules: &[&str]) -> Vec<String> {
    let mut said: Vec<String> = outcome
        .findings
        .iter()
        .filter(|finding| rules.contains(&finding.rule.name))
        .map(|finding| format!("{} {}", finding.rule.name, finding.severity))
        .collect();
    said.sort();
    said
}

/// Which of these rules could not look at something.
pub(crate) fn missed<'a>(outcome: &Outcome, rules: &[&'a str]) -> Vec<&'a str> {
    let mut names = rules.to_vec();
    names.retain(|name| {
        outcome
            .not_checked
            .iter()
            .any(|missed| missed.rule.name == *name)
    });
    names
}

/// The first finding of a rule that has to have one.
pub(crate) fn finding<'o>(outcome: &'o Outcome, rule: &str) -> &'o Finding {
    outcome
        .findings
        .iter()
        .find(|finding| finding.rule.name == rule)
        .unwrap_or_else(|| panic!("{rule} says nothing: {outcome:#?}"))
}
