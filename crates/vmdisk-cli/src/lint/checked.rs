//! What came of one input: as little as the output needs, so that many inputs fit in memory.

use std::borrow::Cow;

use vmdisk::rules::NotChecked;
use vmdisk::{Confidence, Diagnostic, Document, FailedFix, LintReport, Place, Severity};
use vmdisk_source::LineIndex;

use crate::render::message::Message;

/// One input and what came of it.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The path as it was given, for people and for data.
    pub(crate) path: String,
    /// The path as a relative or absolute URI.
    pub(crate) uri: String,
    /// What came of it.
    pub(crate) outcome: Result<Report, Box<Message>>,
}

/// What the rules say about one document.
#[derive(Debug)]
pub(crate) struct Report {
    /// Name of the guest, if the document has one.
    pub(crate) domain: Option<String>,
    /// Number of disks.
    pub(crate) disks: usize,
    /// The text, if a finding refers to it.
    pub(crate) text: String,
    /// Its lines.
    pub(crate) lines: LineIndex,
    /// Findings that count.
    pub(crate) findings: Vec<Diagnostic>,
    /// Findings that do not count.
    pub(crate) allowed: Vec<Diagnostic>,
    /// What could not be checked, as far as the output tells it.
    pub(crate) not_checked: Vec<Unchecked>,
    /// Titles of what `--fix` mended.
    pub(crate) mended: Vec<String>,
    /// Fixes that were undone.
    pub(crate) failed_fixes: Vec<FailedFix>,
}

/// Something that a rule could not look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unchecked {
    /// Name of the rule.
    pub(crate) rule: &'static str,
    /// The disk by its number and its target's name, if it is about one.
    pub(crate) disk: Option<(usize, Option<String>)>,
    /// The field in words.
    pub(crate) field: String,
    /// What was missing.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: Cow<'static, str>,
    /// The numbers of the hosts on which it was missing, where there are several.
    pub(crate) hosts: Vec<usize>,
}

impl Report {
    /// The report of a document without disks.
    pub(crate) fn empty() -> Self {
        Report {
            domain: None,
            disks: 0,
            text: String::new(),
            lines: LineIndex::new(""),
            findings: Vec::new(),
            allowed: Vec::new(),
            not_checked: Vec::new(),
            mended: Vec::new(),
            failed_fixes: Vec::new(),
        }
    }

    /// The report of a document; `tells_places` if the output tells every place that was not checked.
    pub(crate) fn new(document: Document, report: LintReport, tells_places: bool) -> Self {
        let LintReport {
            diagnostics,
            allowed,
            mut not_checked,
        } = report;
        if !tells_places {
            one_for_each_reason(&mut not_checked);
        }
        let mut unchecked: Vec<Unchecked> = not_checked
            .into_iter()
            .map(|missed| Unchecked {
                rule: missed.rule.name,
                disk: missed.at.disk().map(|index| {
                    let disk = document.domain().disks.get(index);
                    (index, disk.and_then(|disk| disk.frontend.target.clone()))
                }),
                field: document.breadcrumb(missed.at),
                what: missed.missing.what,
                why: missed.missing.why,
                hosts: missed.hosts,
            })
            .collect();
        unchecked.sort();
        unchecked.dedup();
        let domain = document.domain().name.clone();
        let disks = document.domain().disks.len();
        let is_quoted = !diagnostics.is_empty() || !allowed.is_empty();
        let (text, lines) = if is_quoted {
            document.into_text()
        } else {
            (String::new(), LineIndex::new(""))
        };
        Report {
            domain,
            disks,
            lines,
            text,
            findings: diagnostics,
            allowed,
            not_checked: unchecked,
            mended: Vec::new(),
            failed_fixes: Vec::new(),
        }
    }

    /// Lets go of the text, once nothing is going to be quoted from it.
    pub(crate) fn drop_text(&mut self) {
        self.text = String::new();
        self.lines = LineIndex::new("");
    }

    /// Findings at or above a severity.
    pub(crate) fn at_least(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.findings
            .iter()
            .filter(move |finding| finding.severity >= severity)
    }
}

/// Leaves one place for each rule and reason.
fn one_for_each_reason(not_checked: &mut Vec<NotChecked>) {
    let mut seen: Vec<(&'static str, Cow<'static, str>)> = Vec::new();
    not_checked.retain(|missed| {
        // Places come rule by rule, so the reason is nearly always the last one.
        let is_known = seen
            .iter()
            .rev()
            .take_while(|(rule, _)| *rule == missed.rule.name)
            .any(|(_, why)| *why == missed.missing.why);
        if !is_known {
            seen.push((missed.rule.name, missed.missing.why.clone()));
        }
        !is_known
    });
}

/// The note that tells an assumption from an observation.
pub(crate) fn confidence_note(confidence: Confidence) -> Option<&'static str> {
    match confidence {
        Confidence::Certain => None,
        Confidence::Assumed => Some("assumed from version numbers or defaults, not observed"),
    }
}

/// The note that says which field is meant where the place shows only what is around it.
pub(crate) fn unwritten_note(place: &Place) -> Option<String> {
    (!place.is_exact).then(|| format!("about {}, which is not written there", place.breadcrumb))
}
