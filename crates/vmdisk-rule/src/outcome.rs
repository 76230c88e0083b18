//! The results of rules.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_model::{Change, DiskField, DomainField, DomainType, FieldPath, ImageField};
use vmdisk_source::{SourcePath, Span};

use crate::reading::{INVALID_VALUE, MISSING_VALUE};
use crate::{Context, Finding, Missing, NotChecked, Problem, Report, Rule, Severity};

/// The results of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The findings, sorted by place and then by rule.
    pub findings: Vec<Finding>,
    /// The checks that lacked an input.
    pub not_checked: Vec<NotChecked>,
    /// True if a finding needs only its rule, place, title and fix, and what lacked an input is not wanted.
    pub is_brief: bool,
}

impl Outcome {
    /// Runs one rule on a configuration, unless the rule does not apply to such configurations.
    pub fn judge(
        &mut self,
        context: &Context<'_>,
        rule: &'static Rule,
        look: impl FnOnce(&mut Report),
    ) {
        if rule.libvirt_only && !context.is_for_libvirt() {
            return;
        }
        self.run(rule, |report| match foreign_type(context, rule) {
            Some(domain_type) => is_about_qemu(domain_type, report),
            None => look(report),
        });
    }

    /// Adds the problems that a reader found.
    pub fn add_problems(&mut self, context: &Context<'_>, problems: &[Problem]) {
        for problem in problems {
            if foreign_type(context, problem.rule).is_none() {
                self.run(problem.rule, |report| problem.report(report));
            }
        }
    }

    /// Drops findings of rules about the model that depend on a value that is filled in later: such a field looks unset.
    /// Also drops findings that mark a word, or a whole option, to which properties are added later.
    pub fn leave_open(&mut self, open: &BTreeSet<FieldPath>, words: &BTreeSet<Span>) {
        if open.is_empty() && words.is_empty() {
            return;
        }
        let is_open = |at: FieldPath| open.contains(&at);
        let is_about_open = |finding: &mut Finding| {
            let changes = finding.fix.iter().flat_map(|fix| &fix.changes);
            let changed = changes.map(Change::at);
            finding.span.is_some_and(|span| words.contains(&span))
                || finding.rule.is_about_model()
                    && (is_open(finding.at)
                        || finding.title.names(&is_open)
                        || changed.into_iter().any(is_open))
        };
        for finding in self.findings.extract_if(.., is_about_open) {
            let missing = Missing::new("the value of a variable", Missing::OPEN_VALUE);
            self.not_checked
                .push(NotChecked::new(finding.rule, finding.at, missing));
        }
    }

    /// Runs one rule. The consequence of its evidence is the note of a finding without notes.
    pub fn run(&mut self, rule: &'static Rule, look: impl FnOnce(&mut Report)) {
        let (first, first_missed) = (self.findings.len(), self.not_checked.len());
        look(&mut Report::going_on(
            rule,
            &mut self.findings,
            &mut self.not_checked,
            self.is_brief,
        ));
        let missed = self.not_checked[first_missed..].iter_mut();
        missed.for_each(|it| it.further.shrink_to_fit());
        if self.findings.len() > first
            && let Some(consequence) = rule.consequence()
        {
            let own = self.findings[first..].iter_mut();
            for finding in own.filter(|finding| finding.details().notes.is_empty()) {
                finding.note(consequence);
            }
        }
    }

    /// Drops superseded findings, and those about values that could not be read, and sorts the rest.
    pub fn settle(&mut self) {
        drop_about_unread(self);
        drop_superseded(self);
        self.findings
            .sort_by(|a, b| (a.at, a.rule.name).cmp(&(b.at, b.rule.name)));
    }
}

/// The domain type of a guest that QEMU does not run, if the rule is about QEMU.
fn foreign_type<'a>(context: &Context<'a>, rule: &Rule) -> Option<&'a DomainType> {
    let foreign = context.domain.foreign_type();
    foreign.filter(|_| !rule.applies_to_foreign_guests)
}

/// Reports as not checked that a guest of another hypervisor is none of QEMU's.
fn is_about_qemu(domain_type: &DomainType, report: &mut Report) {
    let what = format!("a guest of type '{}'", domain_type.as_str());
    report.not_checked(
        FieldPath::Domain(DomainField::DomainType),
        Missing::new(what, Missing::NOT_QEMU),
    );
}

/// The model lacks a value that could not be read, is misspelt or is missing: drops findings of rules about the model
/// that call it unset, unless they are graver than the finding about its text.
fn drop_about_unread(outcome: &mut Outcome) {
    let mut unread: BTreeMap<FieldPath, Severity> = BTreeMap::new();
    for finding in &outcome.findings {
        if let Some(at) = unread_field(finding) {
            let severity = unread.entry(at).or_insert(finding.severity);
            *severity = finding.severity.max(*severity);
        }
    }
    if unread.is_empty() {
        return;
    }
    let is_about_unread = |finding: &Finding| {
        let is_unread = |at: &FieldPath| {
            let severity = unread.get(at);
            severity.is_some_and(|severity| finding.severity <= *severity)
        };
        let outer = std::iter::successors(finding.at.parent(), |at| at.parent());
        let is_format = |at: &FieldPath| matches!(at, FieldPath::Image(_, _, ImageField::Format));
        finding.rule.is_about_model()
            && (is_unread(&finding.at)
                || outer.filter(|at| !is_format(at)).any(|at| is_unread(&at)))
    };
    outcome.findings.retain(|finding| !is_about_unread(finding));
}

/// The field whose value is not in the model, because of the mistake that a finding is about.
fn unread_field(finding: &Finding) -> Option<FieldPath> {
    let at = finding.at;
    // An element with parts is not a value. The size of a metadata cache is not a part of a format in any syntax.
    let is_value = matches!(at, FieldPath::Image(_, _, ImageField::Format)) || !at.has_parts();
    match (finding.rule.name, at) {
        (name, _) if name == INVALID_VALUE.name => is_value.then_some(at),
        // The rest of the target is not known either: the bus follows from the name.
        (name, FieldPath::Disk(disk, DiskField::TargetDev)) if name == MISSING_VALUE.name => {
            Some(FieldPath::Disk(disk, DiskField::Target))
        }
        ("unknown-attribute" | "property-refused", _) => {
            (is_value && finding.fix.is_some()).then_some(at)
        }
        // A misspelt element, but not its parent.
        ("unknown-element", FieldPath::Disk(_, field)) => {
            (field != DiskField::Disk && finding.fix.is_some()).then_some(at)
        }
        _ => None,
    }
}

/// One cause gives one finding: drops findings of rules that another rule's finding on the same disk supersedes.
fn drop_superseded(outcome: &mut Outcome) {
    let silenced: BTreeSet<(&str, Option<usize>)> = outcome
        .findings
        .iter()
        .flat_map(|finding| {
            let disk = finding.at.disk();
            finding
                .rule
                .supersedes
                .iter()
                .map(move |name| (*name, disk))
        })
        .collect();
    if silenced.is_empty() {
        return;
    }
    outcome
        .findings
        .retain(|finding| !silenced.contains(&(finding.rule.name, finding.at.disk())));
    outcome.not_checked.retain_mut(|missed| {
        let name = missed.rule.name;
        missed.keep_places(|at| !silenced.contains(&(name, at.disk())))
    });
}
