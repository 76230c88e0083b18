//! An input of a run, as its JSON shows it.

use std::path::Path;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use vmdisk_source::{LineIndex, Span};

use super::DocumentReport;

/// An input of a run.
#[derive(Clone, Debug)]
pub struct ReportEntry<'a> {
    /// The path, for people.
    pub path: &'a str,
    /// The path with all its bytes.
    pub file: &'a Path,
    /// The report, or why there is none.
    pub outcome: Result<&'a DocumentReport, EntryFailure<'a>>,
    /// True for further findings of an input that has an entry already.
    pub is_continued: bool,
}

/// Why an input failed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Failure"))]
pub struct EntryFailure<'a> {
    /// The mistake.
    message: &'a str,
    /// Where, if it is text.
    start: Option<JsonPosition>,
    /// Where the place ends.
    end: Option<JsonPosition>,
    /// The remedy.
    help: Option<&'a str>,
}

/// A position in a text.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Position"))]
pub(super) struct JsonPosition {
    /// Line, from 1.
    pub(super) line: usize,
    /// Column in Unicode characters, from 1.
    pub(super) column: usize,
    /// Bytes before it.
    pub(super) offset: usize,
}

impl ReportEntry<'_> {
    /// The path as a relative or absolute URI.
    pub fn uri(&self) -> String {
        super::uri_of_path(self.file)
    }

    pub(super) fn position(&self, offset: usize) -> JsonPosition {
        match &self.outcome {
            Ok(report) => position(&report.text, &report.lines, offset),
            Err(_) => position("", &LineIndex::default(), offset),
        }
    }
}

impl<'a> EntryFailure<'a> {
    /// A failure, with its place in a text.
    pub fn new(
        message: &'a str,
        help: Option<&'a str>,
        at: Option<(&str, &LineIndex, Span)>,
    ) -> Self {
        let at = |offset: fn(Span) -> usize| {
            at.map(|(text, lines, span)| position(text, lines, offset(span)))
        };
        EntryFailure {
            message,
            start: at(|span| span.start),
            end: at(|span| span.end),
            help,
        }
    }
}

fn position(text: &str, lines: &LineIndex, offset: usize) -> JsonPosition {
    let found = lines.position(text, offset);
    JsonPosition {
        line: found.line,
        column: found.column,
        offset,
    }
}
