//! Checks the inputs, several at once, and hands over their results in order.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use vmdisk::report::DocumentReport;
use vmdisk::rules::OtherGuests;
use vmdisk::trace::{HostTrace, trace_linted};
use vmdisk::{Document, LintInput, LintOptions, LintReport, Severity};

use crate::atomic::{self, ReplaceError};
use crate::baseline::known::Baseline;
use crate::input::bounded::{self, MAX_BYTES};
use crate::input::companions::Companions;
use crate::input::config_files::{self, DocumentWithFiles};
use crate::input::inputs::{Input, Origin};
use crate::input::read::{self, Content};
use crate::input::used;
use crate::lint::host;
use crate::lint::mode::Mode;
use crate::lint::parts::Parts;
use crate::lint::results::InputResult;
use crate::lint::trial::Tester;
use crate::render::message::{Message, MessagePlace};
use crate::render::renderer::Renderer;
use crate::report::diff;
use crate::report::input::{InputReport, unknown_images};
use crate::stop::Stop;

/// Fewer files than this are not worth the start of a thread.
pub(super) const WORTH_THREADS: usize = 8;

/// The number of inputs for each thread that are checked before their texts are printed.
const PER_THREAD: usize = 16;

/// What all inputs with the same settings share.
pub(crate) struct Job<'a> {
    pub(crate) options: LintOptions,
    /// The least severity that fails the run.
    pub(crate) fail_on: Severity,
    /// Known findings, and the rules whose findings are left out.
    pub(crate) baseline: Option<(&'a Baseline, BTreeSet<&'static str>)>,
    /// The numbers of the hosts that the inputs may run on, where there are several.
    pub(crate) hosts: &'a [usize],
}

/// What reports show beside findings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportNeeds {
    /// Every place that was not checked, and not each rule and reason once.
    pub(crate) places: bool,
    /// The findings, and not only their numbers.
    pub(crate) findings: bool,
    /// Images that the facts do not have.
    pub(crate) unknown_images: bool,
    /// Pictures of I/O paths.
    pub(crate) paths: bool,
}

/// All inputs, and how they are checked.
pub(crate) struct Run<'a> {
    pub(crate) companions: &'a Companions<'a>,
    pub(crate) jobs: &'a [Job<'a>],
    /// The number of the job of each input.
    pub(crate) of_input: &'a [usize],
    pub(crate) mode: Mode,
    /// The reason of allowances that are added.
    pub(crate) reason: &'a str,
    /// The QEMU that configurations are tried on, if they are.
    pub(crate) tester: Option<&'a Tester>,
    pub(crate) needs: ReportNeeds,
    /// True if the run writes outputs to files, which must not replace a disk.
    pub(crate) has_outputs: bool,
    /// True if advice about a host is given once, with its first guest.
    pub(crate) says_once: bool,
    /// The report that is printed during the run.
    pub(crate) stream: Option<&'a Renderer<'a>>,
    pub(crate) threads: usize,
    /// The number of files that name QEMU and were not read.
    pub(crate) unread: AtomicUsize,
}

