//! fio as a program: detection, and running a job.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{IoEngine, measurement};
use crate::programs;
use crate::{Cancel, CommandRecord, Error, Measurement, Workload};

/// The fio installed on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstalledFio {
    /// Its version.
    pub(crate) version: String,
    /// Its I/O engine; `None` without one that keeps several requests in flight.
    pub(crate) io_engine: Option<IoEngine>,
}

/// Detects the fio installed on this host.
pub(crate) fn installed() -> Result<InstalledFio, Error> {
    let version = programs::run("fio", &["--version"])?;
    let list = programs::run("fio", &["--enghelp"])?;
    Ok(InstalledFio {
        version: version.trim().to_owned(),
        io_engine: IoEngine::of_list(&list),
    })
}

/// Returns the I/O engine, or an error that another fio is needed.
pub(crate) fn needed(io_engine: Option<IoEngine>) -> Result<IoEngine, Error> {
    io_engine
        .ok_or_else(|| Error::missing("fio with libaio or io_uring", "this engine", "install it"))
}

/// Runs a job in a directory with `name` as the name of its file, and removes the file. The launcher starts fio.
pub(crate) fn run(
    directory: &Path,
    name: &str,
    job: String,
    launcher: &[String],
    workload: &Workload,
    cancel: &Cancel,
) -> Result<Measurement, Error> {
    let file = format!("{name}.fio");
    let path = directory.join(&file);
    fs::write(&path, &job).map_err(|error| Error::io("write", &path, error))?;
    let mut argv = launcher.to_vec();
    argv.extend(["fio", "--eta=never", "--output-format=json+"].map(str::to_owned));
    if !workload.load.writes() {
        // With this option fio refuses to write, whatever the job contains.
        argv.push("--readonly".to_owned());
    }
    argv.push(file);
    let limit = Duration::from_secs(60) + 10 * workload.duration();
    let ended = programs::output_in(directory, &argv, limit, cancel);
    let _ = fs::remove_file(&path);
    let ended = ended?;
    let mut measured = measurement(&ended.stdout, workload)?;
    measured.commands.push(CommandRecord::new(argv));
    measured.inputs.insert("job".to_owned(), job);
    measured
        .notes
        .extend(ended.stderr.lines().map(str::to_owned));
    Ok(measured)
}
