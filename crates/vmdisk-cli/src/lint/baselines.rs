//! `vmdisk baseline`.

use crate::args::{BaselineArgs, BaselineCommand, BaselineInputArgs, LintArgs, LintFormat};
use crate::baseline::report;
use crate::baseline::task::BaselineTask;
use crate::color::Colors;
use crate::config::settings::{self, Plan};
use crate::exit::Exit;
use crate::input::hypervisor::Added;
use crate::input::inputs::{self, Inputs};
use crate::io::Io;
use crate::lint::check;
use crate::lint::mode::Mode;
use crate::sanitize::line;
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
        paths,
        host,
        selection,
        configuration,
        jobs,
        skip_foreign,
        baseline,
        task,
        exit_zero: true,
        format: LintFormat::Concise,
        ..LintArgs::default()
    };
    match task {
        BaselineTask::Create => create(args, force, io, colors),
        BaselineTask::Use | BaselineTask::Prune => prune(&args, io, colors),
    }
}

/// Removes stale entries from the baselines of all inputs.
fn prune(args: &LintArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mut inputs = inputs::find(&args.paths, None, args.skip_foreign);
    let mut plan = settings::plan(args, &mut inputs)?;
    if plan.baselines().is_empty() {
        let path = report::file_to_write(Vec::new())?;
        plan.settings
            .iter_mut()
            .for_each(|settings| settings.baseline = Some(path.clone()));
    }
    report_on(args, &plan, &inputs, io, colors)
}

/// Checks the files; a baseline has no guests that are not files.
fn report_on(
    args: &LintArgs,
    plan: &Plan,
    inputs: &Inputs,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    check(
        args,
        Mode::Report,
        plan,
        inputs,
        Added::default(),
        io,
        colors,
    )
}

/// Writes the findings of all inputs to a baseline.
fn create(mut args: LintArgs, force: bool, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mut inputs = inputs::find(&args.paths, None, args.skip_foreign);
    let mut plan = settings::plan(&args, &mut inputs)?;
    let path = report::file_to_write(plan.baselines())?;
    if !force {
        report::refuse_to_replace(&path)?;
    }
    plan.settings
        .iter_mut()
        .for_each(|settings| settings.baseline = None);
    args.output = Some(path.clone());
    let exit = report_on(&args, &plan, &inputs, io, colors)?;
    io.say(&format!("wrote {}\n", line(&path.display().to_string())));
    Ok(exit)
}
