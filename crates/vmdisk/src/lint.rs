//! Runs the rules over a document, and settles what its author allows.

use std::borrow::Cow;

use vmdisk_model::{Domain, DomainField, FieldPath, Scope};
use vmdisk_rules::{GuestNeeds, HostGuests};

use crate::rules::{Context, Missing, NotChecked, OtherGuests, Outcome, RULES};
use crate::starts::merged;
use crate::text_report::{Found, context_of, report};
use crate::trial::QemuTrialOutcome;
use crate::{Detail, Document, LintOptions, LintReport, template};

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
            let mut outcome =
                crate::rules::check_with(written.rule_input(), &context, &options.rules);
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
    let starts: Vec<_> = document.starts().map(|start| (start, options)).collect();
    compare(&starts, selects, &mut reports);
    merged(document, reports)
}

/// Runs the rules over all guests of one host, and compares them. The reports are in the order of the documents.
///
/// [`lint`] does not know the other guests of a host, and its report lists the rules about them as not checked.
///
/// ```
/// use vmdisk::{LintOptions, lint_all, read};
///
/// let guest = |name: &str| read(&format!(
///     "<domain type='kvm'><name>{name}</name><devices><disk type='file' device='disk'><driver name='qemu' type='raw'/>\
///      <source file='/srv/a.img'/><target dev='vda' bus='virtio'/></disk></devices></domain>"
/// ));
/// let reports = lint_all(&[guest("web1")?, guest("web2")?], &LintOptions::default());
/// let mut found = reports[1].diagnostics.iter();
/// assert!(found.any(|found| found.rule.name == "image-shared-by-guests"));
/// # Ok::<(), vmdisk::ReadFailure>(())
/// ```
pub fn lint_all(documents: &[Document], options: &LintOptions) -> Vec<LintReport> {
    let options = options.clone().of_all_guests();
    let planned = |document| match options.planned(document) {
        Some(planned) => Cow::Owned(planned),
        None => Cow::Borrowed(document),
    };
    let documents: Vec<Cow<'_, Document>> = documents.iter().map(planned).collect();
    let inputs: Vec<_> = documents.iter().map(|it| (&**it, &options)).collect();
    lint_each(&inputs)
}

/// As [`lint_all`], for planned documents with the options of each; guests with the same target are compared.
pub(crate) fn lint_each(inputs: &[(&Document, &LintOptions)]) -> Vec<LintReport> {
    let reports = inputs
        .iter()
        .map(|(document, options)| lint(*document, options));
    let mut reports: Vec<LintReport> = reports.collect();
    if inputs.iter().all(|(_, options)| options.compares_guests) {
        compare(inputs, true, &mut reports);
    }
    reports
}

/// Adds what guests that share a host find in each other.
fn compare(inputs: &[(&Document, &LintOptions)], selects: bool, reports: &mut [LintReport]) {
    let mut hosts: Vec<(&LintOptions, HostGuests)> = Vec::new();
    for (nth, (document, options)) in inputs.iter().enumerate() {
        let Some(needs) = guest_needs(document, options, nth) else {
            continue;
        };
        let known = hosts.iter().position(|(it, _)| it.target == options.target);
        let host = known.unwrap_or_else(|| {
            hosts.push((options, HostGuests::default()));
            hosts.len() - 1
        });
        hosts[host].1.add(nth, needs);
    }
    let conflicts = hosts
        .iter()
        .flat_map(|(options, guests)| guests.conflicts(options.index_of_host()));
    for (nth, others) in conflicts {
        let (document, options) = inputs[nth];
        let context = context_of(document, options);
        let found = crate::rules::check_guests(&context, &others);
        let mut found = report_further(document, options, found);
        if selects {
            found.keep(&options.selection);
        }
        reports[nth].diagnostics.extend(found.diagnostics);
        reports[nth].allowed.extend(found.allowed);
        reports[nth].not_checked.extend(found.not_checked);
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
    let mut found = Found::of(document, options, crate::rules::check_with);
    if !options.compares_guests {
        let fleet = options.fleet.as_ref();
        let hosts = fleet.map_or(0, |fleet| fleet.names().len());
        found
            .not_checked
            .extend(not_compared(document.domain(), hosts));
    }
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

/// The rules that compare guests as not checked, for a guest that QEMU runs, on each of some hosts.
fn not_compared(domain: &Domain, hosts: usize) -> impl Iterator<Item = NotChecked> {
    let is_guest = domain.scope == Scope::WholeGuest && domain.foreign_type().is_none();
    let rules = RULES
        .iter()
        .filter(move |it| is_guest && it.compares_guests());
    rules.map(move |rule| {
        let missing = Missing::new("the other guests of the host", Missing::NO_OTHERS);
        NotChecked {
            hosts: (0..hosts).collect(),
            ..NotChecked::new(rule, FieldPath::Domain(DomainField::Domain), missing)
        }
    })
}

/// The needs of the guest in `document`, by which guests of one host are compared; `None` if there is no guest that
/// QEMU runs. `input` is the number of the document in the run.
pub fn guest_needs(document: &Document, options: &LintOptions, input: usize) -> Option<GuestNeeds> {
    let context = Context {
        host: options.index_of_host(),
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
