//! A report in one format. It grows by one input at a time; the findings of printed inputs are not in memory.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::args::LintFormat;
use crate::baseline::create::Shared;
use crate::baseline::key::Keys;
use crate::exit::Exit;
use crate::render::fingerprint::Fingerprints;
use crate::render::spool::Spool;
use crate::render::statistics::Counts;
use crate::render::summary::Summary;
use crate::render::{
    View, checkstyle, concise, github, gitlab, html, human, json, junit, prometheus, sarif,
};
use crate::report::caveats::Caveats;
use crate::report::input::InputReport;
use crate::stop::Stop;

/// The part of a report about one input: the bytes for each of its lists.
pub(crate) type Items = Vec<Vec<u8>>;

/// The content of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Findings(LintFormat),
    /// The number of findings of each rule, as a table or as JSON.
    Statistics {
        is_json: bool,
    },
    /// What fixes would change, which is not made from findings.
    Diff,
    /// Findings that will be known.
    Baseline,
    Nothing,
}

/// Turns inputs into the items of a report, on any thread and in any order.
#[derive(Debug)]
pub(crate) struct Renderer<'a> {
    pub(crate) content: Content,
    pub(crate) view: View<'a>,
    /// The folder that GitLab's paths are relative to.
    root: PathBuf,
    /// The subjects of findings, for a baseline.
    pub(crate) baseline: Option<Keys>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(content: Content, view: View<'a>) -> Self {
        Renderer {
            content,
            view,
            root: match content {
                Content::Findings(LintFormat::Gitlab) => repository(),
                _ => PathBuf::new(),
            },
            baseline: None,
        }
    }

    /// The items of an input.
    pub(crate) fn items(&self, checked: &InputReport) -> Items {
        let Content::Findings(format) = self.content else {
            return Vec::new();
        };
        let view = &self.view;
        match format {
            LintFormat::Json => json::v1::items(checked, view.classes).into(),
            LintFormat::Sarif => sarif::items(checked, view.classes).into(),
            LintFormat::JsonLines => vec![json::lines::file(checked, view.classes)],
            LintFormat::Gitlab => vec![gitlab::records(checked, view, &self.root)],
            LintFormat::Junit => vec![junit::suite(checked, view)],
            LintFormat::Checkstyle => vec![checkstyle::file(checked, view)],
            LintFormat::Html => vec![html::section(checked, view)],
            LintFormat::Prometheus => Vec::new(),
            LintFormat::Full | LintFormat::Concise | LintFormat::Github => {
                vec![text_of(format, checked, view).into_bytes()]
            }
        }
    }

    /// Number of lists of items.
    const fn lists(&self) -> usize {
        match self.content {
            Content::Findings(LintFormat::Json) => json::v1::LISTS,
            Content::Findings(LintFormat::Sarif) => sarif::LISTS,
            Content::Findings(LintFormat::Prometheus) | Content::Statistics { .. } => 0,
            Content::Nothing => 0,
            Content::Findings(_) | Content::Diff | Content::Baseline => 1,
        }
    }

    /// True if each item can be written as soon as it is ready.
    pub(crate) const fn is_stream(&self) -> bool {
        matches!(
            self.content,
            Content::Diff
                | Content::Nothing
                | Content::Findings(
                    LintFormat::Full
                        | LintFormat::Concise
                        | LintFormat::JsonLines
                        | LintFormat::Checkstyle
                )
        )
    }

    /// Writes what stands before the items of a stream.
    pub(crate) fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.content {
            Content::Findings(LintFormat::Checkstyle) => checkstyle::begin(out),
            _ => Ok(()),
        }
    }

    /// Writes what stands after the items of a stream.
    pub(crate) fn end(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.content {
            Content::Findings(LintFormat::Checkstyle) => checkstyle::end(out),
            _ => Ok(()),
        }
    }
}

/// The numbers of a run, as formats need them.
#[derive(Clone, Copy)]
pub(crate) struct Outcome<'a> {
    pub(crate) summary: &'a Summary,
    pub(crate) caveats: &'a Caveats<'a>,
    /// The name of the only host, where there are facts of one.
    pub(crate) host: Option<&'a str>,
    pub(crate) exit: Exit,
}

/// A report that is written when all inputs are done.
pub(crate) struct Document {
    lists: Vec<Spool>,
    numbers: Numbers,
}

/// The part of a report about all inputs, besides its items.
enum Numbers {
    None,
    Sarif(sarif::Log),
    Gitlab(Fingerprints),
    Junit(junit::Totals),
    Prometheus(prometheus::Samples),
    Statistics(Counts),
    Baseline(Shared),
}

