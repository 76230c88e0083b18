//! Findings in files that a command line names: each is reported in its own file.

use std::path::PathBuf;

use vmdisk::report::DocumentReport;
use vmdisk::{Diagnostic, Document};
use vmdisk_source::{LineIndex, Span};

use crate::input::config_files::path_of;
use crate::input::inputs::Input;
use crate::report::input::InputReport;

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
    pub(crate) fn split(self, report: &mut DocumentReport) -> Vec<InputReport> {
        if self.files.is_empty() {
            return Vec::new();
        }
        let text = std::mem::take(&mut report.text);
        let mut checked: Vec<InputReport> = self
            .files
            .iter()
            .map(|(path, span)| {
                let text = span.slice(&text).unwrap_or_default();
                let mut part = DocumentReport::default();
                part.domain.clone_from(&report.domain);
                part.lines = LineIndex::new(text).into();
                part.text = text.into();
                InputReport::new(path, Ok(part))
            })
            .collect();
        let own = self.own.slice(&text).unwrap_or_default();
        report.lines = LineIndex::new(own).into();
        report.text = own.into();
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
        files: &mut [InputReport],
        list: fn(&mut DocumentReport) -> &mut Vec<Diagnostic>,
    ) {
        let at = self.number(finding.place.span);
        let finding = self.inside(finding, at);
        let report = match at.and_then(|nth| files.get_mut(nth)) {
            Some(InputReport {
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
