//! Executes the examples in the rules' pages, and holds the table of rules to its own habits.
#![allow(
    clippy::disallowed_methods,
    reason = "tests read the facts fixtures that the examples name"
)]

mod command_lines;
mod placeholders;
mod texts;
mod unfinished;
mod variations;

use std::path::{Path, PathBuf};

use vmdisk::rules::{
    ComparedHost, Comparison, Consumer, Context, Evidence, Example, Group, Missing, Outcome,
    Policy, RULES, Rule, Text, check, check_guests, compare,
};
use vmdisk::{GuestNeeds, HostGuests};
use vmdisk_facts::{Facts, HostIndex, Target};
use vmdisk_model::{Change, Domain, DomainField, FieldPath};
use vmdisk_source::{Edit, SourceMap, VersionedSyntax, apply_edits};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn facts_named(name: &str) -> Facts {
    let path = fixtures().join(format!("facts/{name}.json"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
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

fn target_of(example: &Example) -> Target {
    let words: Vec<String> = ["qemu", "libvirt", "kernel", "machine"]
        .iter()
        .filter_map(|key| Some(format!("{key}={}", example.value_of(&format!("{key}-"))?)))
        .collect();
    if words.is_empty() {
        return Target::default();
    }
    words
        .join(",")
        .parse()
        .expect("a fence names a valid target")
}

fn policy_of(example: &Example) -> Policy {
    Policy::ALL
        .iter()
        .copied()
        .find(|policy| example.says(policy.as_str()))
        .unwrap_or_default()
}

/// The text of an example, read as its fence says: XML or a command line.
enum Document {
    Xml(vmdisk_libvirt::Document),
    CommandLine(vmdisk_qemu::Document),
}

impl Document {
    fn read(rule: &Rule, example: &Example, text: &str) -> Self {
        let fail =
            |failure: &dyn std::fmt::Debug| -> ! { panic!("{}: {failure:?}\n{text}", rule.name) };
        if example.says("args") {
            match vmdisk_qemu::read(text) {
                Ok(document) => Document::CommandLine(document),
                Err(failure) => fail(&failure),
            }
        } else {
            match vmdisk_libvirt::read(text) {
                Ok(document) => Document::Xml(document),
                Err(failure) => fail(&failure),
            }
        }
    }

    fn domain(&self) -> &Domain {
        match self {
            Document::Xml(document) => &document.domain,
            Document::CommandLine(document) => &document.domain,
        }
    }

    fn rule_input<'a>(&'a self, text: &'a str) -> Text<'a> {
        match self {
            Document::Xml(document) => Text::Xml(document, text),
            Document::CommandLine(document) => Text::CommandLine(document),
        }
    }

    fn versioned_syntax(&self) -> &[VersionedSyntax<FieldPath>] {
        match self {
            Document::Xml(document) => &document.versioned_syntax,
            Document::CommandLine(_) => &[],
        }
    }

    fn source_map(&self) -> &SourceMap<FieldPath> {
        match self {
            Document::Xml(document) => &document.source_map,
            Document::CommandLine(document) => &document.source_map,
        }
    }

    fn edits(&self, rule: &Rule, text: &str, changes: &[Change]) -> Vec<Edit> {
        let fail =
            |error: &dyn std::fmt::Debug| -> ! { panic!("{}: {changes:?}: {error:?}", rule.name) };
        match self {
            Document::Xml(document) => vmdisk_libvirt::edits_of_all(text, document, changes)
                .unwrap_or_else(|error| fail(&error)),
            Document::CommandLine(document) => {
                vmdisk_qemu::edits_of_all(document, changes).unwrap_or_else(|error| fail(&error))
            }
        }
    }
}

/// Runs all rules over the text of an example, as its fence asks.
fn run(rule: &Rule, example: &Example, text: &str) -> (Document, Outcome) {
    let document = Document::read(rule, example, text);
    let facts: Vec<Facts> = example
        .values_of("facts-")
        .into_iter()
        .map(facts_named)
        .collect();
    let hosts: Vec<HostIndex<'_>> = facts.iter().map(HostIndex::new).collect();
    if hosts.len() > 1 {
        let outcome = run_on_several(document.domain(), &hosts);
        return (document, outcome);
    }
    let target = target_of(example);
    let context = Context {
        domain: document.domain(),
        target: &target,
        host: hosts.first(),
        policy: policy_of(example),
        versioned_syntax: document.versioned_syntax(),
        names_missing: true,
        open_fields: match &document {
            Document::Xml(_) => None,
            Document::CommandLine(line) => Some(&line.open_fields),
        },
        consumer: match &document {
            Document::Xml(_) => Consumer::Libvirt,
            Document::CommandLine(_) => Consumer::Qemu,
        },
    };
    let mut outcome = check(document.rule_input(text), &context);
    add_other_guests(example, &context, &mut outcome);
    (document, outcome)
}

/// Compares the guest of an example with another one on its host, if its fence names one.
fn add_other_guests(example: &Example, context: &Context<'_>, outcome: &mut Outcome) {
    let Some(name) = example.value_of("beside-") else {
        return;
    };
    if name == "unknown" {
        let at = FieldPath::Domain(DomainField::Domain);
        for rule in RULES.iter().filter(|rule| rule.compares_guests()) {
            let missing = Missing::new("the other guests of the host", Missing::NO_OTHERS);
            outcome.run(rule, |report| report.not_checked(at, missing));
        }
        return;
    }
    let text = std::fs::read_to_string(fixtures().join(format!("beside/{name}.xml")))
        .expect("a fence names a fixture");
    let other = vmdisk_libvirt::read(&text).expect("a fixture is a guest");
    let mut guests = HostGuests::default();
    let of_other = Context {
        domain: &other.domain,
        ..*context
    };
    for (number, context) in [of_other, *context].iter().enumerate() {
        if let Some(needs) = GuestNeeds::of(context, number) {
            guests.add(number, needs);
        }
    }
    for (number, others) in guests.conflicts(context.host) {
        if number == 1 {
            let found = check_guests(context, &others);
            outcome.findings.extend(found.findings);
        }
    }
}

/// What comparing several hosts says.
fn run_on_several(domain: &Domain, hosts: &[HostIndex<'_>]) -> Outcome {
    let targets: Vec<Target> = hosts
        .iter()
        .map(|host| Target::from_facts(host.facts()))
        .collect();
    let hosts: Vec<ComparedHost<'_>> = hosts
        .iter()
        .zip(&targets)
        .map(|(host, target)| ComparedHost {
            name: "a host",
            count: 1,
            host,
            target,
        })
        .collect();
    compare(&Comparison {
        domain,
        hosts: &hosts,
    })
}

fn count(rule: &Rule, outcome: &Outcome) -> usize {
    outcome
        .findings
        .iter()
        .filter(|finding| finding.rule == rule)
        .count()
}

/// The text after the rule's own fix.
fn mended(rule: &Rule, text: &str, document: &Document, outcome: &Outcome) -> String {
    let fix = outcome
        .findings
        .iter()
        .find(|finding| finding.rule == rule)
        .and_then(|finding| finding.fix.as_ref())
        .unwrap_or_else(|| panic!("{} has a `fixed` example and offers no fix", rule.name));
    let mut edits: Vec<Edit> = fix.edits.clone();
    edits.extend(document.edits(rule, text, &fix.changes));
    apply_edits(text, &edits).expect("the edits of one fix do not overlap")
}

/// Rules that the facade reports, because they are about the file or a trial and not about the disks.
const REPORTED_BY_THE_FACADE: [&str; 5] = [
    "allowance-unknown-rule",
    "allowance-unused",
    "allowance-without-reason",
    "refused-by-qemu",
    "spec-refused",
];

#[test]
fn every_example_does_what_its_fence_says() {
    for rule in RULES {
        if REPORTED_BY_THE_FACADE.contains(&rule.name) {
            continue;
        }
        let (mut reported, mut silent) = (0, 0);
        let mut last: Option<(Example, String)> = None;
        for example in rule.examples() {
            let shown = format!("{}: {:?}\n{}", rule.name, example.words, example.text);
            if example.says("fixed") {
                let (source, result) = last
                    .take()
                    .unwrap_or_else(|| panic!("nothing to fix before {shown}"));
                assert_eq!(result, example.text, "{shown}");
                let (_, outcome) = run(rule, &source, &example.text);
                assert_eq!(
                    count(rule, &outcome),
                    0,
                    "still reported after the fix: {shown}"
                );
                continue;
            }
            let (document, outcome) = run(rule, &example, &example.text);
            let missed: Vec<_> = outcome
                .not_checked
                .iter()
                .filter(|missed| missed.rule == *rule)
                .collect();
            if example.says("reported") {
                reported += 1;
                assert_eq!(count(rule, &outcome), 1, "{shown}{:#?}", outcome);
                let finding = outcome
                    .findings
                    .iter()
                    .find(|finding| finding.rule == *rule)
                    .unwrap();
                assert!(
                    finding.span.is_some() || document.source_map().resolve(finding.at).is_some(),
                    "{shown}"
                );
                assert!(
                    finding.details().help.is_some(),
                    "says nothing about what to write instead: {shown}"
                );
                if finding.fix.is_some() {
                    let result = mended(rule, &example.text, &document, &outcome);
                    last = Some((example, result));
                }
            } else if example.says("not-checked") {
                assert_eq!(
                    (count(rule, &outcome), missed.is_empty()),
                    (0, false),
                    "{shown}"
                );
            } else if example.says("not-reported") {
                silent += 1;
                assert_eq!(count(rule, &outcome), 0, "{shown}{:#?}", outcome.findings);
                assert!(
                    missed.is_empty(),
                    "silence must mean checked: {shown}{missed:?}"
                );
            } else {
                panic!("a fence says none of reported, not-reported, not-checked, fixed: {shown}");
            }
        }
        assert!(
            reported > 0 && silent > 0,
            "{} needs examples of both kinds",
            rule.name
        );
    }
}

#[test]
fn rules_are_sorted_unique_and_named_as_their_files() {
    assert!(
        RULES.windows(2).all(|pair| pair[0].name < pair[1].name),
        "sorted by name"
    );
    for rule in RULES {
        let file = format!("/{}.rs", rule.name.replace('-', "_"));
        assert!(
            rule.file.ends_with(&file),
            "{} is declared in {}",
            rule.name,
            rule.file
        );
    }
}

#[test]
fn every_page_has_the_same_shape() {
    for rule in RULES {
        let headings: Vec<&str> = rule
            .page
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("## "))
            .collect();
        let shape = [
            "## What it reports",
            "## Why it matters",
            "## Use instead",
            "## Reported",
            "## Not reported",
        ];
        assert_eq!(headings, shape, "{}", rule.name);
        let summary = rule.summary();
        assert!(
            summary.ends_with('.') && summary.matches(". ").count() == 0,
            "{}: one sentence: {summary}",
            rule.name
        );
        assert!(
            rule.page
                .lines()
                .nth(1)
                .is_some_and(|line| line.trim().is_empty()),
            "{}: a blank line after the summary",
            rule.name
        );
        assert!(!rule.evidence.is_empty(), "{} stands on nothing", rule.name);
        for other in rule.supersedes {
            assert!(
                vmdisk::rules::find(other).is_some_and(|other| other != *rule),
                "{} supersedes {other}",
                rule.name
            );
        }
    }
}

#[test]
fn a_performance_rule_has_figures_or_says_that_it_has_none() {
    for rule in RULES.iter().filter(|rule| rule.group == Group::Performance) {
        let has = rule.evidence.iter().any(|evidence| {
            matches!(
                evidence,
                Evidence::Measured { .. } | Evidence::NotMeasuredHere(_)
            )
        });
        assert!(has, "{} claims speed without figures", rule.name);
    }
}

#[test]
fn each_finding_of_a_rule_about_refusals_by_libvirt_has_a_note_that_says_the_consequence() {
    let is_refused = |evidence: &Evidence| {
        let program = match evidence {
            Evidence::Refused { by, .. } => *by,
            _ => "",
        };
        program.starts_with("libvirt") && !evidence.is_at_start()
    };
    let about_refusals = RULES
        .iter()
        .filter(|rule| rule.libvirt_only && rule.evidence.iter().any(is_refused));
    let mut tried = 0;
    for rule in about_refusals {
        for example in rule.examples() {
            if !example.says("reported") {
                continue;
            }
            let (_, outcome) = run(rule, &example, &example.text);
            for finding in outcome.findings.iter().filter(|it| it.rule == *rule) {
                assert!(
                    !finding.details().notes.is_empty(),
                    "{}: {finding:?}",
                    rule.name
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "{tried}");
}