impl Document {
    pub(crate) fn new(renderer: &Renderer<'_>) -> Self {
        let lists = (0..renderer.lists()).map(|_| Spool::default());
        Document {
            lists: lists.collect(),
            numbers: match renderer.content {
                Content::Statistics { .. } => Numbers::Statistics(Counts::default()),
                Content::Findings(LintFormat::Sarif) => Numbers::Sarif(sarif::Log::default()),
                Content::Findings(LintFormat::Gitlab) => Numbers::Gitlab(Fingerprints::default()),
                Content::Findings(LintFormat::Junit) => Numbers::Junit(junit::Totals::default()),
                Content::Findings(LintFormat::Prometheus) => {
                    Numbers::Prometheus(prometheus::Samples::default())
                }
                Content::Baseline => Numbers::Baseline(Shared::default()),
                Content::Findings(_) | Content::Diff | Content::Nothing => Numbers::None,
            },
        }
    }

    /// Adds an input and its items.
    pub(crate) fn add(
        &mut self,
        renderer: &Renderer<'_>,
        checked: &InputReport,
        items: &[Vec<u8>],
    ) -> Result<(), Stop> {
        match &mut self.numbers {
            Numbers::Sarif(log) => return log.add(checked, items, &mut self.lists),
            Numbers::Gitlab(fingerprints) => {
                return fingerprints.add(checked, 0, &items[0], &mut self.lists[0]);
            }
            Numbers::Junit(totals) => totals.add(checked),
            Numbers::Prometheus(samples) => samples.add(checked),
            Numbers::Statistics(counts) => counts.add(checked, &renderer.view),
            Numbers::Baseline(shared) => {
                if let Some(keys) = &renderer.baseline {
                    return shared.add(keys, checked, &mut self.lists[0]);
                }
            }
            Numbers::None => {}
        }
        self.push(items)
    }

    /// Adds items that are not about one input.
    pub(crate) fn push(&mut self, items: &[Vec<u8>]) -> Result<(), Stop> {
        let mut lists = self.lists.iter_mut().zip(items);
        lists.try_for_each(|(list, items)| list.push(items))
    }

    /// Writes the report.
    pub(crate) fn write(
        &mut self,
        renderer: &Renderer<'_>,
        outcome: Outcome<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Document { lists, numbers } = self;
        let Outcome {
            summary,
            caveats,
            host,
            exit,
        } = outcome;
        let classes = renderer.view.classes;
        match (numbers, renderer.content) {
            (Numbers::Sarif(log), _) => log.write(out, lists, exit, classes),
            (Numbers::Gitlab(fingerprints), _) => gitlab::write(out, &mut lists[0], fingerprints),
            (Numbers::Junit(totals), _) => totals.write(out, &mut lists[0]),
            (Numbers::Prometheus(samples), _) => samples.write(out, summary, classes, host),
            (Numbers::Baseline(shared), _) => shared.write(out, &mut lists[0]),
            (Numbers::Statistics(counts), Content::Statistics { is_json: true }) => {
                counts.write_json(out)
            }
            (Numbers::Statistics(counts), _) => counts.write_text(out),
            (Numbers::None, Content::Findings(LintFormat::Json)) => {
                json::v1::write(out, lists, summary, classes)
            }
            (Numbers::None, Content::Findings(LintFormat::Html)) => {
                html::write(out, &mut lists[0], summary, &renderer.view, host)
            }
            (Numbers::None, Content::Findings(LintFormat::Github)) => {
                // GitHub shows the first ten annotations of each kind.
                out.write_all(github::caveats(caveats, &renderer.view).as_bytes())?;
                lists.iter_mut().try_for_each(|list| list.copy(out))
            }
            (Numbers::None, _) => {
                renderer.begin(out)?;
                lists.iter_mut().try_for_each(|list| list.copy(out))?;
                renderer.end(out)
            }
        }
    }
}

/// The text of an input, in a format that has a text for each.
fn text_of(format: LintFormat, checked: &InputReport, view: &View<'_>) -> String {
    match (format, &checked.outcome) {
        (LintFormat::Full, Ok(report)) => human::file(&checked.path, report, view),
        (LintFormat::Concise, Ok(report)) => concise::file(&checked.path, report, view),
        (LintFormat::Github, Ok(report)) => github::file(&checked.path, report, view),
        (LintFormat::Github, Err(message)) => github::failure(checked, message),
        _ => String::new(),
    }
}

/// The top of the repository in a job of GitLab; elsewhere the current directory.
fn repository() -> PathBuf {
    let here = std::env::var_os("CI_PROJECT_DIR").map(PathBuf::from);
    here.unwrap_or_else(|| std::path::absolute(Path::new(".")).unwrap_or_default())
}
