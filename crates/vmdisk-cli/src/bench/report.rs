//! `vmdisk bench report`, and the files in a run's directory.

use std::fmt::Display;
use std::path::Path;

use vmdisk_bench_runner::report::{BenchReport, csv, fio_jobs, pairs};
use vmdisk_bench_runner::{BenchResult, REPORTS};

use super::args::{ExportTo, ReportArgs, ReportFormat};
use super::result_file::{PAGE, REPORT, RESULT, SAMPLES, directory_of, read};
use super::stop::stop;
use super::{page, pictures, to_facts};
use crate::atomic;
use crate::exit::Exit;
use crate::input::bounded::{self, MAX_BYTES};
use crate::io::Io;
use crate::output::deliver;
use crate::sanitize;
use crate::stop::{Stop, plain};

/// Writes the report of a run.
pub(super) fn run(args: &ReportArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    if let Some(file) = &args.to_facts {
        to_facts::write(&args.run, file, io)?;
        return Ok(Exit::Clean);
    }
    if args.to == Some(ExportTo::Allowance) {
        let text = to_facts::allowances(&args.run)?;
        let text = sanitize::lines(&text);
        deliver(io, args.output.as_deref(), &text)?;
        return Ok(Exit::Clean);
    }
    let mut result = read(&args.run)?;
    if let Some(named) = &args.pairs {
        let text = pairs(&in_lines(&result)?, named).map_err(stop)?;
        deliver(io, args.output.as_deref(), &text)?;
        return Ok(Exit::Clean);
    }
    if let Some(name) = &args.baseline {
        result = result.with_baseline(name).map_err(stop)?;
    }
    if args.to == Some(ExportTo::Fio) {
        let directory = args.output.as_deref();
        let directory = directory.ok_or_else(|| Stop::new("--to fio needs --output DIRECTORY"))?;
        return export_fio(&result, &args.run, directory, io);
    }
    let width = io.width(args.output.as_deref());
    let text = in_form(&result, args.format, width)?;
    deliver(io, args.output.as_deref(), &text)?;
    Ok(Exit::Clean)
}

/// Writes the fio jobs of a run into a new directory, and copies the reports that fio wrote.
fn export_fio(
    result: &BenchResult,
    run: &Path,
    directory: &Path,
    io: &mut Io<'_>,
) -> Result<Exit, Stop> {
    let jobs = fio_jobs(result);
    if jobs.is_empty() {
        return Err(Stop::new("the run has no fio samples"));
    }
    std::fs::create_dir(directory)
        .map_err(|error| Stop::file("create", directory, plain(&error)))?;
    for (name, text) in &jobs {
        let path = directory.join(name);
        atomic::create(&path, text.as_bytes())
            .map_err(|error| Stop::file("write", &path, error))?;
    }
    let mut reports = 0;
    for entry in std::fs::read_dir(directory_of(run).join(REPORTS))
        .into_iter()
        .flatten()
        .flatten()
    {
        let to = directory.join(entry.file_name());
        let bytes = bounded::regular(&entry.path(), MAX_BYTES)
            .map_err(|error| Stop::file("read", &entry.path(), plain(&error)))?;
        atomic::create(&to, &bytes).map_err(|error| Stop::file("write", &to, error))?;
        reports += 1;
    }
    io.say(&format!(
        "wrote {} fio jobs and {reports} fio reports to {}\n",
        jobs.len(),
        directory.display()
    ));
    Ok(Exit::Clean)
}

/// Removes line ends and control characters from all names of a result.
pub(super) fn in_lines(result: &BenchResult) -> Result<BenchResult, Stop> {
    let not_written =
        |error: &dyn Display| Stop::new(format!("could not write the report: {error}"));
    let text = sanitize::strings(result).map_err(|error| not_written(&error))?;
    BenchResult::from_json(&text, RESULT).map_err(|error| not_written(&error))
}

/// Formats a result; as text, its lines fit the width of a terminal.
pub(super) fn in_form(
    result: &BenchResult,
    format: ReportFormat,
    width: Option<usize>,
) -> Result<String, Stop> {
    Ok(match format {
        ReportFormat::Json => result.to_json(),
        ReportFormat::Csv => csv(&in_lines(result)?),
        ReportFormat::Text | ReportFormat::Markdown | ReportFormat::Html | ReportFormat::Svg => {
            let result = in_lines(result)?;
            written(&result.report(), Some(&result), format, width)
        }
    })
}

/// Formats a report; for other formats it is text.
pub(super) fn written(
    report: &BenchReport,
    result: Option<&BenchResult>,
    format: ReportFormat,
    width: Option<usize>,
) -> String {
    match format {
        ReportFormat::Html => page::page(report, result),
        ReportFormat::Svg => pictures::file(report, result),
        ReportFormat::Markdown => report.markdown(),
        ReportFormat::Text | ReportFormat::Json | ReportFormat::Csv => report.text(width),
    }
}

/// Writes every format into a run's directory.
pub(super) fn write_all(result: &BenchResult, directory: &Path) -> Result<(), Stop> {
    for (name, format) in [
        (RESULT, ReportFormat::Json),
        (SAMPLES, ReportFormat::Csv),
        (REPORT, ReportFormat::Markdown),
        (PAGE, ReportFormat::Html),
    ] {
        let path = directory.join(name);
        atomic::write(&path, in_form(result, format, None)?.as_bytes())
            .map_err(|error| Stop::file("write", &path, error))?;
    }
    Ok(())
}
