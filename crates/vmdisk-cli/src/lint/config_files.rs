//! Files that a command line names with `-readconfig`: they are read with it, and their findings are reported there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use vmdisk::{ConfigFilePart, Diagnostic, Document, ReadFailure};
use vmdisk_source::{LineIndex, Span};

use crate::lint::checked::{Checked, DocumentReport};
use crate::lint::inputs::{Input, Origin};
use crate::lint::read;
use crate::render::message::{Message, MessagePlace};

/// A document with the files that it names, as far as they could be read.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) document: Document,
    /// The first unreadable file, which ends reading: the disks after it would have no correct place.
    pub(crate) failed: Option<Checked>,
}

/// Reads the files that a command line names, relative to its own folder. Standard input and processes have none, and what
/// they name stays unread.
pub(crate) fn joined(input: &Input, document: Document) -> Result<Joined, ReadFailure> {
    let names = document.unread_config_files().to_vec();
    let is_stdin = matches!(input.origin, Origin::Stdin | Origin::Given(_));
    let mut joined = Joined {
        document,
        failed: None,
    };
    if names.is_empty() || is_stdin {
        return Ok(joined);
    }
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        let path = path_of(input, &name);
        match text_of(&path) {
            Ok(text) => files.push((name, text)),
            Err(why) => {
                joined.failed = Some(failure(input, &path, &why));
                break;
            }
        }
    }
    if !files.is_empty() {
        joined.document = vmdisk::read_with_config_files(&joined.document.text, &files)?;
    }
    Ok(joined)
}

/// The paths of files that the command lines among the inputs name, and that can be read with them.
pub(crate) fn named_by(
    inputs: &[Input],
    read_before: &BTreeMap<usize, Vec<u8>>,
) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (number, input) in inputs.iter().enumerate() {
        let Some(bytes) = read::again(number, input, read_before) else {
            continue;
        };
        let may_name = std::str::from_utf8(&bytes).is_ok_and(|text| text.contains("-readconfig"));
        if may_name
            && (!matches!(input.origin, Origin::Found(_)) || read::is_ours(&input.file, &bytes))
            && let Ok(document) = vmdisk::read_bytes(&bytes)
            && let Ok(joined) = joined(input, document)
        {
            let parts = joined.document.config_files.iter();
            named.extend(parts.map(|part| path_of(input, &part.name).display().to_string()));
        }
    }
    named
}

/// The files that a document was read with, each with its name and its text.
pub(crate) fn texts(document: &Document) -> Vec<(String, String)> {
    let text = |part: &ConfigFilePart| part.span.slice(&document.text).unwrap_or_default();
    let parts = document.config_files.iter();
    parts
        .map(|part| (part.name.clone(), text(part).to_owned()))
        .collect()
}

/// Where a file is that a document names.
pub(crate) fn path_of(input: &Input, name: &str) -> PathBuf {
    match input.file.parent() {
        Some(folder) => folder.join(name),
        None => PathBuf::from(name),
    }
}

/// The text of a file that is one of QEMU's. Nothing else is opened or quoted, whatever a command line names.
fn text_of(path: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(path).map_err(|error| crate::stop::plain(&error))?;
    if !metadata.is_file() {
        return Err("not a regular file".to_owned());
    }
    let bytes = read::file(path).map_err(|message| message.title.clone())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    if !vmdisk::begins_with_group(&text) {
        return Err("it does not begin with a group of options in brackets".to_owned());
    }
    Ok(text)
}

fn failure(input: &Input, path: &Path, why: &str) -> Checked {
    let place = MessagePlace {
        path: path.display().to_string(),
        quoted: None,
    };
    let mut message = Message::error(format!("could not be read: {why}")).at(place);
    message.notes.push(format!(
        "{} names it with -readconfig, and disks in it are not checked",
        input.path()
    ));
    Checked {
        path: path.display().to_string(),
        file: path.to_owned(),
        outcome: Err(Box::new(message)),
    }
}

/// Where the parts of a document are, for what was found in them.
pub(crate) struct Parts {
    own: Span,
    files: Vec<(PathBuf, Span)>,
}

impl Parts {
    pub(crate) fn of(input: &Input, document: &Document) -> Self {
        let files = document.config_files.iter();
        Parts {
            own: Span::new(0, document.own_text().len()),
            files: files
                .map(|part| (path_of(input, &part.name), part.span))
                .collect(),
        }
    }

    /// Takes what was found in the files out of a report, each as a report of its own.
    pub(crate) fn split(self, report: &mut DocumentReport) -> Vec<Checked> {
        if self.files.is_empty() {
            return Vec::new();
        }
        let text = std::mem::take(&mut report.text);
        let mut checked: Vec<Checked> = self
            .files
            .iter()
            .map(|(path, span)| {
                let text = span.slice(&text).unwrap_or_default();
                Checked {
                    path: path.display().to_string(),
                    file: path.to_owned(),
                    outcome: Ok(DocumentReport {
                        domain: report.domain.clone(),
                        lines: LineIndex::new(text),
                        text: text.to_owned(),
                        ..DocumentReport::empty()
                    }),
                }
            })
            .collect();
        let own = self.own.slice(&text).unwrap_or_default();
        report.lines = LineIndex::new(own);
        report.text = own.to_owned();
        for finding in std::mem::take(&mut report.findings) {
            self.deal(finding, report, &mut checked, |report| &mut report.findings);
        }
        for finding in std::mem::take(&mut report.allowed) {
            self.deal(finding, report, &mut checked, |report| &mut report.allowed);
        }
        checked
    }

    /// Puts a finding into the report of the file that it is in.
    fn deal(
        &self,
        finding: Diagnostic,
        own: &mut DocumentReport,
        files: &mut [Checked],
        list: fn(&mut DocumentReport) -> &mut Vec<Diagnostic>,
    ) {
        let at = self.number(finding.place.span);
        let finding = self.inside(finding, at);
        let report = match at.and_then(|nth| files.get_mut(nth)) {
            Some(Checked {
                outcome: Ok(report),
                ..
            }) => report,
            Some(_) | None => own,
        };
        list(report).push(finding);
    }

    /// Number of the file that a place is in; `None` for the command line itself.
    fn number(&self, span: Span) -> Option<usize> {
        self.files
            .iter()
            .rposition(|(_, file)| file.start <= span.start)
    }

    /// A finding with places that count from the beginning of its file. Places in another one become notes, and a fix
    /// is for whoever checks the file alone.
    fn inside(&self, mut finding: Diagnostic, at: Option<usize>) -> Diagnostic {
        let start = at.map_or(0, |nth| self.files[nth].1.start);
        let moved = |span: Span| Span::new(span.start - start, span.end - start);
        finding.place.span = moved(finding.place.span);
        for related in std::mem::take(&mut finding.related) {
            let elsewhere = self.number(related.place.span);
            if elsewhere == at {
                let mut related = related;
                related.place.span = moved(related.place.span);
                finding.related.push(related);
                continue;
            }
            let path = match elsewhere {
                Some(nth) => self.files[nth].0.display().to_string(),
                None => "the command line".to_owned(),
            };
            let line = related.place.start.line;
            finding
                .notes
                .push(format!("{path}, line {line}: {}", related.label));
        }
        if at.is_some() {
            finding.fix = None;
        } else if let Some(fix) = &finding.fix
            && fix.edits.iter().any(|edit| edit.span.end > self.own.end)
        {
            finding.fix = None;
        }
        finding
    }
}
