//! `vmdisk bench compare`.

use vmdisk_bench_runner::report::compare;

use super::args::{CompareArgs, ReportFormat};
use super::baselines::exit_of;
use super::report::{in_lines, written};
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
    let width = io.width(args.output.as_deref());
    let text = match args.format {
        ReportFormat::Json => compared.to_json(),
        format => written(&compared.report(), None, format, width),
    };
    deliver(io, args.output.as_deref(), &text)?;
    Ok(exit_of(|verdict| compared.has(verdict)))
}
