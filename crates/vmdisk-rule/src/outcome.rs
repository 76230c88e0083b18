//! The results of rules.

use std::collections::BTreeSet;

use vmdisk_model::{DomainField, DomainType, FieldPath};

use crate::{Context, Finding, Missing, NotChecked, Problem, Report, Rule};

/// The results of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The findings, in the order of places and then of rules.
    pub findings: Vec<Finding>,
    /// The checks that lacked an input.
    pub not_checked: Vec<NotChecked>,
}

impl Outcome {
    /// Runs one rule over a configuration, unless it has nothing to say about configurations of that kind.
    pub fn judge(
        &mut self,
        context: &Context<'_>,
        rule: &'static Rule,
        look: impl FnOnce(&mut Report),
    ) {
        if rule.is_about_libvirt && !context.is_taken_by_libvirt() {
            return;
        }
        self.run(rule, |report| match foreign_type(context, rule) {
            Some(domain_type) => is_about_qemu(domain_type, report),
            None => look(report),
        });
    }

    /// Adds what a reader came across.
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

    /// Drops what other findings make needless, and sorts the rest.
    pub fn settle(&mut self) {
        drop_superseded(self);
        self.findings
            .sort_by(|a, b| (a.at, a.rule.name).cmp(&(b.at, b.rule.name)));
    }
}

/// The type of a guest that QEMU does not run, where the rule is about QEMU.
fn foreign_type<'a>(context: &Context<'a>, rule: &Rule) -> Option<&'a DomainType> {
    let foreign = context.domain.foreign_type();
    foreign.filter(|_| !rule.is_about_text)
}

/// True if a rule about QEMU applies to a guest of another hypervisor.
fn is_about_qemu(domain_type: &DomainType, report: &mut Report) {
    let what = format!("a guest of type '{}'", domain_type.as_wire());
    report.not_checked(
        FieldPath::Domain(DomainField::DomainType),
        Missing::new(what, Missing::NOT_QEMU),
    );
}

/// One cause gives one finding: where a rule speaks about a disk, those it supersedes are silent.
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
