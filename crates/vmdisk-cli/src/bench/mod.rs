//! `vmdisk bench`.

pub(crate) mod args;
mod baselines;
mod budgets;
mod check;
mod compare;
mod environment;
mod limits;
mod page;
mod pictures;
mod prepare_device;
mod presets;
mod progress;
mod proposals;
mod recovery;
mod report;
mod request;
mod result_file;
mod run;
mod stop;
pub(crate) mod to_facts;

use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::stop::Stop;

use args::{BenchArgs, BenchCommand};

/// Runs the command.
pub(crate) fn run(args: &BenchArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    match &args.command {
        BenchCommand::Run(args) => run::run(args, io, colors),
        BenchCommand::Read(args) => run::read_existing(args, io, colors),
        BenchCommand::Resume(args) => run::resume(args, io, colors),
        BenchCommand::Report(args) => report::run(args, io),
        BenchCommand::Compare(args) => compare::run(args, io),
        BenchCommand::History(args) => baselines::show(args, io),
        BenchCommand::Verify(args) => run::verify(args, io, colors),
        BenchCommand::Presets(args) => presets::run(args, io),
        BenchCommand::PrepareDevice(args) => prepare_device::run(args, io),
    }
}
