//! Metrics for the textfile collector of Prometheus' node_exporter.

use std::io::{self, Write};

use vmdisk::{Rule, Severity};

use crate::render::summary::Summary;
use crate::report::classes::Classes;
use crate::report::input::InputReport;
use crate::sanitize::line;

/// The findings of a run by rule, severity, guest and host.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    guests: Vec<Box<str>>,
    samples: Vec<Sample>,
}

/// Findings with the same labels.
#[derive(Debug)]
struct Sample {
    rule: &'static Rule,
    /// The number of the guest.
    guest: u32,
    /// The number of the host, if there are several.
    host: Option<u32>,
    severity: Severity,
    findings: u32,
}

/// The labels of a sample: rule, severity, guest, host.
type Labels<'a> = (&'static str, &'static str, &'a str, &'a str);

impl Samples {
    /// Counts the findings of an input.
    pub(crate) fn add(&mut self, checked: &InputReport) {
        let Ok(report) = &checked.outcome else {
            return;
        };
        let Some(last) = report.findings.len().checked_sub(1) else {
            return;
        };
        let guest = u32::try_from(self.guests.len()).expect("a run has fewer inputs");
        let name = report.domain.as_ref().unwrap_or(&checked.path);
        self.guests.push(name.as_str().into());
        let first = self.samples.len();
        self.samples.reserve(last + 1);
        for finding in &report.findings {
            let mut count = |host: Option<u32>| {
                let same = self.samples[first..].iter_mut().find(|sample| {
                    std::ptr::eq(sample.rule, finding.rule)
                        && sample.severity == finding.severity
                        && sample.host == host
                });
                match same {
                    Some(sample) => sample.findings += 1,
                    None => self.samples.push(Sample {
                        rule: finding.rule,
                        guest,
                        host,
                        severity: finding.severity,
                        findings: 1,
                    }),
                }
            };
            match &finding.hosts {
                Some(found) => {
                    for host in &found.affected {
                        count(u32::try_from(*host).ok());
                    }
                }
                None => count(None),
            }
        }
    }

    /// Writes the number of findings by rule, severity, guest and host, and numbers of the run.
    ///
    /// `host` names the only host, where there are not several.
    pub(crate) fn write(
        &mut self,
        out: &mut dyn Write,
        summary: &Summary,
        classes: Option<&Classes<'_>>,
        host: Option<&str>,
    ) -> io::Result<()> {
        let Samples { guests, samples } = self;
        let labels = |sample: &Sample| -> Labels<'_> {
            let host = match (classes, sample.host) {
                (Some(classes), Some(number)) => &classes.hosts()[number as usize].name,
                _ => host.unwrap_or_default(),
            };
            let guest = &guests[sample.guest as usize];
            (sample.rule.name, sample.severity.as_str(), guest, host)
        };
        samples.sort_unstable_by(|one, other| labels(one).cmp(&labels(other)));
        head(
            out,
            "vmdisk_lint_findings",
            "Findings by rule, severity, guest and host.",
        )?;
        for same in samples.chunk_by(|one, other| labels(one) == labels(other)) {
            let number: u32 = same.iter().map(|sample| sample.findings).sum();
            let (rule, severity, guest, host) = labels(&same[0]);
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
        numbers_of_the_run(out, summary)
    }
}

fn numbers_of_the_run(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    for (name, help, number) in [
        (
            "vmdisk_lint_inputs",
            "Inputs, including failed ones.",
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
