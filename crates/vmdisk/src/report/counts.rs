//! Numbers of a run.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::ReportEntry;
use crate::{AllowedBy, Applicability, Diagnostic, Rule, Severity};

/// Numbers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Counts {
    /// Inputs, including unreadable ones.
    pub inputs: usize,
    /// Inputs that could not be read.
    pub failed_inputs: usize,
    /// Findings of severity `error`.
    pub errors: usize,
    /// Findings of severity `warning`.
    pub warnings: usize,
    /// Findings of severity `advice`.
    pub advice: usize,
    /// Findings of severity `pedantic`; since 1.3.
    pub pedantic: usize,
    /// Findings that do not count.
    pub allowed: usize,
    /// Those of them that a baseline knows; since 1.4.
    pub known: usize,
    /// Findings with a fix that `--fix` applies.
    pub fixable: usize,
    /// Findings with a fix that only `--unsafe-fixes` applies.
    pub fixable_unsafely: usize,
    /// The findings that `--fix` fixed in this run.
    pub fixed: usize,
    /// Fixes that `--fix` undid in this run; since 1.2.
    pub failed_fixes: usize,
    /// Rules that could not look at something.
    #[serde(serialize_with = "length")]
    #[cfg_attr(feature = "schema", schemars(with = "usize"))]
    pub rules_not_checked: Vec<&'static Rule>,
}

fn length<S: Serializer>(rules: &[&Rule], serializer: S) -> Result<S::Ok, S::Error> {
    rules.len().serialize(serializer)
}

impl Counts {
    /// The numbers of these inputs.
    pub fn of<'a>(inputs: impl IntoIterator<Item = ReportEntry<'a>>) -> Self {
        let mut counts = Counts::default();
        inputs.into_iter().for_each(|input| counts.add(&input));
        counts
    }

    /// Counts an input.
    pub fn add(&mut self, input: &ReportEntry<'_>) {
        self.inputs += usize::from(!input.is_continued);
        let Ok(report) = &input.outcome else {
            self.failed_inputs += 1;
            return;
        };
        self.fixed += report.mended.len();
        self.failed_fixes += report.failed_fixes.len();
        report.findings.iter().for_each(|one| self.add_finding(one));
        self.allowed += report.allowed.len();
        let is_known = |one: &&Diagnostic| one.allowed_by == Some(AllowedBy::Baseline);
        self.known += report.allowed.iter().filter(is_known).count();
        // Most inputs add the same rules in the same order.
        let mut next = 0;
        for rule in &report.unchecked_rules.rules {
            let is_same = |it: &&Rule| std::ptr::eq(*it, *rule);
            let known = &mut self.rules_not_checked;
            if let Some(after) = known[next..].iter().position(is_same) {
                next += after + 1;
            } else if !known[..next].iter().any(is_same) {
                known.insert(next, rule);
                next += 1;
            }
        }
    }

    fn add_finding(&mut self, finding: &Diagnostic) {
        *match finding.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
            Severity::Advice => &mut self.advice,
            Severity::Pedantic => &mut self.pedantic,
        } += 1;
        match finding.fix.as_ref().map(|fix| fix.applicability) {
            Some(Applicability::Safe) => self.fixable += 1,
            Some(Applicability::Unsafe) => self.fixable_unsafely += 1,
            None => {}
        }
    }
}
