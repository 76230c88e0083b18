//! Runs the rules over a document, and settles what its author allows.

use vmdisk_model::{DomainField, FieldPath};
use vmdisk_rules::{GuestNeeds, HostGuests};

use crate::rules::{Context, Missing, NotChecked, OtherGuests, Outcome, RULES};
use crate::starts::merged;
use crate::text_report::{Found, context_of, report};
use crate::trial::QemuTrialOutcome;
use crate::{Detail, Document, Host, LintOptions, LintReport, template};

/// A configuration to lint.
#[derive(Clone, Copy, Debug)]
pub enum LintInput<'a> {
    /// A document. A spec is planned for the host of the options first; for several hosts, for each of them.
    Document(&'a Document),
    /// A document, and the messages of a QEMU that tried its disks.
    Tried(&'a Document, &'a QemuTrialOutcome),
    /// A text that was generated from a spec. Each finding is in the words of the spec, which is
    /// [planned](LintOptions::planned) for the same host, and at its places.
    Generated {
        /// The text.
        written: &'a Document,
        /// The spec.
        spec: &'a Document,
    },
    /// A document that conflicts with other guests of its host, for the rules that compare guests.
    Beside(&'a Document, &'a OtherGuests),
    /// A document of which it is not known with which guests it shares a host, for the same rules.
    BesideUnknown(&'a Document),
}

impl<'a> From<&'a Document> for LintInput<'a> {
    fn from(document: &'a Document) -> Self {
        LintInput::Document(document)
    }
}

/// Runs the rules over a configuration.
pub fn lint<'a>(input: impl Into<LintInput<'a>>, options: &LintOptions) -> LintReport {
    let wants_edits = options.detail == Detail::Everything;
    let nothing = QemuTrialOutcome::default();
    let (document, further) = match input.into() {
        LintInput::Document(document) => {
            return lint_starts(document, options, &nothing, wants_edits, true);
        }
        LintInput::Tried(document, outcome) => {
            return lint_starts(document, options, outcome, wants_edits, true);
        }
        LintInput::Generated { written, spec } => {
            let context = context_of(written, options);
            let mut outcome = crate::rules::check(written.rule_input(), &context);
            for finding in &mut outcome.findings {
                // Places and edits of the written text.
                finding.span = None;
                finding.fix = None;
            }
            (spec, outcome)
        }
        LintInput::Beside(document, others) => {
            let context = context_of(document, options);
            (document, crate::rules::check_guests(&context, others))
        }
        LintInput::BesideUnknown(document) => (document, guests_not_compared()),
    };
    let mut report = report_further(document, options, further);
    report.keep(&options.selection);
    report
}

/// The report of findings that are added to the one of another text or guest.
fn report_further(document: &Document, options: &LintOptions, outcome: Outcome) -> LintReport {
    let nothing = QemuTrialOutcome::default();
    let found = Found {
        findings: outcome.findings,
        hosts: None,
        not_checked: outcome.not_checked,
        is_whole: false,
    };
    report(document, options, &nothing, false, found)
}

/// Runs all rules over a document with edits, and keeps findings that the options do not ask for: fixes must not cause them
/// either.
pub(crate) fn lint_unselected(document: &Document, options: &LintOptions) -> LintReport {
    lint_starts(document, options, &QemuTrialOutcome::default(), true, false)
}

/// Runs all rules over the starts of a document.
fn lint_starts(
    document: &Document,
    options: &LintOptions,
    outcome: &QemuTrialOutcome,
    wants_edits: bool,
    selects: bool,
) -> LintReport {
    let nothing = QemuTrialOutcome::default();
    let outcomes = std::iter::once(outcome).chain(std::iter::repeat(&nothing));
    let of_start = |(start, outcome)| lint_start(start, options, outcome, wants_edits, selects);
    let mut reports = document.starts().zip(outcomes).map(of_start);
    if document.further.is_empty() {
        let report = reports.next().unwrap_or_default();
        return match selects && document.repeats_text() {
            true => merged(document, [report]),
            false => report,
        };
    }
    // There may be many starts, and most of what their reports say is the same.
    if !document.is_guest_of_its_own() {
        return merged(document, reports);
    }
    let mut reports: Vec<LintReport> = reports.collect();
    compare(document, options, selects, &mut reports);
    merged(document, reports)
}

/// Adds what the guests of one document, which share a host, find in each other.
fn compare(document: &Document, options: &LintOptions, selects: bool, reports: &mut [LintReport]) {
    let starts: Vec<&Document> = document.starts().collect();
    let mut guests = HostGuests::default();
    for (nth, start) in starts.iter().enumerate() {
        let needs = guest_needs(start, options, nth);
        needs.into_iter().for_each(|it| guests.add(nth, it));
    }
    for (nth, others) in guests.conflicts(options.index()) {
        let context = context_of(starts[nth], options);
        let found = crate::rules::check_guests(&context, &others);
        let mut found = report_further(starts[nth], options, found);
        if selects {
            found.keep(&options.selection);
        }
        reports[nth].diagnostics.extend(found.diagnostics);
        reports[nth].allowed.extend(found.allowed);
    }
}

