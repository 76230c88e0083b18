//! Runs that are kept under a name, to compare later ones with.

use std::path::{Path, PathBuf};

use vmdisk_bench_runner::BenchResult;
use vmdisk_bench_runner::report::{ChangeVerdict, history};

use super::args::{HistoryArgs, TOLERANCE};
use super::report::{in_lines, written};
use super::result_file::read;
use super::stop::stop;
use crate::atomic;
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::{Stop, plain};

/// The runs of a name, the oldest first.
fn runs(folder: &Path, name: &str) -> Result<Vec<BenchResult>, Stop> {
    let folder = folder.join(name);
    let failed = |error: &std::io::Error| Stop::file("read", &folder, plain(error));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|error| failed(&error))? {
        let path = entry.map_err(|error| failed(&error))?.path();
        if path.extension().is_some_and(|it| it == "json") {
            files.push(path);
        }
    }
    // Their names are times.
    files.sort();
    let runs: Vec<BenchResult> = files
        .iter()
        .map(|file| read(file))
        .collect::<Result<_, _>>()?;
    match runs.is_empty() {
        true => Err(Stop::file("read", &folder, "no run is saved there")
            .help(format!("`--save-baseline {name}` saves one"))),
        false => Ok(runs),
    }
}

/// Fails before a run that would be compared with a baseline that is not there.
pub(super) fn check(folder: &Path, name: Option<&str>) -> Result<(), Stop> {
    name.map_or(Ok(()), |name| runs(folder, name).map(|_| ()))
}

/// Keeps a run beside the earlier ones of its name.
pub(super) fn save(
    result: &BenchResult,
    folder: &Path,
    name: &str,
    io: &mut Io<'_>,
) -> Result<(), Stop> {
    let folder = folder.join(name);
    std::fs::create_dir_all(&folder)
        .map_err(|error| Stop::file("create", &folder, plain(&error)))?;
    let path: PathBuf = folder.join(format!("{}.json", result.header.began_at.replace(':', "")));
    atomic::create(&path, result.to_json().as_bytes())
        .map_err(|error| Stop::file("write", &path, error))?;
    io.say(&format!("saved as {}\n", path.display()));
    Ok(())
}

/// Compares a run with the newest one of a name.
pub(super) fn compare(
    result: &BenchResult,
    folder: &Path,
    name: &str,
    io: &mut Io<'_>,
) -> Result<Exit, Stop> {
    let runs = runs(folder, name)?;
    // A run that was saved under the name it is compared with is not its own baseline.
    let earlier = runs
        .iter()
        .rev()
        .find(|it| it.header.began_at != result.header.began_at);
    let Some(earlier) = earlier else {
        return Err(Stop::new(format!("`{name}` has no earlier run")));
    };
    let earlier = in_lines(earlier)?;
    let compared = vmdisk_bench_runner::report::compare(&earlier, &in_lines(result)?, TOLERANCE);
    let compared = compared.map_err(stop)?;
    let text = compared.report().text(io.stdout_width);
    deliver(io, None, &format!("\n{text}"))?;
    Ok(exit_of(|verdict| compared.has(verdict)))
}

/// The exit code of a comparison.
pub(super) fn exit_of(has: impl Fn(ChangeVerdict) -> bool) -> Exit {
    if has(ChangeVerdict::MachineChanged) {
        Exit::CouldNot
    } else {
        Exit::clean_if(!has(ChangeVerdict::Slower))
    }
}

/// Shows the runs of a name in the order of time.
pub(super) fn show(args: &HistoryArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let runs = runs(&args.baselines, &args.name)?;
    let runs: Vec<BenchResult> = runs.iter().map(in_lines).collect::<Result<_, _>>()?;
    let report = history(&args.name, &runs);
    let width = io.width(args.output.as_deref());
    let text = written(&report, None, args.format, width);
    deliver(io, args.output.as_deref(), &text)?;
    Ok(Exit::Clean)
}
