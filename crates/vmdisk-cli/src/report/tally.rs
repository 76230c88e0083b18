//! The results of a run as numbers.

use std::collections::{HashMap, HashSet};

use vmdisk::report::{Classes, DocumentReport};
use vmdisk::{Applicability, Diagnostic, Severity};

use crate::render::summary::Summary;
use crate::report::input::InputReport;

/// The results of a run as numbers.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) summary: Summary,
    found: HashMap<Kind, usize>,
    /// The lists of hosts that reports have, each once.
    pub(crate) host_lists: HashSet<Vec<usize>>,
}

/// What findings that are counted together have in common.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) rule: &'static str,
    pub(crate) group: &'static str,
    pub(crate) severity: Severity,
    pub(crate) fix: Option<Applicability>,
    /// True if they fail the run.
    pub(crate) fails: bool,
    /// True if they do not count: an allowance or the baseline has them.
    pub(crate) is_allowed: bool,
    /// The numbers of the hosts that they are about, where there are several.
    hosts: Vec<usize>,
}

impl Kind {
    fn of(finding: &Diagnostic, input: &InputReport) -> Self {
        let hosts = finding.hosts.as_ref();
        Kind {
            rule: finding.rule.name,
            group: finding.rule.group.as_str(),
            severity: finding.severity,
            fix: finding.fix.as_ref().map(|fix| fix.applicability),
            fails: finding.severity >= input.fail_on && finding.allowed_by.is_none(),
            is_allowed: finding.allowed_by.is_some(),
            hosts: hosts.map_or_else(Vec::new, |it| it.affected.clone()),
        }
    }

    /// The classes of its hosts, by the names that fleets are counted by.
    pub(crate) fn classes<'a>(&self, classes: &'a Classes<'_>) -> HashSet<&'a str> {
        let hosts = self.hosts.iter();
        hosts.map(|host| classes.kind_of(*host)).collect()
    }
}

impl Tally {
    /// Counts an input.
    pub(crate) fn add(&mut self, input: &InputReport) {
        self.summary.add(input);
        for finding in input.findings().iter().chain(input.allowed()) {
            *self.found.entry(Kind::of(finding, input)).or_default() += 1;
        }
        let report = input.outcome.iter();
        for hosts in report.flat_map(DocumentReport::host_lists) {
            if !self.host_lists.contains(hosts) {
                self.host_lists.insert(hosts.to_vec());
            }
        }
    }

    /// The kinds of findings, each with the number of them.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&Kind, usize)> {
        self.found.iter().map(|(kind, number)| (kind, *number))
    }
}
