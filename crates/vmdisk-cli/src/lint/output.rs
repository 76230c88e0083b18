//! The reports of a run, and where they go.

use std::io::Write;

use vmdisk::Detail;

use crate::args::{LintArgs, LintFormat};
use crate::baseline::key::Keys;
use crate::baseline::task::BaselineTask;
use crate::color::Colors;
use crate::exit::Exit;
use crate::input::complaints::skipped;
use crate::input::inputs::Inputs;
use crate::io::Io;
use crate::lint::mode::Mode;
use crate::lint::totals::Totals;
use crate::output::{deliver, deliver_with};
use crate::render::View;
use crate::render::document::{Content, Document, Outcome, Renderer};
use crate::render::summary::Summary;
use crate::report::classes::Classes;
use crate::sanitize::line;
use crate::stop::Stop;

/// The reports of a run: the output, then those of `--report`. `prints_fixed` if standard output is used for a fixed text.
pub(crate) fn renderers<'a>(
    args: &LintArgs,
    mode: Mode,
    colors: Colors,
    prints_fixed: bool,
    classes: Option<&'a Classes<'a>>,
) -> Vec<Renderer<'a>> {
    let statistics = args.statistics;
    let content = match (args.task, mode, statistics) {
        (BaselineTask::Create, ..) => Content::Baseline,
        (BaselineTask::Prune, ..) => Content::Nothing,
        (BaselineTask::Use, Mode::Diff(_), _) => Content::Diff,
        (BaselineTask::Use, Mode::Report | Mode::Fix(_) | Mode::Allow, true) => {
            Content::Statistics {
                is_json: args.format == LintFormat::Json,
            }
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
        classes,
    };
    let everything = View {
        classes,
        ..View::everything()
    };
    let reports = args.report.iter();
    let mut first = Renderer::new(content, view);
    if let (Content::Baseline, Some(path)) = (content, &args.output) {
        first.baseline = Some(Keys::new(path));
    }
    std::iter::once(first)
        .chain(reports.map(|(format, _)| Renderer::new(Content::Findings(*format), everything)))
        .collect()
}

/// The level of detail for each finding.
pub(crate) fn detail(args: &LintArgs) -> Detail {
    if args.format == LintFormat::Concise && args.report.is_empty() && !args.verbose {
        Detail::Titles
    } else {
        Detail::Everything
    }
}

/// True if a report has pictures of I/O paths.
pub(crate) fn draws_paths(args: &LintArgs) -> bool {
    let mut reports = args.report.iter().map(|(format, _)| format);
    args.format == LintFormat::Html || reports.any(|format| *format == LintFormat::Html)
}

/// True if a report names every place that was not checked, and not each rule and reason once.
pub(crate) fn names_every_place(args: &LintArgs, has_hosts: bool) -> bool {
    let reports = args.report.iter().map(|(format, _)| format);
    let names_places = |format: &LintFormat| matches!(format, LintFormat::Json | LintFormat::Sarif);
    has_hosts
        || args.verbose
        || std::iter::once(&args.format)
            .chain(reports)
            .any(names_places)
}

/// The results of a run.
pub(crate) struct Results<'a, 'r> {
    pub(crate) renderers: &'r [Renderer<'r>],
    /// The reports that are not printed yet: the last of all.
    pub(crate) documents: Vec<Document>,
    pub(crate) totals: Totals<'a>,
    pub(crate) inputs: &'r Inputs,
    pub(crate) classes: Option<&'r Classes<'r>>,
    /// The name of the only host, where there are facts of one.
    pub(crate) host: Option<&'r str>,
    /// How the run ends.
    pub(crate) exit: Exit,
}

impl Results<'_, '_> {
    /// Writes the reports where they belong, and messages and the summary to standard error.
    pub(crate) fn deliver(self, args: &LintArgs, mode: Mode, io: &mut Io<'_>) -> Result<(), Stop> {
        let Results {
            renderers,
            mut documents,
            mut totals,
            inputs,
            classes,
            host,
            exit,
        } = self;
        let caveats = totals.caveats();
        let outcome = Outcome {
            summary: &totals.summary,
            caveats: &caveats,
            host,
            exit,
        };
        let others = documents.split_off(documents.len() - args.report.len());
        for ((mut document, renderer), (_, path)) in
            others.into_iter().zip(&renderers[1..]).zip(&args.report)
        {
            deliver_with(io, Some(path), |out| document.write(renderer, outcome, out))?;
        }
        if let Some(text) = &totals.fixed {
            deliver(io, None, text)?;
        }
        if let Some(mut document) = documents.pop() {
            let write = |out: &mut dyn Write| document.write(&renderers[0], outcome, out);
            match (&totals.fixed, &args.output) {
                // Standard output belongs to the fixed text.
                (Some(_), None) => io.say_with(write),
                (_, path) => deliver_with(io, path.as_deref(), write)?,
            }
        }
        io.say_with(|out| totals.messages.copy(out));
        if args.verbose {
            io.say(&totals.missed.text(classes, &args.paths));
        }
        if !args.quiet {
            if args.format.is_for_people() {
                say_summary(args, mode, &totals.summary, inputs, classes, io);
            } else if !args.format.tells_what_is_unchecked()
                && let Some(text) = totals.summary.not_checked()
            {
                io.say(&format!("{text}\n"));
            }
        }
        Ok(())
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
    if summary.inputs == 0 {
        io.say(&format!("{}\n", line(&why_nothing(args, inputs))));
        return;
    }
    io.say(&match mode {
        Mode::Report | Mode::Fix(_) | Mode::Allow => summary.text(!args.cannot_fix),
        Mode::Diff(_) => summary.would_fix(),
    });
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
    if args.guests.all_domains {
        reasons.push("libvirt has no guests".to_owned());
    }
    let excluded = inputs.searches.iter().flat_map(|one| &one.excluded);
    if let Some((_, config)) = excluded.clone().next() {
        reasons.push(skipped(excluded.map(|(number, _)| number).sum(), config));
    }
    match reasons.as_slice() {
        [] => "no file to check".to_owned(),
        [..] => format!("nothing to check: {}", reasons.join(", and ")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::input::inputs::Search;

    #[test]
    fn a_run_without_inputs_says_why() {
        let mut args = LintArgs::of(Vec::new());
        let mut inputs = Inputs::default();
        assert_eq!(why_nothing(&args, &inputs), "no file to check");
        args.guests.running = true;
        assert_eq!(
            why_nothing(&args, &inputs),
            "nothing to check: no QEMU is running on this host"
        );
        args.guests.running = false;
        for number in [1, 2] {
            let mut search = Search::named(&PathBuf::from("d"));
            (0..number).for_each(|_| search.exclude(Path::new("vmdisk.toml")));
            inputs.searches.push(search);
        }
        assert_eq!(
            why_nothing(&args, &inputs),
            "nothing to check: `exclude` in vmdisk.toml skips 3 files"
        );
    }
}
