//! The report about one text, as if its placeholders were values.

use std::borrow::Cow;
use std::collections::BTreeSet;

use vmdisk_fields::{OpenVersions, Phrase};
use vmdisk_model::FieldPath;
use vmdisk_plan::SpecMistake;
use vmdisk_source::{Edit, Span};

use crate::allowed::{allowed_by, complaints_about_allowances};
use crate::diagnostic::mask;
use crate::rules::{
    self, CheckText, Consumer, Context, Details, Finding, Missing, NotChecked, Outcome, Rule,
    Severity,
};
use crate::trial::{QemuMessage, QemuTrialOutcome};
use crate::{
    AllowedBy, Detail, Diagnostic, DiskIdentity, Document, Fleet, FoundOn, Host, LintOptions,
    LintReport, RelatedPlace, ResolvedFix, Source,
};

/// What a template compares of a finding of its texts.
pub(crate) struct Mark {
    pub(crate) rule: &'static Rule,
    pub(crate) at: FieldPath,
    pub(crate) place: Span,
    /// The edits of its fix.
    pub(crate) edits: Option<Vec<Edit>>,
}

impl From<Diagnostic> for Mark {
    fn from(found: Diagnostic) -> Self {
        Mark {
            rule: found.rule,
            at: found.at,
            place: found.place.span,
            edits: found.fix.map(|fix| fix.edits),
        }
    }
}

/// The report about the first start of a document.
pub(crate) fn of_text(
    document: &Document,
    options: &LintOptions,
    outcome: &QemuTrialOutcome,
    wants_edits: bool,
) -> LintReport {
    let planned = options.planned(document);
    let document = planned.as_ref().unwrap_or(document);
    let found = Found::of(document, options, rules::check_with);
    report(document, options, outcome, wants_edits, found)
}

/// The findings of [`of_text`], with those that are allowed. There may be many, and few texts of them are kept at a time.
pub(crate) fn marks(document: &Document, options: &LintOptions, wants_edits: bool) -> Vec<Mark> {
    let planned = options.planned(document);
    let document = planned.as_ref().unwrap_or(document);
    let found = Found::of(document, options, rules::check_briefly);
    let mut used = vec![BTreeSet::new(); document.allowances().len()];
    let findings = diagnostics(document, options, wants_edits, found.findings, found.hosts);
    let findings = findings.chain(spec_mistakes(document, options.fleet.as_ref()));
    let noted = findings.inspect(|it| drop(allowed_by(document, options, it, &mut used)));
    let mut marks: Vec<Mark> = noted.map(Mark::from).collect();
    let complaints = complaints_about_allowances(document, &used);
    marks.extend(complaints.into_iter().map(Mark::from));
    marks
}

/// What the rules say of a document.
pub(crate) struct Found {
    pub(crate) findings: Vec<Finding>,
    /// The hosts of each finding, where several are compared.
    pub(crate) hosts: Option<Vec<FoundOn>>,
    pub(crate) not_checked: Vec<NotChecked>,
    /// False for findings that are added to another report, which has those of the text itself.
    pub(crate) is_whole: bool,
}

impl Found {
    pub(crate) fn of(document: &Document, options: &LintOptions, check: CheckText) -> Self {
        let context = context_of(document, options);
        let text = document.rule_input();
        let Some(fleet) = &options.fleet else {
            let Outcome {
                mut findings,
                not_checked,
                ..
            } = check(text, &context, &options.rules);
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
        let (findings, not_checked) =
            fleet.check(text, &context, &options.rules, &|facts, target| {
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

/// Findings as they are reported.
fn diagnostics(
    document: &Document,
    options: &LintOptions,
    wants_edits: bool,
    findings: Vec<Finding>,
    hosts: Option<Vec<FoundOn>>,
) -> impl Iterator<Item = Diagnostic> {
    let mut hosts = hosts.map(Vec::into_iter);
    findings.into_iter().map(move |finding| {
        let hosts = hosts.as_mut().and_then(Iterator::next);
        resolve(document, finding, hosts, options, wants_edits)
    })
}

/// The report of what was found.
pub(crate) fn report(
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
    let rule = rules::find("refused-by-qemu").expect("the rule is in the table");
    let found = diagnostics(document, options, wants_edits, findings, hosts);
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
    for list in [&mut report.diagnostics, &mut report.allowed] {
        list.sort_by_key(order);
        list.dedup_by(|next, first| is_same(next, first));
    }
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
    let rule = rules::find("spec-refused").expect("the rule is in the table");
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
    (index < document.domain().disks.len()).then(|| document.disk_identity(index))
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
    let Details {
        label,
        related,
        notes,
        help,
        hosts: _, // What compares hosts has told them as `hosts`.
    } = match detail {
        Detail::Titles => Details::default(),
        Detail::Everything => finding.take_details(),
    };
    let Finding {
        rule,
        severity,
        confidence,
        at,
        span,
        title,
        fix,
        is_about_host,
        .. // Its details are taken.
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

/// What the rules are told about a document.
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
