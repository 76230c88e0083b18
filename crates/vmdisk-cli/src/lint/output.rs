//! The output of a run: a text for each input as soon as it is done, or one of all inputs together.

use std::io::{self, Write};

use vmdisk::{Detail, FailedFix, Severity};

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
use crate::render::{View, concise, github, human, json, sarif};
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
    /// True if messages have colour.
    colors_messages: bool,
}

impl Output {
    /// The output that was asked for; `prints_fixed` if standard output belongs to a mended text.
    pub(crate) fn new(
        args: &LintArgs,
        colors: Colors,
        has_hosts: bool,
        prints_fixed: bool,
    ) -> Self {
        let is_data = matches!(args.format, LintFormat::Json | LintFormat::Sarif);
        let view = View {
            least_shown: if args.quiet {
                args.fail_on
            } else {
                Severity::Advice
            },
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
            is_of_all_together: is_data || has_hosts || args.statistics,
            counts_rules: args.statistics,
            colors_messages: colors.stderr,
        }
    }

    /// Everything that counts, without colour.
    #[cfg(test)]
    pub(crate) const fn plain(format: LintFormat) -> Self {
        Output {
            format,
            view: View::plain(),
            is_of_all_together: false,
            counts_rules: false,
            colors_messages: false,
        }
    }

    /// What the output says of each finding.
    pub(crate) const fn detail(&self) -> Detail {
        match self.format {
            LintFormat::Concise => Detail::Titles,
            LintFormat::Full | LintFormat::Json | LintFormat::Sarif | LintFormat::Github => {
                Detail::Everything
            }
        }
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
        let text = self.text_of(checked, &self.view);
        if let Ok(report) = &mut checked.outcome {
            report.drop_findings();
        }
        text
    }

    fn text_of(&self, checked: &Checked, view: &View<'_>) -> String {
        match (self.format, &checked.outcome) {
            (LintFormat::Full, Ok(report)) => human::file(&checked.path, report, view),
            (LintFormat::Concise, Ok(report)) => concise::file(&checked.path, report, view),
            (LintFormat::Github, Ok(report)) => github::file(&checked.path, report, view),
            (LintFormat::Github, Err(message)) => github::failure(checked, message),
            _ => String::new(),
        }
    }

    /// Writes what was found in all inputs.
    fn write_report(
        &self,
        out: &mut dyn Write,
        results: &Results,
        summary: &Summary,
        classes: Option<&Classes<'_>>,
        exit: Exit,
    ) -> io::Result<()> {
        let all = &results.all;
        if self.counts_rules {
            let statistics = Statistics::of(all, self.view.least_shown);
            return match self.format {
                LintFormat::Json => statistics.write_json(out),
                LintFormat::Full | LintFormat::Concise | LintFormat::Sarif | LintFormat::Github => {
                    statistics.write_text(out)
                }
            };
        }
        match self.format {
            _ if !self.is_of_all_together => out.write_all(results.rendered.as_bytes()),
            LintFormat::Json => json::v1::write(out, all, summary, classes),
            LintFormat::Sarif => sarif::write(out, all, exit, classes),
            LintFormat::Full | LintFormat::Concise | LintFormat::Github => {
                let view = View {
                    classes,
                    ..self.view
                };
                let mut texts = all.iter().map(|checked| self.text_of(checked, &view));
                texts.try_for_each(|text| out.write_all(text.as_bytes()))
            }
        }
    }

    /// Writes the data where it belongs, and messages and the summary to standard error.
    pub(crate) fn deliver(
        &self,
        args: &LintArgs,
        mode: Mode,
        results: &Results,
        classes: Option<&Classes<'_>>,
        exit: Exit,
        io: &mut Io<'_>,
    ) -> Result<(), Stop> {
        let summary = Summary::of(&results.all);
        let write = |out: &mut dyn Write| match mode {
            Mode::Diff(_) => out.write_all(results.diffs.as_bytes()),
            Mode::Report | Mode::Fix(_) => self.write_report(out, results, &summary, classes, exit),
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
        let is_for_people = matches!(self.format, LintFormat::Full | LintFormat::Concise);
        if is_for_people && !args.quiet {
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
            (
                Err(message),
                LintFormat::Full | LintFormat::Json | LintFormat::Sarif | LintFormat::Github,
            ) => io.say(&text(message)),
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
