//! The result of one input: as little as the output needs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use vmdisk::model::{BackendSource, FieldPath};
use vmdisk::rules::{Missing, NotChecked};
use vmdisk::trace::HostTrace;
use vmdisk::{
    AllowedBy, Applicability, Confidence, Diagnostic, Document, FailedFix, HostIndex, LintReport,
    Severity, TextPlace,
};
use vmdisk_source::LineIndex;

use crate::render::message::Message;
use crate::render::uri;

/// One input and its result.
#[derive(Debug)]
pub(crate) struct InputReport {
    /// The given path, for people and for data.
    pub(crate) path: String,
    /// The path with all its bytes.
    pub(crate) file: PathBuf,
    /// The result.
    pub(crate) outcome: Result<DocumentReport, Box<Message>>,
}

impl InputReport {
    /// The path as a relative or absolute URI.
    pub(crate) fn uri(&self) -> String {
        uri::of_path(&self.file)
    }
}

/// The findings of one document.
#[derive(Debug)]
pub(crate) struct DocumentReport {
    /// Name of the guest, if the document has one.
    pub(crate) domain: Option<String>,
    /// Number of disks.
    pub(crate) disks: usize,
    /// The least severity that fails the run.
    pub(crate) fail_on: Severity,
    /// The text, if a finding refers to it.
    pub(crate) text: String,
    /// Its lines.
    pub(crate) lines: LineIndex,
    /// Findings that count.
    pub(crate) findings: Vec<Diagnostic>,
    /// Findings that do not count.
    pub(crate) allowed: Vec<Diagnostic>,
    /// What could not be checked, if the output names every place.
    pub(crate) not_checked: Vec<Unchecked>,
    /// Titles of the findings that `--fix` fixed.
    pub(crate) mended: Vec<String>,
    /// Fixes that were undone.
    pub(crate) failed_fixes: Vec<FailedFix>,
    /// What could not be checked, if the output does not name every place.
    pub(crate) counted: Tally,
    /// Images that the facts do not have, by the numbers of disks.
    pub(crate) unknown_images: BTreeMap<usize, String>,
    /// The I/O paths of the disks, if a report shows them.
    pub(crate) paths: Vec<HostTrace>,
    /// True if known findings were looked up in a baseline.
    pub(crate) has_baseline: bool,
    /// True for further findings of an input that has a report already.
    pub(crate) is_continued: bool,
}

/// The numbers of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Findings that count, the least severity first.
    by_severity: [usize; Severity::ALL.len()],
    pub(crate) allowed: usize,
    /// Those of them that a baseline knows.
    pub(crate) known: usize,
    /// Findings with a fix that `--fix` applies.
    pub(crate) fixable: usize,
    /// Findings with a fix that only `--unsafe-fixes` applies.
    pub(crate) fixable_unsafely: usize,
    /// Rules that could not look at something.
    pub(crate) not_checked: Vec<&'static str>,
    /// The reasons for that.
    pub(crate) reasons: Vec<Cow<'static, str>>,
}

impl Tally {
    /// True if a rule could not look. Of a guest that another program runs, there is nothing to look at.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.reasons.iter().any(|why| *why != Missing::NOT_QEMU)
    }

    /// Counts the lists of a report.
    fn add(&mut self, findings: &[Diagnostic], allowed: &[Diagnostic]) {
        for finding in findings {
            self.by_severity[finding.severity as usize] += 1;
            match finding.fix.as_ref().map(|fix| fix.applicability) {
                Some(Applicability::Safe) => self.fixable += 1,
                Some(Applicability::Unsafe) => self.fixable_unsafely += 1,
                None => {}
            }
        }
        self.allowed += allowed.len();
        let is_known = |finding: &&Diagnostic| finding.allowed_by == Some(AllowedBy::Baseline);
        self.known += allowed.iter().filter(is_known).count();
    }

    /// Notes that a rule could not look at something. Places come rule by rule.
    #[allow(
        clippy::ptr_arg,
        reason = "it is cloned, which costs nothing if it is static"
    )]
    fn add_missed(&mut self, rule: &'static str, why: &Cow<'static, str>) {
        if self.not_checked.last() != Some(&rule) {
            self.not_checked.push(rule);
        }
        if !self.reasons.contains(why) {
            self.reasons.push(why.clone());
        }
    }

    /// The number of findings of a severity.
    pub(crate) const fn of(&self, severity: Severity) -> usize {
        self.by_severity[severity as usize]
    }

    /// True if there is a finding at or above a severity.
    pub(crate) fn has_at_least(&self, severity: Severity) -> bool {
        self.by_severity[severity as usize..]
            .iter()
            .any(|count| *count > 0)
    }
}

/// Something that a rule could not look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unchecked {
    /// Name of the rule.
    pub(crate) rule: &'static str,
    /// The disk by its number and its target's name, if it is about one.
    pub(crate) disk: Option<(usize, Option<Arc<str>>)>,
    /// The field in words.
    pub(crate) field: Arc<str>,
    /// The missing input.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: Cow<'static, str>,
    /// The numbers of the hosts on which it was missing, where there are several.
    pub(crate) hosts: Vec<usize>,
}

