//! `vmdisk facts`.

pub(crate) mod capabilities;
mod check;
mod collect;
pub(crate) mod diff;
mod named;
mod redact;
mod show;

use crate::args::{FactsArgs, FactsCommand};
use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::stop::Stop;

/// Runs the command.
pub(crate) fn run(args: &FactsArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    match &args.command {
        None => collect::run(&args.collect, io, colors),
        Some(FactsCommand::Collect(args)) => collect::run(args, io, colors),
        Some(FactsCommand::Show(args)) => show::run(args, io, colors),
        Some(FactsCommand::Diff(args)) => diff::run(args, io, colors),
        Some(FactsCommand::Redact(args)) => redact::run(args, io, colors),
        Some(FactsCommand::Check(args)) => check::run(args, io),
        Some(FactsCommand::Qemu(args)) => capabilities::run(args, io),
    }
}
