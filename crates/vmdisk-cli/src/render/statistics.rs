//! The number of findings of each rule, instead of the findings.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::{Applicability, Severity};

use crate::render::View;
use crate::report::tally::{Kind, Tally};
use vmdisk::report::escaped_json;

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.1";

/// What `vmdisk lint --statistics --format json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk lint statistics, version 1", rename = "Statistics")
)]
pub(crate) struct Statistics {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// Rules with findings, the most frequent first, then by name.
    pub(crate) rules: Vec<RuleCount>,
}

/// The findings of one rule.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(crate) struct RuleCount {
    /// Name of the rule.
    pub(crate) rule: &'static str,
    /// Its group.
    group: &'static str,
    /// The worst severity among its findings.
    pub(crate) severity: &'static str,
    /// Number of findings.
    pub(crate) findings: usize,
    /// Findings with a fix that `--fix` applies.
    pub(crate) fixable: usize,
    /// Findings with a fix that only `--unsafe-fixes` applies.
    pub(crate) fixable_unsafely: usize,
    /// The findings by class of hosts, where there are several hosts: the class that the facts of a host declare, or the
    /// hosts about which the rules say the same; since 1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host_classes: Option<BTreeMap<String, usize>>,
}

/// Writes the number of findings of each rule, as JSON or a line for each.
pub(crate) fn write(
    out: &mut dyn Write,
    tally: &Tally,
    view: &View<'_>,
    is_json: bool,
) -> io::Result<()> {
    let statistics = Statistics::of(tally, view);
    match is_json {
        true => escaped_json::pretty(out, &statistics),
        false => statistics.write_text(out),
    }
}

impl Statistics {
    /// Counts the findings that are shown.
    pub(crate) fn of(tally: &Tally, view: &View<'_>) -> Self {
        let mut counts: BTreeMap<&str, (Severity, RuleCount)> = BTreeMap::new();
        let is_shown = |kind: &Kind| match kind.is_allowed {
            true => view.show_allowed,
            false => kind.fails || !view.quiet,
        };
        for (kind, number) in tally.kinds().filter(|(kind, _)| is_shown(kind)) {
            let Kind {
                rule,
                group,
                severity,
                ..
            } = *kind;
            let new = || RuleCount {
                rule,
                group,
                severity: "",
                findings: 0,
                fixable: 0,
                fixable_unsafely: 0,
                host_classes: None,
            };
            let (worst, count) = counts.entry(rule).or_insert_with(|| (severity, new()));
            *worst = severity.max(*worst);
            count.severity = worst.as_str();
            count.findings += number;
            match kind.fix {
                Some(Applicability::Safe) => count.fixable += number,
                Some(Applicability::Unsafe) => count.fixable_unsafely += number,
                None => {}
            }
            for class in view.classes.iter().flat_map(|all| kind.classes(all)) {
                let classes = count.host_classes.get_or_insert_default();
                *classes.entry(class.to_owned()).or_default() += number;
            }
        }
        let mut rules: Vec<RuleCount> = counts.into_values().map(|(_, count)| count).collect();
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
#[cfg(feature = "schema")]
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Statistics)
}
