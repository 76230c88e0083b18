//! Metrics for the textfile collector of Prometheus' node_exporter.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::lint::checked::Checked;
use crate::lint::classes::Classes;
use crate::render::summary::Summary;
use crate::sanitize::line;

/// The labels of a sample: rule, severity, guest, host.
type Labels<'a> = (&'static str, &'static str, &'a str, &'a str);

/// Writes the number of findings by rule, severity, guest and host, and numbers of the run.
///
/// `host` names the only host, where there are not several.
pub(crate) fn write(
    out: &mut dyn Write,
    all: &[Checked],
    summary: &Summary,
    classes: Option<&Classes<'_>>,
    host: Option<&str>,
) -> io::Result<()> {
    let mut samples: BTreeMap<Labels<'_>, usize> = BTreeMap::new();
    for checked in all {
        let Ok(report) = &checked.outcome else {
            continue;
        };
        let guest = report.domain.as_deref().unwrap_or(&checked.path);
        for finding in &report.findings {
            let hosts = match (classes, &finding.hosts) {
                (Some(classes), Some(found)) => {
                    let names = found.affected.iter();
                    names
                        .map(|host| classes.hosts()[*host].name.as_str())
                        .collect()
                }
                _ => vec![host.unwrap_or_default()],
            };
            for host in hosts {
                let labels = (finding.rule.name, finding.severity.as_str(), guest, host);
                *samples.entry(labels).or_default() += 1;
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
    for (name, help, number) in [
        (
            "vmdisk_lint_inputs",
            "Inputs, including those that failed.",
            summary.inputs,
        ),
        (
            "vmdisk_lint_failed_inputs",
            "Inputs that could not be checked.",
            summary.failed,
        ),
        (
            "vmdisk_lint_allowed_findings",
            "Findings that are allowed.",
            summary.allowed,
        ),
        (
            "vmdisk_lint_rules_not_checked",
            "Rules that could not be checked everywhere.",
            summary.rules_not_checked.len(),
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
