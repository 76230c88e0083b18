//! `vmdisk baseline`.

use crate::args::{BaselineArgs, BaselineCommand, BaselineInputArgs, LintArgs, LintFormat};
use crate::baseline::task::BaselineTask;
use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::lint;
use crate::stop::Stop;

/// Runs the command.
pub(crate) fn run(args: BaselineArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let (input, task, force) = match args.command {
        BaselineCommand::Create(args) => (args.input, BaselineTask::Create, args.force),
        BaselineCommand::Prune(input) => (*input, BaselineTask::Prune, false),
    };
    let BaselineInputArgs {
        paths,
        baseline,
        host,
        selection,
        configuration,
        jobs,
        skip_foreign,
    } = input;
    let args = LintArgs {
        host,
        selection,
        configuration,
        jobs,
        skip_foreign,
        baseline,
        task,
        exit_zero: true,
        format: LintFormat::Concise,
        ..LintArgs::of(paths)
    };
    match task {
        BaselineTask::Create => lint::create_baseline(args, force, io, colors),
        BaselineTask::Use | BaselineTask::Prune => lint::prune_baselines(&args, io, colors),
    }
}