impl DocumentReport {
    /// The report of a document without disks.
    pub(crate) fn empty() -> Self {
        DocumentReport {
            domain: None,
            disks: 0,
            fail_on: Severity::Warning,
            text: String::new(),
            lines: LineIndex::new(""),
            findings: Vec::new(),
            allowed: Vec::new(),
            not_checked: Vec::new(),
            mended: Vec::new(),
            failed_fixes: Vec::new(),
            counted: Tally::default(),
            unknown_images: BTreeMap::new(),
            has_baseline: false,
            is_continued: false,
            paths: Vec::new(),
        }
    }

    /// The report of a document; `tells_places` if the output names every place that was not checked.
    pub(crate) fn new(document: Document, report: LintReport, tells_places: bool) -> Self {
        let LintReport {
            diagnostics,
            allowed,
            not_checked,
        } = report;
        let mut counted = Tally::default();
        let unchecked = if tells_places {
            unchecked(&document, not_checked)
        } else {
            counted.not_checked.reserve(not_checked.len().min(64));
            for missed in not_checked {
                counted.add_missed(missed.rule.name, &missed.missing.why);
            }
            Vec::new()
        };
        let domain = document.domain().name.clone();
        let disks = document.domain().disks.len();
        let is_quoted = !diagnostics.is_empty() || !allowed.is_empty();
        let (text, lines) = if is_quoted {
            document.into_text()
        } else {
            (String::new(), LineIndex::new(""))
        };
        DocumentReport {
            domain,
            disks,
            fail_on: Severity::Warning,
            lines,
            text,
            findings: diagnostics,
            allowed,
            not_checked: unchecked,
            mended: Vec::new(),
            failed_fixes: Vec::new(),
            counted,
            unknown_images: BTreeMap::new(),
            has_baseline: false,
            is_continued: false,
            paths: Vec::new(),
        }
    }

    /// The numbers of the report.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = self.counted.clone();
        tally.add(&self.findings, &self.allowed);
        for missed in &self.not_checked {
            tally.add_missed(missed.rule, &missed.why);
        }
        tally
    }

    /// Gives the hosts of findings the numbers that they have among all hosts of the run.
    pub(crate) fn renumber_hosts(&mut self, numbers: &[usize]) {
        let renumber = |hosts: &mut Vec<usize>| {
            hosts.iter_mut().for_each(|host| *host = numbers[*host]);
        };
        let findings = self.findings.iter_mut().chain(&mut self.allowed);
        for found in findings.filter_map(|finding| finding.hosts.as_mut()) {
            renumber(&mut found.affected);
            renumber(&mut found.not_affected);
            renumber(&mut found.not_checked);
        }
        for missed in &mut self.not_checked {
            renumber(&mut missed.hosts);
        }
        for paths in &mut self.paths {
            renumber(&mut paths.hosts);
        }
    }

    /// Findings at or above a severity.
    pub(crate) fn at_least(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.findings
            .iter()
            .filter(move |finding| finding.severity >= severity)
    }
}

/// The images of a guest that the facts of its host do not have, by the numbers of disks.
pub(crate) fn unknown_images(document: &Document, host: &HostIndex<'_>) -> BTreeMap<usize, String> {
    let disks = document.domain().disks.iter().enumerate();
    let unknown = disks.filter_map(|(number, disk)| {
        let BackendSource::Image(image) = &disk.backend.source else {
            return None;
        };
        let path = image.host_path()?;
        let is_known = host.file(path).is_some() || host.block_device(path).known().is_some();
        (!is_known).then(|| (number, path.to_owned()))
    });
    unknown.collect()
}

/// What could not be checked, with the names of its places.
fn unchecked(document: &Document, not_checked: Vec<NotChecked>) -> Vec<Unchecked> {
    let disks = document.domain().disks.iter();
    let targets = disks.map(|disk| disk.frontend.target.as_deref().map(Arc::from));
    let targets: Vec<Option<Arc<str>>> = targets.collect();
    let target = |index: usize| targets.get(index).cloned().flatten();
    // Many rules miss something about one field.
    let mut in_words: BTreeMap<FieldPath, Arc<str>> = BTreeMap::new();
    let mut field = |at: FieldPath| {
        let words = in_words.entry(at);
        Arc::clone(words.or_insert_with(|| document.breadcrumb(at).into()))
    };
    let mut unchecked: Vec<Unchecked> = not_checked
        .into_iter()
        .map(|missed| Unchecked {
            rule: missed.rule.name,
            disk: missed.at.disk().map(|index| (index, target(index))),
            field: field(missed.at),
            what: missed.missing.what,
            why: missed.missing.why,
            hosts: missed.hosts,
        })
        .collect();
    unchecked.sort();
    unchecked.dedup();
    unchecked
}

/// The note that distinguishes an assumption from an observation.
pub(crate) fn confidence_note(confidence: Confidence) -> Option<&'static str> {
    match confidence {
        Confidence::Certain => None,
        Confidence::Assumed => Some("assumed from version numbers or defaults, not observed"),
    }
}

/// The note that names an unset field, if the place shows only its parent.
pub(crate) fn unwritten_note(place: &TextPlace) -> Option<String> {
    (!place.is_exact).then(|| format!("{} is not set", place.breadcrumb))
}
