//! The report about one input.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use vmdisk::model::BackendSource;
use vmdisk::report::{
    DocumentReport, EntryFailure, ReportEntry, SaidOnce, Unchecked, UncheckedRules, uri_of_path,
};
use vmdisk::trace::HostTrace;
use vmdisk::{Confidence, Diagnostic, Document, HostIndex, Severity, TextPlace};

use crate::render::message::{Message, MessagePlace};

/// One input, or a file that it names, with its result.
#[derive(Debug)]
pub(crate) struct InputReport {
    /// The given path, for people and for data.
    pub(crate) path: String,
    /// The path with all its bytes.
    pub(crate) file: PathBuf,
    /// The findings, or why it could not be checked.
    pub(crate) outcome: Result<DocumentReport, Box<Message>>,
    /// The least severity that fails the run.
    pub(crate) fail_on: Severity,
    /// True if it was checked with the facts of a host.
    pub(crate) has_facts: bool,
    /// True if known findings were looked up in a baseline.
    pub(crate) has_baseline: bool,
    /// True for further findings of an input that has a report already.
    pub(crate) is_continued: bool,
    /// Images that the facts do not have, by the numbers of disks.
    pub(crate) unknown_images: BTreeMap<usize, String>,
    /// The I/O paths of the disks, if a report shows them.
    pub(crate) paths: Vec<HostTrace>,
    /// What a check of the host itself looked at, with its first report.
    pub(crate) host: Option<CheckedHost>,
    /// The changes of a fix that is not made, as a diff; empty without changes.
    pub(crate) diff: String,
}

/// What a check of the host itself looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckedHost {
    /// The places by their kinds, and the programs with their versions, in words.
    pub(crate) what: String,
    /// The places that could not be checked, each with the reason.
    pub(crate) left_out: Vec<String>,
}

impl InputReport {
    /// The report about a file.
    pub(crate) fn new(file: &Path, outcome: Result<DocumentReport, Box<Message>>) -> Self {
        InputReport {
            path: file.display().to_string(),
            file: file.to_owned(),
            outcome,
            fail_on: Severity::Warning,
            has_facts: false,
            has_baseline: false,
            is_continued: false,
            unknown_images: BTreeMap::new(),
            paths: Vec::new(),
            host: None,
            diff: String::new(),
        }
    }

    /// The report about a file that could not be checked.
    pub(crate) fn failed(file: &Path, mut message: Message) -> Self {
        message
            .place
            .get_or_insert_with(|| MessagePlace::new(file.display().to_string(), None));
        Self::new(file, Err(Box::new(message)))
    }

    /// The input in the JSON of the report.
    pub(crate) fn entry(&self) -> ReportEntry<'_> {
        ReportEntry {
            path: &self.path,
            file: &self.file,
            outcome: self.outcome.as_ref().map_err(|it| failure(it)),
            is_continued: self.is_continued,
        }
    }

    /// The path as a relative or absolute URI.
    pub(crate) fn uri(&self) -> String {
        uri_of_path(&self.file)
    }

    /// Findings that count.
    pub(crate) fn findings(&self) -> &[Diagnostic] {
        let report = self.outcome.as_ref();
        report.map_or(&[], |report| report.findings.as_slice())
    }

    /// Findings that do not count.
    pub(crate) fn allowed(&self) -> &[Diagnostic] {
        let report = self.outcome.as_ref();
        report.map_or(&[], |report| report.allowed.as_slice())
    }

    /// Findings at or above the severity that fails the run.
    pub(crate) fn failing(&self) -> impl Iterator<Item = &Diagnostic> {
        let findings = self.findings().iter();
        findings.filter(|finding| finding.severity >= self.fail_on)
    }

    /// Places that rules could not look at.
    pub(crate) fn not_checked(&self) -> impl Iterator<Item = Unchecked<'_>> {
        let report = self.outcome.iter();
        report.flat_map(|report| report.not_checked.iter())
    }

    /// Rules that could not look at something.
    pub(crate) fn unchecked_rules(&self) -> Option<&UncheckedRules> {
        let report = self.outcome.as_ref().ok()?;
        Some(&report.unchecked_rules)
    }

    /// Adds the findings of a further report about the same text.
    ///
    /// # Errors
    /// The further report, if it is about another one.
    pub(crate) fn add(&mut self, further: InputReport) -> Result<(), Box<InputReport>> {
        let (Ok(report), Ok(more)) = (&mut self.outcome, &further.outcome) else {
            return Err(Box::new(further));
        };
        let is_quoted = !report.text.is_empty();
        if self.file != further.file
            || is_quoted && !more.text.is_empty() && report.text != more.text
        {
            return Err(Box::new(further));
        }
        let Ok(more) = further.outcome else {
            return Ok(());
        };
        if !is_quoted {
            (report.text, report.lines) = (more.text, more.lines);
        }
        report.findings.extend(more.findings);
        report.allowed.extend(more.allowed);
        let places = report.not_checked.iter().chain(more.not_checked.iter());
        report.not_checked = places.collect();
        report.unchecked_rules.extend(more.unchecked_rules);
        Ok(())
    }

    /// Drops advice about a host that is said already; true if there was some. What a baseline knows is known of each
    /// input.
    pub(crate) fn drop_said(&mut self, host: usize, said: &mut SaidOnce) -> bool {
        let (false, Ok(report)) = (self.has_baseline, &mut self.outcome) else {
            return false;
        };
        said.drop_from(report, &self.path, host)
    }

    /// Gives hosts the numbers that they have among all hosts of the run.
    pub(crate) fn renumber_hosts(&mut self, numbers: &[usize]) {
        let renumber = |hosts: &mut Vec<usize>| {
            hosts.iter_mut().for_each(|host| *host = numbers[*host]);
        };
        if let Ok(report) = &mut self.outcome {
            let findings = report.findings.iter_mut().chain(&mut report.allowed);
            for found in findings.filter_map(|finding| finding.hosts.as_mut()) {
                renumber(&mut found.affected);
                renumber(&mut found.not_affected);
                renumber(&mut found.not_checked);
            }
            report.not_checked.renumber_hosts(renumber);
        }
        let paths = self.paths.iter_mut();
        paths.for_each(|paths| renumber(&mut paths.hosts));
    }
}

fn failure(message: &Message) -> EntryFailure<'_> {
    let quoted = message.place.as_ref().and_then(|it| it.quoted.as_ref());
    let at = quoted.map(|it| (it.text.text(), it.text.lines(), it.span));
    EntryFailure::new(&message.title, message.help.as_deref(), at)
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

/// The note that distinguishes an assumption from an observation.
pub(crate) fn confidence_note(confidence: Confidence) -> Option<&'static str> {
    match confidence {
        Confidence::Certain => None,
        Confidence::Assumed => Some("assumed from version numbers or defaults, not observed"),
    }
}

/// The note that names an unset field, if the place shows only its parent and the label does not say it.
pub(crate) fn unwritten_note(place: &TextPlace, label: Option<&str>) -> Option<String> {
    let is_said = label.is_some_and(|label| label.contains("is not set"));
    (!place.is_exact && !is_said).then(|| format!("{} is not set", place.breadcrumb))
}