impl Run<'_> {
    /// Checks the inputs and hands the result of each to `take`, in order; foreign files have none.
    pub(crate) fn each(
        &self,
        take: &mut dyn FnMut(usize, InputResult) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let inputs = self.companions.inputs.len();
        let pool = self.pool(inputs);
        let most = pool.as_ref().map_or(1, |_| PER_THREAD * self.threads);
        for start in (0..inputs).step_by(most) {
            let numbers = start..inputs.min(start + most);
            let one = |number: usize| Some((number, self.catch_panic(number)?));
            let results: Vec<Option<(usize, InputResult)>> = match &pool {
                Some(pool) => pool.install(|| numbers.into_par_iter().map(one).collect()),
                None => numbers.map(one).collect(),
            };
            let mut results = results.into_iter().flatten();
            results.try_for_each(|(number, result)| take(number, result))?;
        }
        Ok(())
    }

    /// The result with the text that is printed during the run.
    pub(crate) fn printed(&self, mut result: InputResult) -> InputResult {
        if let Some(stream) = self.stream {
            let reports = result.reports.iter();
            result.text = reports.map(|report| stream.text(report)).collect();
        }
        result
    }

    /// The further findings of an input, which are about its guest beside others.
    pub(crate) fn beside(&self, number: usize, others: &OtherGuests) -> Option<InputResult> {
        let bytes = self.companions.bytes(number).ok()?;
        self.task(number).beside(&bytes, others)
    }

    fn task(&self, number: usize) -> Task<'_> {
        Task {
            run: self,
            job: &self.jobs[self.of_input[number]],
            number,
            input: &self.companions.inputs[number],
        }
    }

    /// A thread pool; `None` for few inputs, or if no thread can be started.
    fn pool(&self, inputs: usize) -> Option<ThreadPool> {
        if self.threads < 2 || inputs < WORTH_THREADS {
            return None;
        }
        let threads = self.threads.min(inputs);
        ThreadPoolBuilder::new().num_threads(threads).build().ok()
    }

    /// One input; a bug of this program is reported as such, and the other inputs are still checked.
    fn catch_panic(&self, number: usize) -> Option<InputResult> {
        let attempt = panic::catch_unwind(AssertUnwindSafe(|| self.task(number).result()));
        attempt.unwrap_or_else(|_| {
            let help = concat!(
                "please report it at ",
                env!("CARGO_PKG_REPOSITORY"),
                "/issues"
            );
            let message = Message::error("could not be checked because of a bug in vmdisk")
                .help(help.to_owned());
            let file = &self.companions.inputs[number].file;
            Some(self.printed(InputReport::failed(file, message).into()))
        })
    }
}

/// The check of one input.
#[derive(Clone, Copy)]
struct Task<'r> {
    run: &'r Run<'r>,
    job: &'r Job<'r>,
    number: usize,
    input: &'r Input,
}

