//! `vmdisk bench history`.

use vmdisk_bench_runner::report::{history_html, history_text};

use super::args::{HistoryArgs, HistoryFormat};
use super::report::{in_lines, read};
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::Stop;

/// Shows several runs of a plan, the oldest first.
pub(super) fn run(args: &HistoryArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let results = args
        .runs
        .iter()
        .map(|run| in_lines(&read(run)?))
        .collect::<Result<Vec<_>, Stop>>()?;
    let text = match args.format {
        HistoryFormat::Text => history_text(&results),
        HistoryFormat::Html => history_html(&results),
    };
    deliver(io, args.output.as_deref(), &text)?;
    Ok(Exit::Clean)
}
