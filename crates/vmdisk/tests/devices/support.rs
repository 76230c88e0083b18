//! Runs one rule over a text.

use std::path::Path;

use vmdisk::rules::{Context, Finding, FindingText, Outcome, Rule, Severity, Text, check};
use vmdisk_facts::{Facts, HostIndex, Target};
use vmdisk_libvirt::{Document, XmlSpeller};
use vmdisk_model::{Change, FieldPath};
use vmdisk_source::apply_edits;

/// A finding, with its texts in libvirt's words.
#[derive(Debug)]
pub(crate) struct Found {
    finding: Finding,
    pub(crate) text: FindingText,
}

impl std::ops::Deref for Found {
    type Target = Finding;

    fn deref(&self) -> &Finding {
        &self.finding
    }
}

/// The result of one rule.
pub(crate) struct Verdict {
    pub(crate) findings: Vec<Found>,
    /// What was missing, in words.
    pub(crate) missed: Vec<String>,
}

impl Verdict {
    /// The only finding.
    #[track_caller]
    pub(crate) fn one(&self) -> &Found {
        assert_eq!(self.findings.len(), 1, "{:#?}", self.findings);
        &self.findings[0]
    }

    /// Nothing is reported, and nothing could not be looked at.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        assert!(self.findings.is_empty(), "{:#?}", self.findings);
        assert!(self.missed.is_empty(), "{:?}", self.missed);
    }

    /// Nothing is reported, because this was missing.
    #[track_caller]
    pub(crate) fn missed(&self, words: &str) {
        assert!(self.findings.is_empty(), "{:#?}", self.findings);
        assert!(
            self.missed.iter().any(|missed| missed.contains(words)),
            "{:?}",
            self.missed
        );
    }

    /// Severities in the order of places.
    pub(crate) fn severities(&self) -> Vec<Severity> {
        self.findings
            .iter()
            .map(|finding| finding.severity)
            .collect()
    }
}

/// What a rule says of a text, without facts.
pub(crate) fn lint(rule: &str, text: &str) -> Verdict {
    run(rule, text, None)
}

/// What a rule says of a text on a host of `fixtures/facts`.
pub(crate) fn lint_on(rule: &str, facts: &str, text: &str) -> Verdict {
    run(rule, text, Some(&fixture(facts)))
}

/// What a rule says of a text on a host that the JSON describes.
pub(crate) fn lint_with(rule: &str, json: &str, text: &str) -> Verdict {
    run(rule, text, Some(&facts(json)))
}

/// Facts from JSON that have nothing to be warned of.
pub(crate) fn facts(json: &str) -> Facts {
    let read = Facts::from_json(json).unwrap_or_else(|error| panic!("{error}\n{json}"));
    let other: Vec<_> = read
        .warnings
        .iter()
        .filter(|warning| warning.path != "schema_version")
        .collect();
    assert!(other.is_empty(), "{other:?}");
    read.facts
}

/// The facts file of a recorded host.
pub(crate) fn fixture_text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/facts")
        .join(format!("{name}.json"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A recorded host.
pub(crate) fn fixture(name: &str) -> Facts {
    facts(&fixture_text(name))
}

fn run(rule: &str, text: &str, facts: Option<&Facts>) -> Verdict {
    let rule = vmdisk::rules::find(rule).unwrap_or_else(|| panic!("no rule {rule}"));
    let host = facts.map(HostIndex::new);
    let (document, said) = said(rule, text, host.as_ref());
    for finding in &said.findings {
        mends(rule, text, &document, host.as_ref(), finding);
    }
    said
}

fn said(rule: &Rule, text: &str, host: Option<&HostIndex<'_>>) -> (Document, Verdict) {
    let document = vmdisk_libvirt::read(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let target = Target::default();
    let mut context = Context::new(&document.domain, &target);
    context.host = host;
    let Outcome {
        findings,
        not_checked,
        ..
    } = check(Text::Xml(&document, text), &context);
    let said = Verdict {
        findings: findings
            .into_iter()
            .filter(|finding| finding.rule == rule)
            .map(|finding| Found {
                text: finding.render(&XmlSpeller(&document.domain)),
                finding,
            })
            .collect(),
        missed: not_checked
            .into_iter()
            .filter(|missed| missed.rule == rule)
            .map(|missed| format!("{}: {}", missed.missing.what, missed.missing.why))
            .collect(),
    };
    (document, said)
}

/// Every fix can be made in the text, leaves a text that can be read, and ends its finding.
fn mends(
    rule: &Rule,
    text: &str,
    document: &Document,
    host: Option<&HostIndex<'_>>,
    finding: &Found,
) {
    let Some(fix) = &finding.fix else { return };
    let edits = vmdisk_libvirt::edits_of_all(text, document, &fix.changes)
        .unwrap_or_else(|error| panic!("{:?}: {error:?}\n{text}", fix.changes));
    let fixed = apply_edits(text, &edits).expect("the edits of one fix do not overlap");
    let (document, after) = said(rule, &fixed, host);
    assert!(
        document.problems.is_empty(),
        "{fixed}\n{:?}",
        document.problems
    );
    let is_there_still =
        |other: &Found| other.at == finding.at && other.text.title == finding.text.title;
    assert!(
        !after.findings.iter().any(is_there_still),
        "still reported: {}\n{fixed}",
        finding.text.title
    );
}

/// A whole guest around these devices; `rest` stands before them.
pub(crate) fn guest(rest: &str, devices: &str) -> String {
    format!(
        "<domain type='kvm'><name>a</name>{rest}<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features><devices>{devices}</devices></domain>"
    )
}

/// A disk in a file: attributes of the driver, path, target and bus, and what else is inside.
pub(crate) fn disk(driver: &str, path: &str, dev: &str, bus: &str, inside: &str) -> String {
    format!(
        "<disk type='file' device='disk'><driver name='qemu' type='raw' {driver}/><source file='{path}'/><target dev='{dev}' bus='{bus}'/>{inside}</disk>"
    )
}

/// A disk on a block device.
pub(crate) fn block(driver: &str, path: &str, dev: &str, bus: &str, inside: &str) -> String {
    format!(
        "<disk type='block' device='disk'><driver name='qemu' type='raw' {driver}/><source dev='{path}'/><target dev='{dev}' bus='{bus}'/>{inside}</disk>"
    )
}

/// What a finding's fix sets, in order; `None` for what it removes.
pub(crate) fn fix_of(finding: &Found) -> Vec<(FieldPath, Option<&'static str>)> {
    let changes = finding.fix.iter().flat_map(|fix| &fix.changes);
    changes
        .map(|change| match change {
            Change::Set { at, value } => (*at, Some(&*value.to_string().leak())),
            Change::Remove { at } => (*at, None),
        })
        .collect()
}

/// Everything a finding says, for looking at single words.
pub(crate) fn text_of(finding: &Found) -> String {
    let FindingText {
        title,
        label,
        related,
        notes,
        help,
    } = &finding.text;
    let texts = std::iter::once(title)
        .chain(label)
        .chain(notes)
        .chain(related)
        .chain(help);
    texts.map(String::as_str).collect::<Vec<_>>().join("\n")
}
