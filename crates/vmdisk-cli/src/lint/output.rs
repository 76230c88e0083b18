//! The output of a run: a text for each input as soon as it is ready, or one for all inputs.

use std::io::{self, Write};
use std::path::PathBuf;

use vmdisk::{Detail, FailedFix};

use crate::args::{LintArgs, LintFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::lint::checked::Checked;
use crate::lint::classes::Classes;
use crate::lint::mode::Mode;
use crate::lint::results::Results;
use crate::output::{deliver, deliver_with};
use crate::render::message::{Message, MessagePlace};
use crate::render::statistics::Statistics;
use crate::render::summary::{self, Summary};
use crate::render::{
    View, checkstyle, concise, github, gitlab, human, json, junit, prometheus, sarif,
};
use crate::stop::Stop;

/// The output of a run.
pub(crate) struct Output {
    format: LintFormat,
    view: View<'static>,
    /// True if the output is made when all inputs are done: data, and findings on several hosts, whose classes are
    /// known only then.
    is_of_all_together: bool,
    /// True if rules are counted instead of findings listed.
    counts_rules: bool,
    detail: Detail,
    /// True if messages have colour.
    colors_messages: bool,
}

/// What came of a run, as the formats need it.
pub(crate) struct Outcome<'a> {
    pub(crate) results: &'a Results,
    /// The hosts, where there are several.
    pub(crate) classes: Option<&'a Classes<'a>>,
    /// The name of the only host, where there are facts of one.
    pub(crate) host: Option<&'a str>,
    pub(crate) exit: Exit,
}

impl Output {
    /// The requested output; `prints_fixed` if standard output is used for a fixed text.
    pub(crate) fn new(
        args: &LintArgs,
        colors: Colors,
        has_hosts: bool,
        prints_fixed: bool,
    ) -> Self {
        let view = View {
            quiet: args.quiet,
            show_allowed: args.show_allowed,
            verbose: args.verbose,
            colored: match (&args.output, prints_fixed) {
                (Some(_), _) => colors.file,
                (None, true) => colors.stderr,
                (None, false) => colors.stdout,
            },
            classes: None,
        };
        Output {
            format: args.format,
            view,
            is_of_all_together: args.format.is_one_document()
                || has_hosts
                || args.statistics
                || !args.report.is_empty(),
            counts_rules: args.statistics,
            detail: if args.format == LintFormat::Concise && args.report.is_empty() {
                Detail::Titles
            } else {
                Detail::Everything
            },
            colors_messages: colors.stderr,
        }
    }

    /// Everything that counts, without colour.
    #[cfg(test)]
    pub(crate) const fn plain(format: LintFormat) -> Self {
        Output {
            format,
            view: View::everything(),
            is_of_all_together: false,
            counts_rules: false,
            detail: Detail::Everything,
            colors_messages: false,
        }
    }

    /// The level of detail for each finding.
    pub(crate) const fn detail(&self) -> Detail {
        self.detail
    }

    /// True if the output names every place that was not checked, and not each rule and reason once.
    pub(crate) const fn names_every_place(&self) -> bool {
        self.is_of_all_together || self.view.verbose
    }

    /// The text of an input, if each has its own. Its findings are only counted after that.
    pub(crate) fn render(&self, checked: &mut Checked) -> String {
        if self.is_of_all_together {
            return String::new();
        }
        let text = text_of(self.format, checked, &self.view);
        if let Ok(report) = &mut checked.outcome {
            report.drop_findings();
        }
        text
    }

    /// Writes what was found in all inputs.
    fn write_report(
        &self,
        out: &mut dyn Write,
        outcome: &Outcome<'_>,
        summary: &Summary,
    ) -> io::Result<()> {
        if self.counts_rules {
            let statistics = Statistics::of(&outcome.results.all, &self.view);
            return match self.format {
                LintFormat::Json => statistics.write_json(out),
                _ => statistics.write_text(out),
            };
        }
        if !self.is_of_all_together {
            return out.write_all(outcome.results.rendered.as_bytes());
        }
        let view = View {
            classes: outcome.classes,
            ..self.view
        };
        write_in(self.format, out, outcome, summary, &view)
    }

    /// Writes the reports that were asked for beside the output.
    fn write_files(
        args: &LintArgs,
        outcome: &Outcome<'_>,
        summary: &Summary,
        io: &mut Io<'_>,
    ) -> Result<(), Stop> {
        let view = View {
            classes: outcome.classes,
            ..View::everything()
        };
        for (format, path) in &args.report {
            deliver_with(io, Some(path), |out| {
                write_in(*format, out, outcome, summary, &view)
            })?;
        }
        Ok(())
    }

