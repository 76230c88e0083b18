//! `vmdisk facts`.

mod check;
mod collect;
pub(crate) mod diff;
mod redact;
mod show;

use std::path::Path;

use vmdisk::Facts;
use vmdisk::facts::Warning;

use crate::args::{FactsArgs, FactsCommand};
use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::lint::read;
use crate::stop::Stop;

pub(crate) use collect::ask;

/// Runs the command.
pub(crate) fn run(args: &FactsArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    match &args.command {
        None => collect::run(&args.collect, io),
        Some(FactsCommand::Collect(args)) => collect::run(args, io),
        Some(FactsCommand::Show(args)) => show::run(args, io, colors),
        Some(FactsCommand::Diff(args)) => diff::run(args, io, colors),
        Some(FactsCommand::Redact(args)) => redact::run(args, io, colors),
        Some(FactsCommand::Check(args)) => check::run(args, io),
    }
}

/// Reads a facts file, with what in it nobody understood.
pub(crate) fn from_file(path: &Path) -> Result<(Facts, Vec<Warning>), Stop> {
    let bytes = read::file(path).map_err(Stop::from)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Stop::file("read", path, "a facts file is UTF-8 text"))?;
    let read = Facts::parse(&text).map_err(|error| {
        Stop::file("read", path, error).help("`vmdisk facts` writes such a file")
    })?;
    Ok((read.facts, read.warnings))
}
