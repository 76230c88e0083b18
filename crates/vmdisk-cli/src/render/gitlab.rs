//! GitLab's code quality report: <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use vmdisk::Severity;

use crate::render::View;
use crate::render::fingerprint::{self, Fingerprints, hash};
use crate::render::harmless::{self, Mark, Spliced};
use crate::render::spool::Spool;
use crate::render::xml::{explanation, failure, position};
use crate::report::input::InputReport;
use crate::sanitize;

#[derive(Debug, Serialize)]
struct Issue<F> {
    description: String,
    check_name: &'static str,
    fingerprint: F,
    severity: &'static str,
    location: Location,
}

#[derive(Debug, Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Debug, Serialize)]
struct Lines {
    begin: usize,
    end: usize,
}

/// The issues of an input, as records; GitLab shows the paths of files relative to `root`, the top of the repository.
pub(crate) fn records(checked: &InputReport, view: &View<'_>, root: &Path) -> Vec<u8> {
    let path = relative(&checked.path, root);
    let (mut records, mut text) = (Vec::new(), Vec::new());
    match &checked.outcome {
        Ok(report) => {
            for finding in &report.findings {
                let description = explanation(finding, view).replace('\n', "; ");
                let issue = Issue {
                    description: sanitize::line(&description).into_owned(),
                    check_name: finding.rule.name,
                    fingerprint: Mark::Fingerprint,
                    severity: severity(finding.severity),
                    location: Location {
                        path: path.clone(),
                        lines: Lines {
                            begin: finding.place.start.line,
                            end: finding.place.end.line,
                        },
                    },
                };
                text.clear();
                harmless::item(&mut text, 1, &issue);
                fingerprint::record(&mut records, checked, report, finding, &text);
            }
        }
        Err(message) => {
            let begin = position(message).map_or(1, |position| position.line);
            let description = failure(message).replace('\n', "; ");
            let issue = Issue {
                description: sanitize::line(&description).into_owned(),
                check_name: "unreadable",
                fingerprint: hash(&["unreadable", &checked.uri(), &description]),
                severity: "blocker",
                location: Location {
                    path,
                    lines: Lines { begin, end: begin },
                },
            };
            harmless::item(&mut text, 1, &issue);
            fingerprint::plain_record(&mut records, &text);
        }
    }
    records
}

/// Writes the issues of all inputs.
pub(crate) fn write(
    out: &mut dyn Write,
    records: &mut Spool,
    fingerprints: &Fingerprints,
) -> io::Result<()> {
    harmless::pretty_with(out, &Spliced(0), &mut |_, out| {
        fingerprints.write_items(records, out, |_| 0)
    })
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "critical",
        Severity::Warning => "major",
        Severity::Advice => "minor",
        Severity::Pedantic => "info",
    }
}

/// The path from the root of the repository; unchanged if the file is elsewhere.
fn relative(path: &str, root: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    match absolute.strip_prefix(root) {
        Ok(below) => below.display().to_string(),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_repository() {
        let root = Path::new("/builds/infra");
        assert_eq!(
            relative("/builds/infra/domains/a.xml", root),
            "domains/a.xml"
        );
        assert_eq!(relative("/etc/a.xml", root), "/etc/a.xml");
        let here = std::env::current_dir().unwrap();
        assert_eq!(relative("./a.xml", &here), "a.xml");
    }
}
