//! Runs the rules over a document, and settles what its author allows.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::diagnostic::mask;
use crate::rules::{
    CheckText, Consumer, Context, Finding, Missing, NotChecked, OtherGuests, Outcome, RULES, Rule,
    Severity,
};
use vmdisk_fields::{OpenVersions, Phrase};
use vmdisk_model::{DomainField, FieldPath};
use vmdisk_plan::SpecMistake;
use vmdisk_rules::{GuestNeeds, HostGuests};
use vmdisk_source::{Allowance, Edit, Span};

use crate::starts::merged;
use crate::trial::{QemuMessage, QemuTrialOutcome};
use crate::{
    AllowedBy, Applicability, Detail, Diagnostic, DiskIdentity, Document, Fleet, FoundOn, Host,
    LintOptions, LintReport, RelatedPlace, ResolvedFix, Source, template,
};

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
    let mut report = template::lint(document, report, options, outcome, wants_edits, lint_text);
    if selects {
        report.keep(selection);
    }
    report
}

/// As [`lint_starts`], with placeholders as if they were values, and for one start.
fn lint_text(
    document: &Document,
    options: &LintOptions,
    outcome: &QemuTrialOutcome,
    wants_edits: bool,
    check: CheckText,
) -> LintReport {
    let planned = options.planned(document);
    let document = planned.as_ref().unwrap_or(document);
    let found = Found::of(document, options, check);
    report(document, options, outcome, wants_edits, found)
}

/// What the rules say of a document.
struct Found {
    findings: Vec<Finding>,
    /// The hosts of each finding, where several are compared.
    hosts: Option<Vec<FoundOn>>,
    not_checked: Vec<NotChecked>,
    /// False for findings that are added to another report, which has those of the text itself.
    is_whole: bool,
}

impl Found {
    fn of(document: &Document, options: &LintOptions, check: CheckText) -> Self {
        let context = context_of(document, options);
        let text = document.rule_input();
        let Some(fleet) = &options.fleet else {
            let Outcome {
                mut findings,
                not_checked,
                ..
            } = check(text, &context);
            if let Source::Spec(_) = &document.source {
                // Spans of the XML that is written for the spec.
                findings.iter_mut().for_each(|finding| finding.span = None);
            }
            return Found {
                findings,
                hosts: None,
                not_checked,
                is_whole: true,
            };
        };
        let (findings, not_checked) = fleet.check(text, &context, &|facts, target| {
            let planned = document.planned_for(facts, target)?;
            let host = planned.host_after().cloned();
            Some((planned.into_domain(), host))
        });
        let (findings, hosts) = findings.into_iter().unzip();
        Found {
            findings,
            hosts: Some(hosts),
            not_checked,
            is_whole: true,
        }
    }
}

/// The report of what was found.
fn report(
    document: &Document,
    options: &LintOptions,
    outcome: &QemuTrialOutcome,
    wants_edits: bool,
    found: Found,
) -> LintReport {
    let Found {
        findings,
        hosts,
        mut not_checked,
        is_whole,
    } = found;
    not_checked.retain(|missed| !options.ignored.contains(missed.rule.name));
    let mut report = LintReport {
        diagnostics: Vec::with_capacity(findings.len()),
        not_checked,
        ..LintReport::default()
    };
    let rule = crate::rules::find("refused-by-qemu").expect("the rule is in the table");
    let mut hosts = hosts.map(Vec::into_iter);
    let found = findings.into_iter().map(|finding| {
        let hosts = hosts.as_mut().and_then(Iterator::next);
        resolve(document, finding, hosts, options, wants_edits)
    });
    let refusals = outcome
        .messages
        .iter()
        .map(|message| refusal(document, rule, outcome, message));
    let mistakes = is_whole.then(|| spec_mistakes(document, options.fleet.as_ref()));
    let mut used = vec![BTreeSet::new(); document.allowances().len()];
    for diagnostic in found.chain(mistakes.into_iter().flatten()).chain(refusals) {
        if document.compares_unknown(&diagnostic) {
            let missing = Missing::new("a variable", Missing::OPEN_VALUE);
            let missed = NotChecked::new(diagnostic.rule, diagnostic.at, missing);
            report.not_checked.push(missed);
            continue;
        }
        settle(&mut report, diagnostic, document, options, &mut used);
    }
    if !options.ignored.contains(rule.name) {
        report.not_checked.extend(
            outcome
                .not_tried
                .iter()
                .map(|(at, why)| NotChecked::new(rule, *at, Missing::new("a trial", why.clone()))),
        );
    }
    let complaints = is_whole.then(|| complaints_about_allowances(document, &used));
    for diagnostic in complaints.into_iter().flatten() {
        if options.ignored.contains(diagnostic.rule.name) {
            report.allowed.push(Diagnostic {
                allowed_by: Some(AllowedBy::Ignored),
                ..diagnostic
            });
        } else {
            report.diagnostics.push(diagnostic);
        }
    }
    if is_whole && options.detail == Detail::Everything {
        document.name_variables(&mut report.not_checked);
    }
    mask_secrets(&mut report);
    options.selection.set_severities(&mut report.diagnostics);
    options.selection.set_severities(&mut report.allowed);
    let order = |diagnostic: &Diagnostic| (diagnostic.place.span, diagnostic.rule.name);
    report.diagnostics.sort_by_key(order);
    report
        .diagnostics
        .dedup_by(|next, first| is_same(next, first));
    report.allowed.sort_by_key(order);
    report
}