    /// Writes the data where it belongs, and messages and the summary to standard error.
    pub(crate) fn deliver(
        &self,
        args: &LintArgs,
        mode: Mode,
        outcome: &Outcome<'_>,
        io: &mut Io<'_>,
    ) -> Result<(), Stop> {
        let Outcome {
            results, classes, ..
        } = *outcome;
        let summary = Summary::of(&results.all);
        Self::write_files(args, outcome, &summary, io)?;
        let write = |out: &mut dyn Write| match mode {
            Mode::Diff(_) => out.write_all(results.diffs.as_bytes()),
            Mode::Report | Mode::Fix(_) => self.write_report(out, outcome, &summary),
        };
        if let Some(text) = &results.fixed {
            deliver(io, None, text)?;
        }
        match (&results.fixed, &args.output) {
            // Standard output belongs to the fixed text.
            (Some(_), None) => io.say_with(write),
            (_, path) => deliver_with(io, path.as_deref(), write)?,
        }
        for checked in &results.all {
            self.say_messages(checked, io);
        }
        if args.verbose {
            io.say(&summary::not_checked(&results.all, classes));
        }
        if self.format.is_for_people() && !args.quiet {
            self.say_summary(mode, &summary, classes, io);
        }
        Ok(())
    }

    /// Says why an input could not be checked, or which fixes were undone.
    fn say_messages(&self, checked: &Checked, io: &mut Io<'_>) {
        let text = |message: &Message| format!("{}\n", message.render(self.colors_messages));
        match (&checked.outcome, self.format) {
            (Err(message), LintFormat::Concise) => {
                io.say(&concise::failure(&checked.path, message));
            }
            (Err(message), _) => io.say(&text(message)),
            (Ok(report), _) => {
                for failed in &report.failed_fixes {
                    io.say(&text(&undone(&checked.path, failed)));
                }
            }
        }
    }

    fn say_summary(
        &self,
        mode: Mode,
        summary: &Summary,
        classes: Option<&Classes<'_>>,
        io: &mut Io<'_>,
    ) {
        io.say(&match mode {
            Mode::Report | Mode::Fix(_) => summary.text(),
            Mode::Diff(_) => summary.would_fix(),
        });
        if let Some(classes) = classes {
            io.say(&classes.summary());
        }
        if let (Mode::Report, LintFormat::Full, Some(further)) =
            (mode, self.format, summary.further_reading())
        {
            io.say(further);
        }
    }
}

/// The text of an input, in a format that has a text for each.
fn text_of(format: LintFormat, checked: &Checked, view: &View<'_>) -> String {
    match (format, &checked.outcome) {
        (LintFormat::Full, Ok(report)) => human::file(&checked.path, report, view),
        (LintFormat::Concise, Ok(report)) => concise::file(&checked.path, report, view),
        (LintFormat::Github, Ok(report)) => github::file(&checked.path, report, view),
        (LintFormat::Github, Err(message)) => github::failure(checked, message),
        _ => String::new(),
    }
}

/// Writes what was found in all inputs in a format.
fn write_in(
    format: LintFormat,
    out: &mut dyn Write,
    outcome: &Outcome<'_>,
    summary: &Summary,
    view: &View<'_>,
) -> io::Result<()> {
    let Outcome {
        results,
        classes,
        host,
        exit,
    } = *outcome;
    let all = &results.all;
    match format {
        LintFormat::Json => json::v1::write(out, all, summary, classes),
        LintFormat::JsonLines => json::lines::write(out, all, classes),
        LintFormat::Sarif => sarif::write(out, all, exit, classes),
        LintFormat::Gitlab => gitlab::write(out, all, view, &repository()),
        LintFormat::Junit => junit::write(out, all, view),
        LintFormat::Checkstyle => checkstyle::write(out, all, view),
        LintFormat::Prometheus => prometheus::write(out, all, summary, classes, host),
        LintFormat::Full | LintFormat::Concise | LintFormat::Github => {
            let mut texts = all.iter().map(|checked| text_of(format, checked, view));
            texts.try_for_each(|text| out.write_all(text.as_bytes()))
        }
    }
}

/// The top of the repository in a job of GitLab; elsewhere the current directory.
fn repository() -> PathBuf {
    let here = std::env::var_os("CI_PROJECT_DIR").map(PathBuf::from);
    here.unwrap_or_else(|| std::path::absolute(".").unwrap_or_default())
}

/// The warning about a fix that was undone.
fn undone(path: &str, failed: &FailedFix) -> Message {
    let FailedFix {
        rule,
        at: _, // The title names the disk.
        title,
        why,
    } = failed;
    let mut message = Message::warning(format!("the fix of {} was undone: {why}", rule.name));
    message.notes.push(format!("it was to fix: {title}"));
    message.at(MessagePlace {
        path: path.to_owned(),
        quoted: None,
    })
}
