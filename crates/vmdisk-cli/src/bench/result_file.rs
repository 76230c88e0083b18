//! The result of a run, read from its directory or from a file.

use std::fmt::Display;
use std::path::Path;

use vmdisk_bench_runner::{BenchResult, Journal};

use super::stop::stop;
use crate::input::bounded::{self, MAX_BYTES};
use crate::stop::{Stop, plain};

/// Name of the result in a run's directory.
pub(super) const RESULT: &str = "result.json";

/// Reads a result: from a file, or from the journal in a directory, which may have samples newer than
/// the reports.
pub(super) fn read(path: &Path) -> Result<BenchResult, Stop> {
    if path.is_dir() {
        let read = Journal::read(path, |path| bounded::regular(path, MAX_BYTES)).map_err(stop)?;
        return BenchResult::of(read.header, read.entries).map_err(stop);
    }
    let text = text_of(path)?;
    BenchResult::from_json(&text, &path.display().to_string()).map_err(stop)
}

/// The text of a file that the caller named.
pub(super) fn text_of(path: &Path) -> Result<String, Stop> {
    let failed = |why: &dyn Display| Stop::file("read", path, why);
    let bytes = bounded::named(path).map_err(|error| failed(&plain(&error)))?;
    String::from_utf8(bytes).map_err(|_| failed(&"not valid UTF-8"))
}