/// Masks the secrets that the texts of a report quote, once for every output.
fn mask_secrets(report: &mut LintReport) {
    let diagnostics = report.diagnostics.iter_mut().chain(&mut report.allowed);
    diagnostics.for_each(Diagnostic::mask_secrets);
    for missed in &mut report.not_checked {
        mask(&mut missed.missing.what);
        if let Cow::Owned(why) = &mut missed.missing.why {
            mask(why);
        }
    }
}

/// True for two findings that a reader cannot tell apart, such as those of two devices about their common node.
fn is_same(a: &Diagnostic, b: &Diagnostic) -> bool {
    a.place.span == b.place.span
        && a.rule == b.rule
        && (&a.title, &a.help, &a.hosts) == (&b.title, &b.help, &b.hosts)
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

pub(crate) fn context_of<'a>(document: &'a Document, options: &'a LintOptions) -> Context<'a> {
    Context {
        domain: document.domain(),
        target: &options.target,
        host: options
            .index()
            .map(|host| document.host_after().map_or(host, Host::index)),
        policy: options.policy,
        versioned_syntax: document.versioned_syntax(),
        names_missing: options.detail == Detail::Everything,
        open_fields: document.open_fields(),
        consumer: match &document.source {
            // A spec is written for libvirt unless it is generated for QEMU, and libvirt takes less.
            Source::LibvirtXml(_) | Source::Spec(_) => Consumer::Libvirt,
            Source::QemuCommandLine(_) => Consumer::Qemu,
        },
    }
}

/// The mistakes of a spec as findings. For several hosts each mistake is reported once, with its hosts.
fn spec_mistakes(document: &Document, fleet: Option<&Fleet>) -> Vec<Diagnostic> {
    let Source::Spec(spec) = &document.source else {
        return Vec::new();
    };
    let Some(fleet) = fleet else {
        let mistakes = spec.planned.mistakes.iter();
        return mistakes
            .map(|mistake| spec_refused(document, mistake, None))
            .collect();
    };
    let mut found: Vec<(SpecMistake, Vec<usize>)> = Vec::new();
    for (facts, target, hosts) in fleet.planning_hosts() {
        for mistake in spec.spec.plan(&document.text, facts, target).mistakes {
            match found.iter_mut().find(|(known, _)| *known == mistake) {
                Some((_, affected)) => affected.extend(hosts),
                None => found.push((mistake, hosts.to_vec())),
            }
        }
    }
    found
        .into_iter()
        .map(|(mistake, mut affected)| {
            affected.sort_unstable();
            let others = (0..fleet.names().len()).filter(|host| !affected.contains(host));
            let hosts = FoundOn {
                not_affected: others.collect(),
                affected,
                not_checked: Vec::new(),
            };
            spec_refused(document, &mistake, Some(hosts))
        })
        .collect()
}

fn spec_refused(document: &Document, mistake: &SpecMistake, hosts: Option<FoundOn>) -> Diagnostic {
    let rule = crate::rules::find("spec-refused").expect("the rule is in the table");
    let place = document.place_of_span(mistake.at, mistake.span, true);
    Diagnostic {
        disk: mistake.at.disk().map(|index| DiskIdentity {
            index,
            target: None,
        }),
        label: (!mistake.path.is_empty()).then(|| mistake.path.clone()),
        help: mistake.help.clone(),
        hosts,
        ..Diagnostic::new(rule, mistake.at, mistake.message.clone(), place)
    }
}

/// A message of QEMU, as a finding.
fn refusal(
    document: &Document,
    rule: &'static Rule,
    outcome: &QemuTrialOutcome,
    found: &QemuMessage,
) -> Diagnostic {
    let QemuMessage {
        at,
        severity,
        message,
        option,
    } = found;
    let disk = at.disk().and_then(|nth| document.domain().disks.get(nth));
    let whom = disk.map_or("the guest".to_owned(), |disk| format!("`{}`", disk.name()));
    let title = match severity {
        Severity::Error => format!("{} refuses {whom}: {message}", outcome.qemu),
        Severity::Warning | Severity::Advice | Severity::Pedantic => {
            format!("{} warns of {whom}: {message}", outcome.qemu)
        }
    };
    let options = option.iter();
    Diagnostic {
        severity: *severity,
        disk: disk_at(document, *at),
        notes: options
            .map(|option| format!("the caller requested: {option}"))
            .collect(),
        help: (*severity == Severity::Error).then(|| {
            "the guest will not start with it on this QEMU; use a setting that this QEMU accepts".to_owned()
        }),
        ..Diagnostic::new(rule, *at, title, document.place(*at))
    }
}

/// The disk that a field belongs to.
fn disk_at(document: &Document, at: FieldPath) -> Option<DiskIdentity> {
    let index = at.disk()?;
    let disk = document.domain().disks.get(index);
    let target = disk.and_then(|disk| disk.frontend.target.clone());
    Some(DiskIdentity { index, target })
}

/// The programs whose version neither the target nor a host names.
fn open_versions(options: &LintOptions) -> OpenVersions {
    let has_hosts = options.fleet.is_some();
    OpenVersions {
        libvirt: !has_hosts && options.target.libvirt.is_none(),
        qemu: !has_hosts && options.target.qemu.is_none(),
    }
}

fn resolve(
    document: &Document,
    mut finding: Finding,
    hosts: Option<FoundOn>,
    options: &LintOptions,
    wants_edits: bool,
) -> Diagnostic {
    let detail = options.detail;
    if detail == Detail::Titles {
        finding.keep_title();
    }
    let Finding {
        rule,
        severity,
        confidence,
        at,
        span,
        title,
        label,
        related,
        notes,
        help,
        fix,
        is_about_host,
        hosts: _, // What compares hosts has told them as `hosts`.
    } = finding;
    let render = |phrase: &Phrase| document.render(phrase);
    let mut place = match span {
        Some(span) => document.unnamed_place(span, true),
        None => document.nearest_place(at),
    };
    if detail == Detail::Everything {
        place.breadcrumb = document.breadcrumb(at);
    }
    Diagnostic {
        rule,
        severity,
        confidence,
        disk: disk_at(document, at),
        at,
        title: render(&title),
        place,
        label: label.as_ref().map(render),
        related: related
            .into_iter()
            .map(|related| RelatedPlace {
                place: document.place(related.at),
                label: render(&related.label),
            })
            .collect(),
        notes: notes.iter().map(render).collect(),
        help: help
            .as_ref()
            .map(|help| document.render_help(help, open_versions(options))),
        fix: fix.and_then(|fix| {
            let edits = match wants_edits {
                true => document.edits_of(&fix),
                false => document.can_make(&fix).then(Vec::new),
            };
            Some(ResolvedFix {
                edits: edits?,
                applicability: fix.applicability,
            })
        }),
        is_about_host,
        allowed_by: None,
        hosts,
    }
}

/// Adds a finding to the report, among those that are allowed if an allowance or an option covers it.
fn settle(
    report: &mut LintReport,
    mut diagnostic: Diagnostic,
    document: &Document,
    options: &LintOptions,
    used: &mut [BTreeSet<&'static str>],
) {
    diagnostic.allowed_by = allowed_by(document, options, &diagnostic, used);
    match diagnostic.allowed_by {
        Some(_) => report.allowed.push(diagnostic),
        None => report.diagnostics.push(diagnostic),
    }
}

fn allowed_by(
    document: &Document,
    options: &LintOptions,
    diagnostic: &Diagnostic,
    used: &mut [BTreeSet<&'static str>],
) -> Option<AllowedBy> {
    let mut found = None;
    for (allowance, used) in document.allowances().iter().zip(used) {
        let names_rule = allowance
            .rules
            .iter()
            .any(|(name, _)| name == diagnostic.rule.name);
        if names_rule && allowance.covers(diagnostic.place.span) {
            used.insert(diagnostic.rule.name);
            found.get_or_insert_with(|| AllowedBy::InFile {
                reason: allowance.reason.clone(),
                span: allowance.span,
            });
        }
    }
    found.or_else(|| {
        options
            .ignored
            .contains(diagnostic.rule.name)
            .then_some(AllowedBy::Ignored)
    })
}

/// True for a rule that compares guests, which runs when all guests are known.
fn is_used_later(rule: &str) -> bool {
    crate::rules::find(rule).is_some_and(Rule::compares_guests)
}

/// The text of a rule's name in an allowance of several, with one comma.
fn with_comma(rules: &[(String, Span)], number: usize) -> Span {
    let (own, after) = (rules[number].1, rules.get(number + 1));
    match (number.checked_sub(1).map(|before| rules[before].1), after) {
        (Some(before), _) => Span::new(before.end, own.end),
        (None, Some((_, after))) => Span::new(own.start, after.start),
        (None, None) => own,
    }
}

/// The rules of an allowance that allow nothing, each with its place, the remedy and the edit; one entry if none does.
fn unused(allowance: &Allowance, used: &BTreeSet<&str>) -> Vec<(Span, String, &'static str, Edit)> {
    let rules = &allowance.rules;
    let is_unused = |name: &str| !used.contains(name) && !is_used_later(name);
    let title = |name: &str| format!("unused allowance: `{name}` is not reported here");
    if rules.iter().all(|(name, _)| is_unused(name)) {
        let title = match rules.as_slice() {
            [(name, _)] => title(name),
            _ => "unused allowance: none of its rules is reported here".to_owned(),
        };
        return vec![(
            allowance.span,
            title,
            "remove it",
            Edit::delete(allowance.span),
        )];
    }
    let unused = rules
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| is_unused(name));
    let complaint = |(number, (name, span)): (usize, &(String, Span))| {
        let edit = Edit::delete(with_comma(rules, number));
        (*span, title(name), "remove the name of the rule", edit)
    };
    unused.map(complaint).collect()
}

/// An allowance must name rules that exist, give a reason, and still be needed.
fn complaints_about_allowances(document: &Document, used: &[BTreeSet<&str>]) -> Vec<Diagnostic> {
    let mut complaints = Vec::new();
    let mut complain = |rule: &str, span: Span, title: String, help: &str, edits: Vec<Edit>| {
        let rule = crate::rules::find(rule).expect("rules about allowances are in the table");
        let at = FieldPath::Domain(DomainField::Domain);
        let place = document.place_of_span(at, span, true);
        complaints.push(Diagnostic {
            help: Some(help.to_owned()),
            fix: (!edits.is_empty() && document.may_edit(&edits)).then_some(ResolvedFix {
                edits,
                applicability: Applicability::Safe,
            }),
            ..Diagnostic::new(rule, at, title, place)
        });
    };
    for (allowance, used) in document.allowances().iter().zip(used) {
        if allowance.rules.is_empty() {
            complain(
                "allowance-unknown-rule",
                allowance.span,
                "the comment for vmdisk is not understood".to_owned(),
                "write `vmdisk: allow(rule, …) reason`",
                Vec::new(),
            );
            continue;
        }
        let mut all_known = true;
        for (name, span) in &allowance.rules {
            if crate::rules::find(name).is_none() {
                all_known = false;
                let known = crate::rules::RULES.iter().map(|rule: &&Rule| rule.name);
                let help = match vmdisk_source::nearest(name, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`vmdisk rules` lists the rules".to_owned(),
                };
                complain(
                    "allowance-unknown-rule",
                    *span,
                    format!("unknown rule `{name}`"),
                    &help,
                    Vec::new(),
                );
            }
        }
        if allowance.reason.is_none() {
            complain(
                "allowance-without-reason",
                allowance.span,
                "the allowance has no reason".to_owned(),
                match &document.source {
                    Source::Spec(_) => {
                        "write the reason after the closing parenthesis: # vmdisk: allow(rule) because …"
                    }
                    Source::LibvirtXml(_) | Source::QemuCommandLine(_) => {
                        "write the reason after the closing parenthesis: <!-- vmdisk: allow(rule) because … -->"
                    }
                },
                Vec::new(),
            );
        }
        if all_known {
            for (span, title, help, edit) in unused(allowance, used) {
                complain("allowance-unused", span, title, help, vec![edit]);
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
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