impl Task<'_> {
    fn result(self) -> Option<InputResult> {
        let Task { run, input, .. } = self;
        let mut result = InputResult::default();
        if input.origin == Origin::Host {
            result.reports = host::reports(&self.job.options);
            return Some(self.settled(result));
        }
        let report = match run.companions.bytes(self.number) {
            Ok(bytes) => {
                if matches!(input.origin, Origin::Found(_)) {
                    let content = read::what_is(&input.file, &bytes);
                    let is_unread = content == Content::Unread;
                    run.unread
                        .fetch_add(usize::from(is_unread), Ordering::Relaxed);
                    if content != Content::Ours {
                        return None;
                    }
                }
                // Where files are fixed, each is on its own.
                if run.mode == Mode::Report && run.companions.is_named(input, &bytes) {
                    return Some(result);
                }
                self.check(&bytes, &mut result)
            }
            Err(message) => Err(message),
        };
        let report = report.unwrap_or_else(|message| InputReport::new(&input.file, Err(message)));
        result.reports.insert(0, report);
        Some(self.settled(result))
    }

    fn beside(self, bytes: &[u8], others: &OtherGuests) -> Option<InputResult> {
        let mut ignored = Vec::new();
        let document = self.planned(bytes, &mut ignored).ok()?;
        let parts = Parts::of(self.input, &document);
        let found = vmdisk::lint(LintInput::Beside(&document, others), &self.job.options);
        let (report, mut reports) = self.split(document, found, parts);
        reports.insert(0, report);
        let continued = reports.iter_mut();
        continued.for_each(|report| report.is_continued = true);
        Some(self.settled(InputResult {
            reports,
            ..InputResult::default()
        }))
    }

    /// Applies the settings of the input.
    fn settled(self, mut result: InputResult) -> InputResult {
        for report in &mut result.reports {
            report.fail_on = self.job.fail_on;
            report.has_facts = self.job.options.host.is_some() || self.job.options.fleet.is_some();
            if !self.job.hosts.is_empty() {
                report.renumber_hosts(self.job.hosts);
            }
            if let Some((baseline, left_out)) = &self.job.baseline {
                baseline.apply(report, left_out);
            }
        }
        self.run.printed(result)
    }

    /// The report of a document, and those of the files that it names.
    fn split(
        self,
        document: Document,
        found: LintReport,
        parts: Parts,
    ) -> (InputReport, Vec<InputReport>) {
        let mut report = match self.run.needs.places {
            true => DocumentReport::new(document, found),
            false => DocumentReport::without_places(document, found),
        };
        let named = parts.split(&mut report);
        (InputReport::new(&self.input.file, Ok(report)), named)
    }

    /// The document of an input with the files that it names; a spec with its planned guest.
    fn planned(
        self,
        bytes: &[u8],
        failed_files: &mut Vec<InputReport>,
    ) -> Result<Document, Box<Message>> {
        let Task {
            run, job, input, ..
        } = self;
        let is_written = run.mode != Mode::Report || run.tester.is_some();
        let document = match is_written {
            true => read::document(input, bytes)?,
            false => read::document_to_lint(input, bytes)?,
        };
        if run.has_outputs {
            document.starts().for_each(|it| used::disks(it.domain()));
        }
        let DocumentWithFiles {
            mut document,
            failed,
        } = config_files::joined(input, document)
            .map_err(|failure| read::message(input, bytes, failure))?;
        failed_files.extend(failed);
        if document.has_volumes() {
            document.locate_volumes(run.companions.storage());
        }
        if let Some(planned) = job.options.planned(&document) {
            document = planned;
        }
        Ok(document)
    }

    fn check(self, bytes: &[u8], result: &mut InputResult) -> Result<InputReport, Box<Message>> {
        let Task { run, job, .. } = self;
        let document = self.planned(bytes, &mut result.reports)?;
        if job.options.compares_guests {
            result.needs = vmdisk::guest_needs(&document, &job.options, self.number).map(Box::new);
        }
        if run.mode != Mode::Report {
            return self.change(bytes, document, result);
        }
        let parts = Parts::of(self.input, &document);
        let found = match run.tester {
            Some(tester) => {
                let outcome = tester.run(&document).map_err(|why| {
                    self.failure(Message::error(format!("could not be tried: {why}")))
                })?;
                vmdisk::lint(LintInput::Tried(&document, &outcome), &job.options)
            }
            None => vmdisk::lint(&document, &job.options),
        };
        let unknown_images = match &job.options.host {
            Some(host) if run.needs.unknown_images => unknown_images(&document, host.index()),
            Some(_) | None => BTreeMap::new(),
        };
        let paths = self.paths(&document, &found);
        let (report, named) = self.split(document, found, parts);
        result.reports.extend(named);
        Ok(InputReport {
            paths,
            unknown_images,
            ..report
        })
    }

    /// Fixes a document or adds its allowances, and writes the text or tells the difference.
    fn change(
        self,
        bytes: &[u8],
        document: Document,
        result: &mut InputResult,
    ) -> Result<InputReport, Box<Message>> {
        let Task {
            run, job, input, ..
        } = self;
        let own = document.own_text().to_owned();
        let files = config_files::texts(&document);
        let read_again = |own: &str| {
            let mut document = vmdisk::read_with_config_files(own, &files, &input.values)?;
            if document.has_volumes() {
                document.locate_volumes(run.companions.storage());
            }
            Ok(document)
        };
        let (changed, report, mended, failed) = match run.mode {
            Mode::Fix(scope) | Mode::Diff(scope) => {
                let fixed = vmdisk::fix_document(document, &read_again, &job.options, scope);
                (fixed.document, fixed.report, fixed.mended, fixed.failed)
            }
            Mode::Allow | Mode::Report => {
                let allowed = vmdisk::allow(document, &read_again, &job.options, run.reason);
                (allowed.document, allowed.report, Vec::new(), Vec::new())
            }
        };
        let text = changed.own_text();
        let changes = text != own;
        let mut diff = String::new();
        match run.mode {
            Mode::Diff(_) if changes => diff = diff::unified(&input.file, &own, text),
            Mode::Report | Mode::Diff(_) => {}
            Mode::Fix(_) | Mode::Allow => match input.origin {
                Origin::Stdin | Origin::Given(_) => result.fixed = Some(text.to_owned()),
                Origin::Named | Origin::Found(_) if changes => {
                    replace(&input.file, bytes, text.as_bytes())
                        .map_err(|error| self.failure(not_written(&error)))?;
                }
                Origin::Named | Origin::Found(_) | Origin::Host => {}
            },
        }
        let parts = Parts::of(input, &changed);
        let paths = self.paths(&changed, &report);
        let (mut report, named) = self.split(changed, report, parts);
        if let Ok(report) = &mut report.outcome {
            report.mended = mended;
            report.failed_fixes = failed;
        }
        result.reports.extend(named);
        Ok(InputReport {
            paths,
            diff,
            ..report
        })
    }

    /// The I/O paths of the disks, if a report shows them.
    fn paths(self, document: &Document, found: &LintReport) -> Vec<HostTrace> {
        match self.run.needs.paths {
            true => {
                let options = &self.job.options;
                let starts = document.starts();
                starts
                    .flat_map(|it| trace_linted(it, options, &found.diagnostics))
                    .collect()
            }
            false => Vec::new(),
        }
    }

    fn failure(self, message: Message) -> Box<Message> {
        let place = MessagePlace::new(self.input.path(), None);
        Box::new(message.at(place))
    }
}

