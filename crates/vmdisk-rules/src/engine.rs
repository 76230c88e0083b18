//! Runs all rules over one configuration.

use std::collections::BTreeSet;

use crate::{Context, Finding, NotChecked, RULES, Report};

/// What came of running all rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What they found, in the order of places and then of rules.
    pub findings: Vec<Finding>,
    /// What they could not look at.
    pub not_checked: Vec<NotChecked>,
}

/// Runs all rules over one configuration.
pub fn check(context: &Context<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    for rule in RULES {
        let mut report = Report::new(rule);
        (rule.check)(context, &mut report);
        outcome.findings.append(&mut report.findings);
        outcome.not_checked.append(&mut report.not_checked);
    }
    drop_superseded(&mut outcome);
    outcome
        .findings
        .sort_by(|a, b| (a.at, a.rule.name).cmp(&(b.at, b.rule.name)));
    outcome
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