/// Runs all rules over the first start of a document.
fn lint_start(
    document: &Document,
    options: &LintOptions,
    outcome: &QemuTrialOutcome,
    wants_edits: bool,
    selects: bool,
) -> LintReport {
    let planned = options.planned(document);
    let document = planned.as_ref().unwrap_or(document);
    let mut found = Found::of(document, options, crate::rules::check);
    let selection = &options.selection;
    // Findings outside the selection need no texts. They still use the allowances of a document.
    let is_plain = document.template.is_none() && document.allowances().is_empty();
    if selects && found.hosts.is_none() && is_plain {
        let findings = &mut found.findings;
        findings.retain(|it| selection.has_reported(it.rule.name, it.severity));
    }
    let report = report(document, options, outcome, wants_edits, found);
    let mut report = template::lint(document, report, options, outcome, wants_edits);
    if selects {
        report.keep(selection);
    }
    report
}

/// The rules that compare guests as not checked, because it is not known which guests share a host.
fn guests_not_compared() -> Outcome {
    let rules = RULES.iter().filter(|rule| rule.compares_guests());
    let missing = || Missing::new("the host of each guest", Missing::NO_HOST);
    let at = FieldPath::Domain(DomainField::Domain);
    Outcome {
        not_checked: rules
            .map(|rule| NotChecked::new(rule, at, missing()))
            .collect(),
        ..Outcome::default()
    }
}

/// The needs of the guest in `document`, by which guests of one host are compared; `None` if there is no guest that
/// QEMU runs. `input` is the number of the document in the run.
pub fn guest_needs(document: &Document, options: &LintOptions, input: usize) -> Option<GuestNeeds> {
    let only = || options.fleet.as_ref()?.only_host().map(Host::index);
    let host = options.index().or_else(only);
    let context = Context {
        host,
        ..context_of(document, options)
    };
    GuestNeeds::of(&context, input)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::read;

    /// The rules with findings, and the rules that were not checked because of a variable.
    fn found(options: &str) -> (Vec<&'static str>, BTreeSet<&'static str>) {
        let line = format!("qemu-system-x86_64 -m 1G {options}");
        let report = lint(&read(&line).unwrap(), &LintOptions::default());
        let open = report.not_checked.iter();
        let open = open.filter(|it| it.missing.why == Missing::OPEN_VALUE);
        (
            report.diagnostics.iter().map(|it| it.rule.name).collect(),
            open.map(|it| it.rule.name).collect(),
        )
    }

    #[test]
    fn a_word_that_a_shell_fills_in_is_never_a_misspelt_name() {
        for word in [
            "$DRIVES",
            "$drive",
            "${drive}",
            "$drive1",
            "`drive`",
            "$(drive)",
            "%DRIVE%",
            "{{drive}}",
        ] {
            for options in [
                format!("-drive {word}"),
                format!("-drive \"{word}\""),
                format!("-drive file=/a,format=raw,{word}"),
                format!("-drive file=/a,format=raw,{word}if=virtio"),
                format!("-drive file=/a,format=raw,if=virtio,cach{word}=none"),
                format!("-blockdev {word}"),
                format!("-device {word}"),
                format!("-device virtio-blk-pci,{word}"),
                format!(
                    "-blockdev driver=file,node-name=a,filename=/a -device virtio-blk-pci,{word}"
                ),
                format!("-blockdev driver=file,node-name=a,filename=/a {word}"),
            ] {
                let (found, _) = found(&options);
                let expected: [&str; 0] = [];
                assert_eq!(found, expected, "{options}");
            }
        }
        // What is written beside such a word is checked.
        assert_eq!(
            found("-drive file=/a,format=raw,cache=unsafe,$X").0,
            ["cache-unsafe"]
        );
    }

    #[test]
    fn a_number_that_a_shell_fills_in_is_not_the_default() {
        let disk = "-drive file=/a,format=raw,if=none,id=d -device virtio-blk-pci,drive=d";
        for smp in [
            "$N",
            "${N}",
            "cpus=$N",
            "2,maxcpus=$N",
            "sockets=$N",
            "sockets=1,cores=$N",
        ] {
            let (found, open) = found(&format!("-smp {smp} {disk},num-queues=4"));
            assert!(!found.contains(&"queues-gt-vcpus"), "{smp}: {found:?}");
            assert!(open.contains("queues-gt-vcpus"), "{smp}: {open:?}");
        }
        let (known, _) = found(&format!("-smp 2 {disk},num-queues=4"));
        assert!(known.contains(&"queues-gt-vcpus"));
        for options in [
            format!("-smp 2 {disk},num-queues=$N"),
            format!("-smp $N {disk},vectors=2"),
            format!("-smp 2 {disk},num-queues=$N,vectors=2"),
            format!("-m $N {disk}"),
        ] {
            let (found, _) = found(&options);
            let numbers = [
                "queues-gt-vcpus",
                "queue-count-refused",
                "vectors-too-few",
                "memory-size-mismatch",
            ];
            assert!(
                !found.iter().any(|rule| numbers.contains(rule)),
                "{options}: {found:?}"
            );
        }
    }
}
