//! `vmdisk bench compare`.

use vmdisk_bench_runner::report::{ChangeVerdict, compare};

use super::args::{CompareArgs, CompareFormat};
use super::report::in_lines;
use super::result_file::read;
use super::stop::stop;
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::Stop;

/// Compares two runs that differ in one thing, or refuses with the differences.
pub(super) fn run(args: &CompareArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let first = in_lines(&read(&args.first)?)?;
    let second = in_lines(&read(&args.second)?)?;
    let compared = compare(&first, &second, args.tolerance).map_err(stop)?;
    let text = match args.format {
        CompareFormat::Text => compared.text(),
        CompareFormat::Json => compared.to_json(),
    };
    deliver(io, args.output.as_deref(), &text)?;
    Ok(if compared.has(ChangeVerdict::MachineChanged) {
        Exit::CouldNot
    } else if compared.has(ChangeVerdict::Slower) {
        Exit::Findings
    } else {
        Exit::Clean
    })
}
