//! GitLab's code quality report: <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use vmdisk::{Diagnostic, Severity};

use crate::render::View;
use crate::render::xml::{explanation, failure, position};
use crate::report::input::InputReport;
use crate::sanitize;
use vmdisk::report::escaped_json::{self, Each};
use vmdisk::report::{Fingerprints, hash};

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

/// Writes the issues of all inputs.
pub(crate) fn write(
    out: &mut dyn Write,
    inputs: &[InputReport],
    view: &View<'_>,
) -> io::Result<()> {
    let root = repository();
    let issues = Each::new(|| {
        let mut fingerprints = Fingerprints::new(inputs.iter().flat_map(|it| &it.outcome));
        let root = &root;
        inputs
            .iter()
            .flat_map(move |input| issues(input, view, root, &mut fingerprints))
    });
    escaped_json::pretty(out, &issues)
}

/// The issues of an input; GitLab shows the paths of files relative to `root`, the top of the repository.
fn issues(
    input: &InputReport,
    view: &View<'_>,
    root: &Path,
    fingerprints: &mut Fingerprints<'_>,
) -> Vec<Issue> {
    let path = relative(&input.path, root);
    let issue =
        |description: String, check_name, fingerprint, severity, [begin, end]: [usize; 2]| Issue {
            description: sanitize::line(&description).into_owned(),
            check_name,
            fingerprint,
            severity,
            location: Location {
                path: path.clone(),
                lines: Lines { begin, end },
            },
        };
    let report = match &input.outcome {
        Ok(report) => report,
        Err(message) => {
            let begin = position(message).map_or(1, |position| position.line);
            let description = failure(message).replace('\n', "; ");
            let fingerprint = hash(&["unreadable", &input.uri(), &description]);
            let lines = [begin, begin];
            return vec![issue(
                description,
                "unreadable",
                fingerprint,
                "blocker",
                lines,
            )];
        }
    };
    let findings: Vec<&Diagnostic> = report.findings.iter().collect();
    let fingerprints = fingerprints.of(&input.uri(), report, &findings);
    let found = findings.into_iter().zip(fingerprints);
    found
        .map(|(finding, fingerprint)| {
            let description = explanation(finding, view).replace('\n', "; ");
            let lines = [finding.place.start.line, finding.place.end.line];
            let severity = severity(finding.severity);
            issue(description, finding.rule.name, fingerprint, severity, lines)
        })
        .collect()
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "critical",
        Severity::Warning => "major",
        Severity::Advice => "minor",
        Severity::Pedantic => "info",
    }
}

/// The top of the repository in a job of GitLab; elsewhere the current directory.
fn repository() -> PathBuf {
    let here = std::env::var_os("CI_PROJECT_DIR").map(PathBuf::from);
    here.unwrap_or_else(|| std::path::absolute(Path::new(".")).unwrap_or_default())
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
