//! Metrics for the textfile collector of Prometheus' node_exporter.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::render::summary::Summary;
use crate::report::run::RunReport;
use crate::sanitize::line;
use vmdisk::report::Classes;

/// The values of [`LABELS`] of a sample; an empty one is left out.
type Labels<'a> = [&'a str; 5];

const LABELS: Labels<'static> = ["rule", "severity", "guest", "host", "host_class"];

/// Writes the number of findings by rule, severity, guest and host, or for `statistics` by rule, severity and class of hosts,
/// and numbers of the run.
pub(crate) fn write(
    out: &mut dyn Write,
    run: RunReport<'_>,
    classes: Option<&Classes<'_>>,
    statistics: bool,
) -> io::Result<()> {
    let mut samples: BTreeMap<Labels<'_>, usize> = BTreeMap::new();
    let only = run.host.unwrap_or_default();
    let mut count = |labels, number| *samples.entry(labels).or_default() += number;
    for (kind, number) in run
        .tally
        .kinds()
        .filter(|(kind, _)| statistics && !kind.is_allowed)
    {
        let (rule, severity) = (kind.rule, kind.severity.as_str());
        match classes {
            Some(classes) => {
                let classes = kind.classes(classes).into_iter();
                classes.for_each(|class| count([rule, severity, "", "", class], number));
            }
            None => count([rule, severity, "", only, ""], number),
        }
    }
    for input in run.inputs.iter().filter(|_| !statistics) {
        for finding in input.findings() {
            let report = input.outcome.as_ref().ok();
            let guest = report.and_then(|report| report.domain.as_deref());
            let guest = guest.unwrap_or(&input.path);
            let (rule, severity) = (finding.rule.name, finding.severity.as_str());
            let mut on = |host| count([rule, severity, guest, host, ""], 1);
            match classes.zip(finding.hosts.as_ref()) {
                Some((classes, found)) => {
                    let hosts = found.affected.iter();
                    hosts.for_each(|host| on(classes.hosts()[*host].name.as_str()));
                }
                None => on(only),
            }
        }
    }
    let help = match statistics {
        true => "Findings by rule, severity and class of hosts.",
        false => "Findings by rule, severity, guest and host.",
    };
    head(out, "vmdisk_lint_findings", help)?;
    for (values, number) in samples {
        let labels = LABELS
            .iter()
            .zip(values)
            .filter(|(_, value)| !value.is_empty());
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{name}=\"{}\"", value_of(value)))
            .collect();
        writeln!(out, "vmdisk_lint_findings{{{}}} {number}", labels.join(","))?;
    }
    numbers_of_the_run(out, &run.tally.summary)
}

fn numbers_of_the_run(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    for (name, help, number) in [
        (
            "vmdisk_lint_inputs",
            "Inputs, including failed ones.",
            summary.counts.inputs,
        ),
        (
            "vmdisk_lint_failed_inputs",
            "Inputs that could not be checked.",
            summary.counts.failed_inputs,
        ),
        (
            "vmdisk_lint_allowed_findings",
            "Findings that are allowed.",
            summary.counts.allowed,
        ),
        (
            "vmdisk_lint_rules_not_checked",
            "Rules that could not be checked everywhere.",
            summary.counts.rules_not_checked.len(),
        ),
    ] {
        head(out, name, help)?;
        writeln!(out, "{name} {number}")?;
    }
    Ok(())
}

fn head(out: &mut dyn Write, name: &str, help: &str) -> io::Result<()> {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge")
}

/// The value of a label, in which backslashes, quotes and line ends are escaped.
fn value_of(text: &str) -> String {
    line(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_a_label() {
        assert_eq!(value_of("a\"b\\c\nd"), "a\\\"b\\\\c\\\\u{a}d");
    }
}
