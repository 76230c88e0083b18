//! Metrics for the textfile collector of Prometheus' node_exporter.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::render::summary::Summary;
use crate::report::run::RunReport;
use crate::sanitize::line;
use vmdisk::report::Classes;

/// The labels of a sample: rule, severity, guest, host.
type Labels<'a> = (&'static str, &'static str, &'a str, &'a str);

/// Writes the number of findings by rule, severity, guest and host, and numbers of the run.
pub(crate) fn write(
    out: &mut dyn Write,
    run: RunReport<'_>,
    classes: Option<&Classes<'_>>,
) -> io::Result<()> {
    let mut samples: BTreeMap<Labels<'_>, u32> = BTreeMap::new();
    for input in run.inputs {
        for finding in input.findings() {
            let report = input.outcome.as_ref().ok();
            let guest = report.and_then(|report| report.domain.as_deref());
            let guest = guest.unwrap_or(&input.path);
            let mut count = |host| {
                let labels = (finding.rule.name, finding.severity.as_str(), guest, host);
                *samples.entry(labels).or_default() += 1;
            };
            match classes.zip(finding.hosts.as_ref()) {
                Some((classes, found)) => {
                    let hosts = found.affected.iter();
                    hosts.for_each(|host| count(classes.hosts()[*host].name.as_str()));
                }
                None => count(run.host.unwrap_or_default()),
            }
        }
    }
    head(
        out,
        "vmdisk_lint_findings",
        "Findings by rule, severity, guest and host.",
    )?;
    for ((rule, severity, guest, host), number) in samples {
        let labels = [
            ("rule", rule),
            ("severity", severity),
            ("guest", guest),
            ("host", host),
        ];
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{name}=\"{}\"", value_of(value)))
            .collect();
        writeln!(out, "vmdisk_lint_findings{{{}}} {number}", labels.join(","))?;
    }
    numbers_of_the_run(out, run.summary)
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
