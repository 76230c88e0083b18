//! The reports of a run, and where they go.

use std::io::Write;
use std::path::Path;

use vmdisk::Detail;

use crate::args::{LintArgs, LintFormat};
use crate::baseline::key::Keys;
use crate::baseline::task::BaselineTask;
use crate::color::Colors;
use crate::input::complaints::skipped;
use crate::input::inputs::{Input, Inputs, Origin};
use crate::io::Io;
use crate::lint::ending::messages;
use crate::lint::mode::Mode;
use crate::lint::run::ReportNeeds;
use crate::output::{deliver_exact, deliver_with};
use crate::render::View;
use crate::render::renderer::{Content, Renderer};
use crate::render::summary::{Missed, Summary};
use crate::report::run::RunReport;
use crate::sanitize::line;
use crate::stop::Stop;
use vmdisk::report::Classes;

/// The reports of a run: the output, then those of `--report`. `prints_fixed` if standard output is used for a fixed text.
pub(crate) fn renderers<'a>(
    args: &LintArgs,
    mode: Mode,
    colors: Colors,
    prints_fixed: bool,
) -> Vec<Renderer<'a>> {
    let statistics = args.statistics;
    let content = match (args.task(), mode, statistics) {
        (BaselineTask::Create, ..) => {
            let path = args.output.as_deref().unwrap_or(Path::new("."));
            Content::Baseline(Box::new(Keys::new(path)))
        }
        (BaselineTask::Prune, ..) => Content::Nothing,
        (BaselineTask::Use, Mode::Diff(_), _) => Content::Diff,
        (BaselineTask::Use, Mode::Report | Mode::Fix(_) | Mode::Allow, true) => {
            Content::Statistics(args.format)
        }
        (BaselineTask::Use, Mode::Report | Mode::Fix(_) | Mode::Allow, false) => {
            Content::Findings(args.format)
        }
    };
    let view = View {
        quiet: args.quiet,
        show_allowed: args.show_allowed,
        verbose: args.verbose,
        colored: match (&args.output, prints_fixed) {
            (Some(_), _) => colors.file,
            (None, true) => colors.stderr,
            (None, false) => colors.stdout,
        },
        links: colors.links && args.output.is_none() && !prints_fixed,
        suggests_fix: !args.cannot_fix,
        classes: None,
    };
    let first = Renderer { content, view };
    let further = args.report.iter().map(|(format, _)| Renderer {
        content: Content::Findings(*format),
        view: View::everything(),
    });
    std::iter::once(first).chain(further).collect()
}

/// The level of detail for each finding.
pub(crate) fn detail(args: &LintArgs) -> Detail {
    let is_brief = args.format == LintFormat::Concise || args.statistics;
    if is_brief && args.report.is_empty() && !args.verbose {
        Detail::Titles
    } else {
        Detail::Everything
    }
}

/// What the reports show beside findings.
pub(crate) fn needs(args: &LintArgs, has_hosts: bool) -> ReportNeeds {
    let reports = args.report.iter().map(|(format, _)| *format);
    let formats: Vec<LintFormat> = reports.chain([args.format]).collect();
    let names_places = |format: &LintFormat| matches!(format, LintFormat::Json | LintFormat::Sarif);
    ReportNeeds {
        places: has_hosts && !args.statistics || args.verbose || formats.iter().any(names_places),
        findings: !args.statistics
            || args.verbose
            || args.diff
            || !args.report.is_empty()
            || args.task() != BaselineTask::Use,
        unknown_images: args.verbose,
        paths: formats.contains(&LintFormat::Html),
    }
}

