//! The number of findings of each rule, instead of the findings.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::{Applicability, Rule, Severity};

use crate::render::View;
use crate::render::harmless;
use crate::report::input::InputReport;

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// What `vmdisk lint --statistics --format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "vmdisk lint statistics, version 1", rename = "Statistics")]
pub(crate) struct Statistics {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// Rules with findings, the most frequent first, then by name.
    rules: Vec<RuleCount>,
}

/// The findings of one rule.
#[derive(Debug, Serialize, JsonSchema)]
struct RuleCount {
    /// Name of the rule.
    rule: &'static str,
    /// Its group.
    group: &'static str,
    /// The worst severity among its findings.
    severity: &'static str,
    /// Number of findings.
    findings: usize,
    /// Findings with a fix that `--fix` applies.
    fixable: usize,
    /// Findings with a fix that only `--unsafe-fixes` applies.
    fixable_unsafely: usize,
}

/// The findings of each rule, as they are counted: all, those that `--fix` fixes, and those that only
/// `--unsafe-fixes` fixes.
#[derive(Debug, Default)]
pub(crate) struct Counts(BTreeMap<&'static str, (&'static Rule, Severity, [usize; 3])>);

impl Counts {
    /// Counts the findings of an input that are shown.
    pub(crate) fn add(&mut self, checked: &InputReport, view: &View<'_>) {
        let Ok(report) = &checked.outcome else {
            return;
        };
        for finding in view.findings(report) {
            let first = (finding.rule, finding.severity, [0; 3]);
            let (_, worst, numbers) = self.0.entry(finding.rule.name).or_insert(first);
            *worst = finding.severity.max(*worst);
            numbers[0] += 1;
            match finding.fix.as_ref().map(|fix| fix.applicability) {
                Some(Applicability::Safe) => numbers[1] += 1,
                Some(Applicability::Unsafe) => numbers[2] += 1,
                None => {}
            }
        }
    }

    /// Writes a line for each rule.
    pub(crate) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        Statistics::of(self).write_text(out)
    }

    /// Writes JSON.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        harmless::pretty(out, &Statistics::of(self))
    }
}

impl Statistics {
    fn of(counts: &Counts) -> Self {
        let counted = counts.0.values().map(|(rule, severity, numbers)| {
            let [findings, fixable, fixable_unsafely] = *numbers;
            RuleCount {
                rule: rule.name,
                group: rule.group.as_str(),
                severity: severity.as_str(),
                findings,
                fixable,
                fixable_unsafely,
            }
        });
        let mut rules: Vec<RuleCount> = counted.collect();
        rules.sort_by_key(|count| (Reverse(count.findings), count.rule));
        Statistics {
            schema_version: SCHEMA_VERSION,
            rules,
        }
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = |of: fn(&RuleCount) -> usize| self.rules.iter().map(of).max().unwrap_or(0);
        let number = width(|count| count.findings.to_string().len());
        let severity = width(|count| count.severity.len());
        let name = width(|count| count.rule.len());
        for count in &self.rules {
            let fixable = match (count.fixable, count.fixable_unsafely) {
                (0, 0) => String::new(),
                (safe, 0) => format!("{safe} fixable"),
                (0, other) => format!("{other} fixable with --unsafe-fixes"),
                (safe, other) => format!("{safe} fixable, {other} more with --unsafe-fixes"),
            };
            let line = format!(
                "{:number$}  {:severity$}  {:name$}  {fixable}",
                count.findings, count.severity, count.rule
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The JSON Schema of the statistics.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Statistics)
}
