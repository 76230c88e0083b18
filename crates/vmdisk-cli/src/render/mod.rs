//! From what was found to text: for people, for programs, for code scanning.

pub(crate) mod block;
pub(crate) mod checkstyle;
pub(crate) mod concise;
pub(crate) mod github;
pub(crate) mod gitlab;
pub(crate) mod html;
pub(crate) mod human;
pub(crate) mod junit;
pub(crate) mod message;
pub(crate) mod prometheus;
pub(crate) mod renderer;
pub(crate) mod sarif;
pub(crate) mod statistics;
pub(crate) mod summary;
#[cfg(test)]
mod tests;
pub(crate) mod uri;
pub(crate) mod window;
mod xml;

use vmdisk::plan::shell_word;
pub(crate) use vmdisk::rules::page_address as page_url;
use vmdisk::{Applicability, Diagnostic, Severity};

use crate::input::hypervisor::NotAFile;
use crate::report::input::InputReport;
use vmdisk::report::Classes;

/// Colours and letters of pages.
pub(crate) const PAGE_STYLE: &str = include_str!("page.css");

/// The command that applies a fix to an input. A process has none: its command line comes from elsewhere.
pub(crate) fn fix_command(path: &str, applicability: Applicability) -> Option<String> {
    let fix = match applicability {
        Applicability::Safe => "--fix",
        Applicability::Unsafe => "--fix --unsafe-fixes",
    };
    match NotAFile::of(path) {
        Some(NotAFile::Domain(name)) => Some(format!("vmdisk edit {fix} {}", shell_word(name))),
        Some(NotAFile::Process) => None,
        None => Some(format!("vmdisk lint {fix}")),
    }
}

/// What of a report is shown, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// Only what fails the run.
    pub(crate) quiet: bool,
    /// Also what is allowed.
    pub(crate) show_allowed: bool,
    /// Also advice in full.
    pub(crate) verbose: bool,
    /// With colour.
    pub(crate) colored: bool,
    /// With links to the pages of rules, which some terminals show.
    pub(crate) links: bool,
    /// With the option that applies a fix.
    pub(crate) suggests_fix: bool,
    /// The hosts, where there are several.
    pub(crate) classes: Option<&'a Classes<'a>>,
}

impl View<'_> {
    /// Everything that counts, without colour.
    pub(crate) const fn everything() -> Self {
        View {
            quiet: false,
            show_allowed: false,
            verbose: false,
            colored: false,
            links: false,
            suggests_fix: true,
            classes: None,
        }
    }

    /// The findings of an input that are shown.
    pub(crate) fn findings<'r>(
        &self,
        input: &'r InputReport,
    ) -> impl Iterator<Item = &'r Diagnostic> {
        let least = match self.quiet {
            true => input.fail_on,
            false => Severity::ALL[0],
        };
        let findings = input.findings().iter();
        findings.filter(move |finding| finding.severity >= least)
    }

    /// On which of several hosts something was found, in words.
    pub(crate) fn hosts_note(&self, finding: &Diagnostic) -> Option<String> {
        self.classes?.note(finding.hosts.as_ref()?)
    }
}