/// Writes the reports where they belong, and messages and the summary to standard error. The first report may be printed
/// already. `fixed` is the input that is no file, after fixing.
pub(crate) fn write(
    run: RunReport<'_>,
    renderers: &[Renderer<'_>],
    is_printed: bool,
    fixed: Option<&str>,
    args: &LintArgs,
    io: &mut Io<'_>,
) -> Result<(), Stop> {
    for (renderer, (_, path)) in renderers[1..].iter().zip(&args.report) {
        deliver_with(io, Some(path), |out| renderer.write(run, out))?;
    }
    if let Some(text) = fixed {
        deliver_exact(io, None, text)?;
    }
    let write = |out: &mut dyn Write| renderers[0].write(run, out);
    match (fixed, &args.output) {
        _ if is_printed => {}
        // Standard output belongs to the fixed text.
        (Some(_), None) => io.say_with(write),
        (_, path) => deliver_with(io, path.as_deref(), write)?,
    }
    Ok(())
}

/// Says what reports do not.
pub(crate) fn say(
    run: RunReport<'_>,
    mode: Mode,
    inputs: &Inputs,
    classes: Option<&Classes<'_>>,
    args: &LintArgs,
    io: &mut Io<'_>,
    colors: Colors,
) {
    io.say_with(|out| {
        let messages = |input| messages(args, input, colors.stderr);
        let mut all = run.inputs.iter().flat_map(messages);
        all.try_for_each(|text| out.write_all(text.as_bytes()))
    });
    if args.verbose {
        io.say(&Missed::of(run.inputs).text(classes, &args.paths));
    }
    if !args.quiet {
        if args.format.is_for_people() {
            for text in run.said.lines() {
                io.say(&format!("{}\n", line(&text)));
            }
            say_summary(args, mode, &run.tally.summary, inputs, classes, io);
        } else if !args.format.tells_what_is_unchecked()
            && let Some(text) = run.tally.summary.not_checked()
        {
            io.say(&format!("{text}\n"));
        }
    }
}

fn say_summary(
    args: &LintArgs,
    mode: Mode,
    summary: &Summary,
    inputs: &Inputs,
    classes: Option<&Classes<'_>>,
    io: &mut Io<'_>,
) {
    if summary.counts.inputs == 0 {
        io.say(&format!("{}\n", line(&why_nothing(args, inputs))));
        io.say(&summary.unread_files());
        return;
    }
    io.say(&match mode {
        Mode::Report | Mode::Fix(_) | Mode::Allow => {
            let is_given = |it: &Input| matches!(it.origin, Origin::Given(_) | Origin::Host);
            summary.text(!args.cannot_fix && !inputs.files.iter().all(is_given))
        }
        Mode::Diff(_) => summary.would_fix(),
    });
    if mode == Mode::Allow
        && let Some(text) = summary.without_allowance()
    {
        io.say(&text);
    }
    if let Some(classes) = classes {
        io.say(&classes.summary());
    }
    if let (Mode::Report, LintFormat::Full, Some(further)) =
        (mode, args.format, summary.further_reading())
    {
        io.say(further);
    }
}

/// Why a run had nothing to check.
fn why_nothing(args: &LintArgs, inputs: &Inputs) -> String {
    let mut reasons = Vec::new();
    if args.guests.running {
        reasons.push("no QEMU is running on this host".to_owned());
    }
    let excluded = inputs.searches.iter().flat_map(|one| &one.excluded);
    if let Some((_, by)) = excluded.clone().next() {
        reasons.push(skipped(excluded.map(|(number, _)| number).sum(), by));
    }
    match reasons.as_slice() {
        [] => match args.paths.len() {
            1 => "1 file skipped: it contains no guest".to_owned(),
            number => format!("{number} files skipped: none contains a guest"),
        },
        [..] => format!("nothing to check: {}", reasons.join(", and ")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::input::inputs::Search;

    #[test]
    fn a_run_without_inputs_says_why() {
        let mut args = LintArgs::default();
        let mut inputs = Inputs::default();
        assert_eq!(
            why_nothing(&args, &inputs),
            "0 files skipped: none contains a guest"
        );
        args.guests.running = true;
        assert_eq!(
            why_nothing(&args, &inputs),
            "nothing to check: no QEMU is running on this host"
        );
        args.guests.running = false;
        for number in [1, 2] {
            let mut search = Search::named(&PathBuf::from("d"));
            (0..number).for_each(|_| search.exclude("`exclude` in vmdisk.toml"));
            inputs.searches.push(search);
        }
        assert_eq!(
            why_nothing(&args, &inputs),
            "nothing to check: `exclude` in vmdisk.toml skips 3 files"
        );
    }
}
