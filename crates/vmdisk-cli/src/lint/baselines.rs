//! `vmdisk lint --write-baseline` and `--prune-baseline`.

use std::path::PathBuf;

use crate::args::{LintArgs, LintFormat};
use crate::baseline::report;
use crate::baseline::task::BaselineTask;
use crate::config::settings::{self, Plan};
use crate::input::inputs::{self, Inputs};
use crate::stop::Stop;

/// A run about a baseline.
pub(super) struct BaselineRun {
    pub(super) inputs: Inputs,
    pub(super) plan: Plan,
    /// The new baseline.
    pub(super) written: Option<PathBuf>,
    /// True if the next runs use it without an option.
    pub(super) is_configured: bool,
}

/// The inputs and their settings. Findings do not fail a run that is about a baseline.
pub(super) fn plan(args: &mut LintArgs, task: BaselineTask) -> Result<BaselineRun, Stop> {
    args.exit_zero = true;
    args.format = LintFormat::Concise;
    let name = args.stdin_filename.as_deref();
    let mut inputs = inputs::find(&args.paths, name, args.skip_foreign);
    inputs.set(&args.values);
    let mut plan = settings::plan(args, &mut inputs)?;
    let baselines = plan.baselines();
    let is_configured = !baselines.is_empty();
    let is_new = task == BaselineTask::Create;
    if !is_new && !baselines.is_empty() {
        let written = None;
        return Ok(BaselineRun {
            inputs,
            plan,
            written,
            is_configured,
        });
    }
    let path = report::file_to_write(baselines)?;
    if is_new && !args.force {
        report::refuse_to_replace(&path)?;
    }
    // The stale entries of all inputs are in one file, or a new one has all findings.
    let used = (!is_new).then(|| path.clone());
    for settings in &mut plan.settings {
        settings.baseline.clone_from(&used);
    }
    let written = is_new.then_some(path);
    args.output = written.clone().or(args.output.take());
    Ok(BaselineRun {
        inputs,
        plan,
        written,
        is_configured,
    })
}
