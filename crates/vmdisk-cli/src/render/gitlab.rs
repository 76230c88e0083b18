//! GitLab's code quality report: <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use vmdisk::Severity;

use crate::lint::checked::Checked;
use crate::render::View;
use crate::render::fingerprint::{Fingerprints, hash};
use crate::render::harmless;
use crate::render::xml::{explanation, failure, position};
use crate::sanitize;

#[derive(Debug, Serialize)]
struct Issue {
    description: String,
    check_name: &'static str,
    fingerprint: String,
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

/// Writes the findings; GitLab shows the paths of files relative to `root`, the top of the repository.
pub(crate) fn write(
    out: &mut dyn Write,
    all: &[Checked],
    view: &View<'_>,
    root: &Path,
) -> io::Result<()> {
    let mut fingerprints = Fingerprints::new(all);
    let mut issues = Vec::new();
    for checked in all {
        let path = relative(&checked.path, root);
        match &checked.outcome {
            Ok(report) => {
                for finding in &report.findings {
                    issues.push(Issue {
                        description: sanitize::line(
                            &explanation(finding, view).replace('\n', "; "),
                        )
                        .into_owned(),
                        check_name: finding.rule.name,
                        fingerprint: fingerprints.of(checked, report, finding),
                        severity: severity(finding.severity),
                        location: Location {
                            path: path.clone(),
                            lines: Lines {
                                begin: finding.place.start.line,
                                end: finding.place.end.line,
                            },
                        },
                    });
                }
            }
            Err(message) => {
                let begin = position(message).map_or(1, |position| position.line);
                let text = failure(message).replace('\n', "; ");
                issues.push(Issue {
                    description: sanitize::line(&text).into_owned(),
                    check_name: "unreadable",
                    fingerprint: hash(&["unreadable", &checked.uri, &text]),
                    severity: "blocker",
                    location: Location {
                        path,
                        lines: Lines { begin, end: begin },
                    },
                });
            }
        }
    }
    harmless::pretty(out, &issues)
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "critical",
        Severity::Warning => "major",
        Severity::Advice => "minor",
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
