//! A report in one format.

use std::io::{self, Write};

use vmdisk::report::{json, lines};

use crate::args::LintFormat;
use crate::baseline::create;
use crate::baseline::key::Keys;
use crate::render::{
    View, checkstyle, concise, github, gitlab, html, human, junit, prometheus, sarif, statistics,
};
use crate::report::input::InputReport;
use crate::report::run::RunReport;

/// The content of a report.
#[derive(Debug)]
pub(crate) enum Content {
    Findings(LintFormat),
    /// The number of findings of each rule, in this format.
    Statistics(LintFormat),
    /// What fixes would change.
    Diff,
    /// Findings that will be known, by their keys.
    Baseline(Box<Keys>),
    Nothing,
}

/// Turns the results of a run into a report.
#[derive(Debug)]
pub(crate) struct Renderer<'a> {
    pub(crate) content: Content,
    pub(crate) view: View<'a>,
}

impl Renderer<'_> {
    /// True if the report consists of the texts of inputs, which can be printed during the run. What programs read has all
    /// that the end of the run shows.
    pub(crate) fn is_stream(&self) -> bool {
        use LintFormat::{Concise, Full};
        match &self.content {
            Content::Diff | Content::Nothing => true,
            Content::Findings(format) => matches!(format, Full | Concise),
            Content::Statistics(_) | Content::Baseline(_) => false,
        }
    }

    /// The text about an input, in a report that has one for each.
    pub(crate) fn text(&self, input: &InputReport) -> String {
        let view = &self.view;
        match (&self.content, &input.outcome) {
            (Content::Diff, _) => input.diff.clone(),
            (Content::Findings(LintFormat::JsonLines), _) => {
                lines::of_entry(&input.entry(), view.classes)
            }
            (Content::Findings(LintFormat::Full), Ok(report)) => human::file(input, report, view),
            (Content::Findings(LintFormat::Concise), Ok(_)) => concise::file(input, view),
            _ => String::new(),
        }
    }

    /// Writes the report.
    pub(crate) fn write(&self, run: RunReport<'_>, out: &mut dyn Write) -> io::Result<()> {
        let view = &self.view;
        let format = match &self.content {
            Content::Nothing => return Ok(()),
            Content::Diff => return self.write_texts(run, out),
            Content::Baseline(keys) => return create::write(out, keys, run.inputs),
            Content::Statistics(LintFormat::Html) => return html::write(out, run, view, true),
            Content::Statistics(LintFormat::Prometheus) => {
                return prometheus::write(out, run, view.classes, true);
            }
            Content::Statistics(format) => {
                return statistics::write(out, run.tally, view, *format == LintFormat::Json);
            }
            Content::Findings(format) => format,
        };
        match format {
            LintFormat::Full | LintFormat::Concise | LintFormat::JsonLines => {
                self.write_texts(run, out)
            }
            LintFormat::Github => out.write_all(github::report(run, view).as_bytes()),
            LintFormat::Json => {
                let entries: Vec<_> = run.inputs.iter().map(InputReport::entry).collect();
                json::write(out, &entries, &run.tally.summary.counts, view.classes)
            }
            LintFormat::Sarif => sarif::write(out, run, view.classes),
            LintFormat::Gitlab => gitlab::write(out, run.inputs, view),
            LintFormat::Junit => junit::write(out, run.inputs, view),
            LintFormat::Checkstyle => checkstyle::write(out, run.inputs, view),
            LintFormat::Html => html::write(out, run, view, false),
            LintFormat::Prometheus => prometheus::write(out, run, view.classes, false),
        }
    }

    fn write_texts(&self, run: RunReport<'_>, out: &mut dyn Write) -> io::Result<()> {
        if let (Content::Findings(LintFormat::JsonLines), Some(classes)) =
            (&self.content, self.view.classes)
        {
            out.write_all(lines::of_classes(classes).as_bytes())?;
        }
        let mut texts = run.inputs.iter().map(|input| self.text(input));
        texts.try_for_each(|text| out.write_all(text.as_bytes()))
    }
}
