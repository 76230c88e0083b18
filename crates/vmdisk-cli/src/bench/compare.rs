//! `vmdisk bench compare`.

use vmdisk_bench_runner::report::compare;

use super::args::CompareArgs;
use super::report::{in_lines, read};
use super::stop::stop;
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::Stop;

/// Compares two runs that differ in one thing, or says in what they differ.
pub(super) fn run(args: &CompareArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let first = in_lines(&read(&args.first)?)?;
    let second = in_lines(&read(&args.second)?)?;
    let compared = compare(&first, &second).map_err(stop)?;
    deliver(io, None, &compared.text())?;
    Ok(Exit::Clean)
}
