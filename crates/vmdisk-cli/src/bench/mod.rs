//! `vmdisk bench`.

pub(crate) mod args;
mod check;
mod compare;
mod environment;
mod history;
mod prepare_device;
mod presets;
mod progress;
mod proposals;
mod recovery;
mod report;
mod request;
mod run;

use vmdisk_bench_runner::Error;

use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::stop::Stop;

use args::{BenchArgs, BenchCommand};

/// Runs the command.
pub(crate) fn run(args: &BenchArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    match &args.command {
        BenchCommand::Run(args) => run::run(args, io, colors),
        BenchCommand::Resume(args) => run::resume(args, io, colors),
        BenchCommand::Report(args) => report::run(args, io),
        BenchCommand::Compare(args) => compare::run(args, io),
        BenchCommand::History(args) => history::run(args, io),
        BenchCommand::Verify(args) => run::verify(args, io, colors),
        BenchCommand::Presets(args) => presets::run(args, io),
        BenchCommand::PrepareDevice(args) => prepare_device::run(args, io),
    }
}

/// An error of the runner, with what to do about it where that is known.
fn stop(error: Error) -> Stop {
    let help = match &error {
        Error::NotQuiet { .. } => {
            Some("wait until it is, or measure with --noisy, which marks the result")
        }
        Error::Incomparable { .. } => Some(
            "measure both in one run, or change one thing at a time; the first thing listed may be what you study",
        ),
        Error::Cancelled
        | Error::Missing { .. }
        | Error::Refused { .. }
        | Error::Unusable { .. }
        | Error::Program { .. }
        | Error::Semantics(_)
        | Error::Budget(_)
        | Error::Malformed { .. }
        | Error::Io { .. }
        | _ => None,
    };
    let stop = Stop::new(error.to_string());
    match help {
        Some(help) => stop.help(help),
        None => stop,
    }
}
