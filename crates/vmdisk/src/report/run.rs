//! The reports about several documents together.

use std::path::Path;

use vmdisk_source::LineIndex;

use super::{Classes, Counts, DocumentReport, EntryFailure, ReportEntry, ReportedHost, json};
use crate::ReadFailure;

/// The reports about several documents, each with a name, and their JSON.
///
/// ```
/// use vmdisk::report::{DocumentReport, Run};
///
/// let (good, bad) = ("<disk><driver cache='unsafe'/><target dev='vda'/></disk>", "<disk><");
/// let mut run = Run::default();
/// let document = vmdisk::read(good)?;
/// let found = vmdisk::lint(&document, &vmdisk::LintOptions::default());
/// run.add("web1.xml", DocumentReport::new(document, found));
/// run.add_unreadable("web2.xml", bad, vmdisk::read(bad).unwrap_err());
///
/// let json: serde_json::Value = serde_json::from_str(&run.to_json())?;
/// assert_eq!((&json["summary"]["inputs"], &json["summary"]["failed_inputs"]), (&2.into(), &1.into()));
/// let mut findings = json["findings"].as_array().unwrap().iter();
/// let finding = findings.find(|finding| finding["rule"] == "cache-unsafe").unwrap();
/// assert_eq!((&finding["path"], &finding["subject"]), (&"web1.xml".into(), &"guest".into()));
/// assert_eq!(finding["fingerprint"].as_str().unwrap().len(), 34);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Run {
    inputs: Vec<(String, Result<DocumentReport, Unreadable>)>,
    hosts: Vec<ReportedHost>,
}

/// A text that could not be read.
#[derive(Clone, Debug)]
struct Unreadable {
    text: String,
    failure: ReadFailure,
}

impl Run {
    /// Adds a document, whose findings have hosts if they were found for a fleet.
    pub fn add(&mut self, name: impl Into<String>, report: DocumentReport) {
        self.inputs.push((name.into(), Ok(report)));
    }

    /// Adds a text that could not be read.
    pub fn add_unreadable(
        &mut self,
        name: impl Into<String>,
        text: impl Into<String>,
        failure: ReadFailure,
    ) {
        let text = text.into();
        let unreadable = Unreadable { text, failure };
        self.inputs.push((name.into(), Err(unreadable)));
    }

    /// Names the hosts of the fleet that the documents were checked for.
    pub fn set_hosts(&mut self, hosts: Vec<ReportedHost>) {
        self.hosts = hosts;
    }

    /// The report, as `vmdisk lint --format json` prints it.
    pub fn to_json(&self) -> String {
        let reports = self.inputs.iter().filter_map(|(_, it)| it.as_ref().ok());
        let lists = reports.flat_map(DocumentReport::host_lists);
        let classes = (!self.hosts.is_empty()).then(|| Classes::new(self.hosts.iter(), lists));
        let entries: Vec<ReportEntry<'_>> = self.inputs.iter().map(entry).collect();
        let counts = Counts::of(entries.iter().cloned());
        let mut out = Vec::with_capacity(16_384);
        json::write(&mut out, &entries, &counts, classes.as_ref())
            .expect("writing to a Vec cannot fail");
        String::from_utf8(out).expect("JSON is UTF-8")
    }
}

fn entry((name, outcome): &(String, Result<DocumentReport, Unreadable>)) -> ReportEntry<'_> {
    ReportEntry {
        path: name,
        file: Path::new(name),
        outcome: outcome.as_ref().map_err(failed),
        is_continued: false,
    }
}

fn failed(Unreadable { text, failure }: &Unreadable) -> EntryFailure<'_> {
    let lines = LineIndex::new(text);
    let place = failure.place_in(text);
    let at = place.map(|span| (text.as_str(), &lines, span));
    EntryFailure::new(&failure.message, failure.help.as_deref(), at)
}
