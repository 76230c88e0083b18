//! The results of rules.

use std::collections::BTreeSet;

use vmdisk_model::{DomainField, DomainType, FieldPath, ImageField};

use crate::reading::INVALID_VALUE;
use crate::{Check, Context, Finding, Missing, NotChecked, Problem, Report, Rule};

/// The results of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The findings, sorted by place and then by rule.
    pub findings: Vec<Finding>,
    /// The checks that lacked an input.
    pub not_checked: Vec<NotChecked>,
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

    /// Runs one rule.
    pub fn run(&mut self, rule: &'static Rule, look: impl FnOnce(&mut Report)) {
        look(&mut Report::going_on(rule, self));
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

/// True if a rule about QEMU applies to a guest of another hypervisor.
fn is_about_qemu(domain_type: &DomainType, report: &mut Report) {
    let what = format!("a guest of type '{}'", domain_type.as_wire());
    report.not_checked(
        FieldPath::Domain(DomainField::DomainType),
        Missing::new(what, Missing::NOT_QEMU),
    );
}

/// The model lacks a value that could not be read: drops findings of rules about the model that call it unset.
fn drop_about_unread(outcome: &mut Outcome) {
    // An element with parts is not a value. The size of a metadata cache is not a part of a format in any syntax.
    let is_value =
        |at: FieldPath| matches!(at, FieldPath::Image(_, _, ImageField::Format)) || !at.has_parts();
    let unread: BTreeSet<FieldPath> = outcome
        .findings
        .iter()
        .filter(|finding| finding.rule.name == INVALID_VALUE.name && is_value(finding.at))
        .map(|finding| finding.at)
        .collect();
    if unread.is_empty() {
        return;
    }
    let is_of_model = |rule: &Rule| matches!(rule.check, Check::Model(_));
    outcome
        .findings
        .retain(|finding| !is_of_model(finding.rule) || !unread.contains(&finding.at));
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
    outcome
        .not_checked
        .retain(|missed| !silenced.contains(&(missed.rule.name, missed.at.disk())));
}