/// Replaces a file, unless another run has written the very same meanwhile.
fn replace(path: &Path, before: &[u8], after: &[u8]) -> Result<(), ReplaceError> {
    match atomic::replace(path, before, after) {
        Err(ReplaceError::Changed)
            if bounded::regular(path, MAX_BYTES).is_ok_and(|is| is == after) =>
        {
            Ok(())
        }
        result => result,
    }
}

fn not_written(error: &ReplaceError) -> Message {
    let mut message = Message::error(format!("could not be fixed: {error}"));
    message.help = match error {
        ReplaceError::Changed => Some("run the same command again".to_owned()),
        ReplaceError::Linked(_) => {
            Some("write the result with -o to another file, or remove the other names".to_owned())
        }
        ReplaceError::Attributes(_) => Some("run it as the owner of the file".to_owned()),
        ReplaceError::Refused(_) | ReplaceError::Io(_) => None,
    };
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LintFormat;
    use crate::render::View;
    use crate::render::renderer::Content;

    #[test]
    fn a_file_that_another_run_fixed_in_the_same_way_is_fixed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        std::fs::write(&path, "after").unwrap();
        assert!(replace(&path, b"before", b"after").is_ok());
        let other = replace(&path, b"before", b"else");
        assert!(matches!(other, Err(ReplaceError::Changed)), "{other:?}");
    }

    #[test]
    fn a_mistake_of_ours_fails_one_input_and_no_other() {
        let inputs = ["good.xml", "bad.cfg"].map(|name| Input::new(name.into(), Origin::Found(0)));
        let text = b"<disk type='file'><source file='/a'/><target dev='vda'/></disk>";
        let options = b"[drive \"a\"]\n  file = \"/a\"\n";
        let read_before = BTreeMap::from([(0, text.to_vec()), (1, options.to_vec())]);
        let job = Job {
            options: LintOptions::default(),
            fail_on: Severity::Warning,
            baseline: None,
            hosts: &[],
        };
        let run = Run {
            says_once: false,
            companions: &Companions::new(&inputs, &read_before),
            // The job of the second input is missing.
            jobs: &[job],
            of_input: &[0, 1],
            mode: Mode::Report,
            reason: "",
            tester: None,
            has_outputs: false,
            needs: ReportNeeds {
                places: false,
                findings: true,
                unknown_images: false,
                paths: false,
            },
            stream: Some(&Renderer {
                content: Content::Findings(LintFormat::JsonLines),
                view: View::everything(),
            }),
            threads: 1,
            unread: AtomicUsize::new(0),
        };
        let mut results = Vec::new();
        let taken = run.each(&mut |_, one| {
            results.push(one);
            Ok(())
        });
        assert!(taken.is_ok());
        assert!(results[0].reports[0].outcome.is_ok());
        let message = results[1].reports[0].outcome.as_ref().unwrap_err();
        assert!(message.title.contains("a bug in vmdisk"));
        assert!(results[1].text.contains("bad.cfg"), "{}", results[1].text);
    }
}
