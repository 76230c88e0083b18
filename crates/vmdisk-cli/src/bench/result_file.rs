//! The result of a run, read from its directory or from a file.

use std::fmt::Display;
use std::path::Path;

use vmdisk_bench_runner::{BenchResult, Journal, RECORDS, REPORTS};

use super::stop::stop;
use crate::input::bounded::{self, MAX_BYTES};
use crate::input::{used, watch};
use crate::stop::{Stop, plain};

/// Name of the result in a run's directory.
pub(super) const RESULT: &str = "result.json";
/// Name of the samples as a table.
pub(super) const SAMPLES: &str = "samples.csv";
/// Name of the report for people.
pub(super) const REPORT: &str = "report.md";
/// Name of the report with pictures.
pub(super) const PAGE: &str = "report.html";
/// Name of the facts of the host.
pub(super) const FACTS: &str = "facts.json";

/// Reads a result: from a file, or from the journal in a directory, which may have samples newer than
/// the reports. No output replaces a file of that run.
pub(super) fn read(path: &Path) -> Result<BenchResult, Stop> {
    note_files(directory_of(path));
    if path.is_dir() {
        return of_journal(path);
    }
    let text = text_of(path)?;
    BenchResult::from_json(&text, &path.display().to_string()).map_err(stop)
}

/// Reads the result of the run in a directory, whose reports may be written again.
pub(super) fn of_journal(directory: &Path) -> Result<BenchResult, Stop> {
    let read = Journal::read(directory, |path| bounded::regular(path, MAX_BYTES)).map_err(stop)?;
    BenchResult::of(read.header, read.entries).map_err(stop)
}

/// The directory of a run that is named by its directory or its result.
pub(super) fn directory_of(run: &Path) -> &Path {
    match run.parent() {
        Some(parent) if !run.is_dir() => parent,
        _ => run,
    }
}

/// Notes the files of a run in a directory that has its records; what else is there may be an output.
fn note_files(directory: &Path) {
    let has = |record: &&str| {
        let path = directory.join(record);
        watch::look(&path, || path.exists())
    };
    if !RECORDS.iter().all(has) {
        return;
    }
    let files = RECORDS
        .iter()
        .chain(&[FACTS, RESULT, SAMPLES, REPORT, PAGE]);
    files.for_each(|file| used::file(&directory.join(file)));
    let samples = directory.join(REPORTS);
    let samples = watch::look(&samples, || std::fs::read_dir(&samples));
    let samples = samples.into_iter().flatten().flatten();
    samples.for_each(|sample| used::file(&sample.path()));
}

/// The text of a file that the caller named.
pub(super) fn text_of(path: &Path) -> Result<String, Stop> {
    let failed = |why: &dyn Display| Stop::file("read", path, why);
    let bytes = bounded::named(path).map_err(|error| failed(&plain(&error)))?;
    String::from_utf8(bytes).map_err(|_| failed(&"not valid UTF-8"))
}
