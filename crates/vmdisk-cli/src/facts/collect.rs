//! `vmdisk facts collect`.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use vmdisk::Facts;
use vmdisk::facts::CollectError;
use vmdisk_collect::{RECORDING, Request, collect};

use crate::args::{CollectArgs, FactsFormat};
use crate::atomic::{self, ReplaceError};
use crate::clock;
use crate::color::Colors;
use crate::exit::Exit;
use crate::facts::{named, show};
use crate::input::used;
use crate::io::Io;
use crate::output::deliver_exact;
use crate::render::message::Message;
use crate::stop::{Stop, plain};

/// Runs the command.
pub(super) fn run(args: &CollectArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let CollectArgs {
        paths,
        domains,
        values,
        groups,
        format,
        output,
        root,
        probe_dio,
        record,
    } = args;
    let is_live = root == Path::new("/");
    let mut domains = domains.clone();
    let mut asked = Vec::new();
    for path in paths {
        if is_live && named::is_configuration(path) {
            domains.push(path.clone());
        } else {
            asked.push(absolute(path, is_live)?);
        }
    }
    asked.iter().for_each(|path| used::file(path));
    let (wanted, mut warnings) = named::wanted(&domains, values, io)?;
    let mut request = Request::of(&wanted, clock::now());
    request.paths.splice(0..0, asked.iter().cloned());
    if !is_live {
        must_be_a_directory("collect facts below", root)?;
        request.root = absolute(root, true)?;
    }
    if let Some(directory) = probe_dio {
        if !is_live {
            return Err(Stop::new(
                "direct I/O cannot be tried below a recorded root",
            ));
        }
        must_be_a_directory("try direct I/O in", directory)?;
        request.probe_direct_io = Some(absolute(directory, true)?);
    }
    // The others say nothing without what the core finds.
    request.groups.extend(groups);
    // It may contain secrets, and is written by this descriptor until the end.
    let recording = record.as_deref().map(made_empty).transpose()?;
    request.record = recording
        .as_ref()
        .map(|it| format!("/proc/self/fd/{}", it.as_raw_fd()).into());
    let facts = collect(&request);
    if let (Some(directory), Some(error)) = (record, failed_to_record(&facts)) {
        return Err(Stop::file("record into", directory, &error.detail));
    }
    let text = match format {
        FactsFormat::Json => facts.to_json(),
        FactsFormat::Yaml => facts.to_yaml(),
        FactsFormat::Text => show::for_people(&facts, io.width(output.as_deref()))
            .map_err(|error| Stop::new(format!("the facts cannot be shown: {error}")))?,
    };
    deliver_exact(io, output.as_deref(), &text)?;
    let missing = asked.iter().filter(|path| is_missing(&facts, path));
    let missing = missing.map(|path| format!("{} does not exist", path.display()));
    warnings.extend(missing.map(Message::warning));
    for warning in &warnings {
        io.say(&warning.render(colors.stderr));
    }
    Ok(match warnings.as_slice() {
        [] => Exit::Clean,
        [..] => Exit::Findings,
    })
}

/// True if the facts say that there is nothing at a path that was named.
fn is_missing(facts: &Facts, path: &Path) -> bool {
    let path = path.to_string_lossy();
    facts
        .files
        .iter()
        .any(|file| file.path == path && file.is_missing())
}

/// The path from the root. Below a recorded root a relative path has no directory to
/// start from.
fn absolute(path: &Path, is_live: bool) -> Result<PathBuf, Stop> {
    if !is_live && !path.is_absolute() {
        return Err(Stop::new(format!(
            "{} is relative, and below a recorded root there is nothing it could be relative to",
            path.display()
        ))
        .help("use the absolute path on the recorded host"));
    }
    std::path::absolute(path).map_err(|error| Stop::file("find", path, plain(&error)))
}

/// An empty private directory for a recording.
fn made_empty(directory: &Path) -> Result<OwnedFd, Stop> {
    atomic::empty_directory(directory).map_err(|error| {
        let is_refused = matches!(error, ReplaceError::Refused(_));
        let stop = Stop::file("record into", directory, error);
        match is_refused {
            true => stop.help("name a directory that does not exist yet"),
            false => stop,
        }
    })
}

fn failed_to_record(facts: &Facts) -> Option<&CollectError> {
    facts.errors.iter().find(|error| error.what == RECORDING)
}

fn must_be_a_directory(doing: &str, path: &Path) -> Result<(), Stop> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Stop::file(doing, path, "not a directory")),
        Err(error) => Err(Stop::file(doing, path, plain(&error))),
    }
}
