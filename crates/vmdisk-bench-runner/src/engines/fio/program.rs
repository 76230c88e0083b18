//! fio as a program: which one there is, and a job run by it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{IoEngine, block_bytes, measurement, series};
use crate::programs;
use crate::{Cancel, CommandRecord, Error, Measurement, Workload};

/// The fio of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installed {
    /// Its version.
    pub(crate) version: String,
    /// How it can send requests; `None` if in no way that keeps several under way.
    pub(crate) io_engine: Option<IoEngine>,
}

/// Asks the fio of this host what it is.
pub(crate) fn installed() -> Result<Installed, Error> {
    let version = programs::run("fio", &["--version"])?;
    let list = programs::run("fio", &["--enghelp"])?;
    Ok(Installed {
        version: version.trim().to_owned(),
        io_engine: IoEngine::of_list(&list),
    })
}

/// How requests are sent, or that fio has to be another one.
pub(crate) fn needed(io_engine: Option<IoEngine>) -> Result<IoEngine, Error> {
    io_engine.ok_or_else(|| Error::Missing {
        what: "fio with libaio or io_uring".to_owned(),
        needed_for: "this engine".to_owned(),
        help: "install it".to_owned(),
    })
}

/// Runs a job in a directory, with `name` as the prefix of its files, and removes these files.
pub(crate) fn run(
    directory: &Path,
    name: &str,
    job: String,
    workload: &Workload,
    cancel: &Cancel,
) -> Result<Measurement, Error> {
    let file = format!("{name}.fio");
    let path = directory.join(&file);
    fs::write(&path, &job).map_err(|error| Error::io("write", &path, error))?;
    let mut argv = ["fio", "--eta=never", "--output-format=json+"]
        .map(str::to_owned)
        .to_vec();
    if !workload.load.writes() {
        // fio refuses to write then, whatever the job says.
        argv.push("--readonly".to_owned());
    }
    argv.push(file);
    let limit = Duration::from_secs(60) + 10 * workload.duration();
    let ended = programs::output_in(directory, &argv, limit, cancel);
    let log = directory.join(format!("{name}_iops.log"));
    let course = fs::read_to_string(&log).unwrap_or_default();
    for left in [&path, &log] {
        let _ = fs::remove_file(left);
    }
    let ended = ended?;
    let mut measured = measurement(&ended.stdout, workload)?;
    measured.series = series(&course, block_bytes(workload), measured.seconds);
    measured.commands.push(CommandRecord::new(argv));
    measured.inputs.insert("job".to_owned(), job);
    measured.raw_report = Some(ended.stdout);
    measured
        .notes
        .extend(ended.stderr.lines().map(str::to_owned));
    Ok(measured)
}
