//! Checks the inputs, several at once, and hands over their results in order.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use vmdisk::model::Scope;
use vmdisk::trace::{HostTrace, trace_linted};
use vmdisk::{Document, Fixed, LintOptions, LintReport, Severity};

use crate::atomic::{self, ReplaceError};
use crate::baseline::known::Baseline;
use crate::input::bounded::{self, MAX_BYTES};
use crate::input::config_files::{self, DocumentWithFiles};
use crate::input::inputs::{Input, Origin};
use crate::input::storage::Search;
use crate::input::{read, used};
use crate::lint::guests::Compared;
use crate::lint::mode::Mode;
use crate::lint::parts::Parts;
use crate::lint::results::Done;
use crate::lint::trial::Tester;
use crate::render::document::Renderer;
use crate::render::message::{Message, MessagePlace};
use crate::report::diff;
use crate::report::input::{DocumentReport, unknown_images};
use crate::stop::Stop;

/// Fewer files than this are not worth the start of a thread.
pub(super) const WORTH_THREADS: usize = 8;

/// The number of inputs for each thread that are done and not yet taken.
const WINDOW: usize = 16;

/// What all inputs with the same settings share.
pub(crate) struct Job<'a> {
    pub(crate) options: LintOptions<'a>,
    pub(crate) mode: Mode,
    /// The reason of allowances that are added.
    pub(crate) reason: &'a str,
    /// The QEMU that configurations are tried on, if they are.
    pub(crate) tester: Option<&'a Tester>,
    /// Bytes that were read already, by the number of the input: a pipe can be read only once.
    pub(crate) read_before: &'a BTreeMap<usize, Vec<u8>>,
    /// Pools and volumes among the inputs.
    pub(crate) storage: &'a Search<'a>,
    /// Paths of files that command lines among the inputs name.
    pub(crate) named: &'a (dyn Fn() -> &'a BTreeSet<String> + Sync),
    /// True if a report names every place that was not checked, and not each rule and reason once.
    pub(crate) names_every_place: bool,
    /// True if the run writes outputs to files, which must not replace a disk.
    pub(crate) has_outputs: bool,
    /// True if images that the facts do not have are listed.
    pub(crate) lists_unknown_images: bool,
    /// True if a report has pictures of I/O paths.
    pub(crate) draws_paths: bool,
    /// The least severity that fails the run.
    pub(crate) fail_on: Severity,
    /// Known findings, and the rules whose findings are left out.
    pub(crate) baseline: Option<(&'a Baseline, BTreeSet<&'static str>)>,
    /// The numbers of the hosts that the inputs may run on, where there are several.
    pub(crate) hosts: &'a [usize],
    /// True if the guests of the inputs are compared.
    pub(crate) compares_guests: bool,
}

/// All inputs, and how they are checked.
pub(crate) struct Run<'a> {
    pub(crate) inputs: &'a [Input],
    pub(crate) jobs: &'a [Job<'a>],
    /// The number of the job of each input.
    pub(crate) of_input: &'a [usize],
    pub(crate) threads: usize,
}

impl Run<'_> {
    /// Checks the inputs from number `first` on and hands the result of each to `take`, in order; foreign files have
    /// none.
    pub(crate) fn each(
        &self,
        first: usize,
        renderers: &[Renderer<'_>],
        take: &mut dyn FnMut(usize, Done) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let one = |number: usize| {
            let job = &self.jobs[self.of_input[number]];
            catch_panic(number, &self.inputs[number], job, renderers)
        };
        let mut numbers = first..self.inputs.len();
        let Some(pool) = self.pool(numbers.len()) else {
            return numbers.try_for_each(|number| match one(number) {
                Some(done) => take(number, done),
                None => Ok(()),
            });
        };
        let window = WINDOW * self.threads;
        for start in numbers.step_by(window) {
            let window = start..self.inputs.len().min(start + window);
            let done: Vec<Option<Done>> =
                pool.install(|| window.clone().into_par_iter().map(one).collect());
            for (number, done) in window.zip(done) {
                if let Some(done) = done {
                    take(number, done)?;
                }
            }
        }
        Ok(())
    }

    /// The further findings of an input, which are about its guest beside others.
    pub(crate) fn beside(
        &self,
        number: usize,
        compared: &Compared,
        renderers: &[Renderer<'_>],
    ) -> Option<Done> {
        let (input, job) = (&self.inputs[number], &self.jobs[self.of_input[number]]);
        let bytes = read::again(number, input, job.read_before)?;
        let mut done = Done::new(input);
        let document = planned(input, &bytes, job, &mut done).ok()?;
        let parts = Parts::of(input, &document);
        let found = match compared {
            Compared::Conflicts(others) => vmdisk::lint_beside(&document, &job.options, others),
            Compared::HostsUnknown => vmdisk::guests_not_compared(&job.options),
        };
        let mut report = DocumentReport::new(document, found, job.names_every_place);
        done.named = parts.split(&mut report);
        done.checked.outcome = Ok(report);
        for checked in std::iter::once(&mut done.checked).chain(&mut done.named) {
            if let Ok(report) = &mut checked.outcome {
                report.is_continued = true;
            }
        }
        settle(&mut done, job);
        done.render(renderers);
        Some(done)
    }

    /// Threads for a number of inputs. Where no thread can be had, the work is done without.
    fn pool(&self, inputs: usize) -> Option<ThreadPool> {
        if self.threads < 2 || inputs < WORTH_THREADS {
            return None;
        }
        let threads = self.threads.min(inputs);
        ThreadPoolBuilder::new().num_threads(threads).build().ok()
    }
}

/// One input; a bug of this program is reported as such, and the other inputs are still checked.
fn catch_panic(
    number: usize,
    input: &Input,
    job: &Job<'_>,
    renderers: &[Renderer<'_>],
) -> Option<Done> {
    let attempt = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut done = one(number, input, job)?;
        done.render(renderers);
        Some(done)
    }));
    attempt.unwrap_or_else(|_| {
        let mut done = Done::new(input);
        let place = MessagePlace {
            path: input.path(),
            quoted: None,
        };
        done.checked.outcome = Err(Box::new(Message {
            help: Some(
                concat!(
                    "please report it at ",
                    env!("CARGO_PKG_REPOSITORY"),
                    "/issues"
                )
                .to_owned(),
            ),
            ..Message::error("could not be checked because of a bug in vmdisk").at(place)
        }));
        done.render(renderers);
        Some(done)
    })
}

fn one(number: usize, input: &Input, job: &Job<'_>) -> Option<Done> {
    let mut done = Done::new(input);
    let mut known = job.read_before.get(&number).map(Vec::as_slice);
    if job.mode == Mode::Report {
        known = known.or_else(|| job.storage.read_ahead(number));
    }
    let bytes = match known {
        Some(bytes) => Ok(Cow::Borrowed(bytes)),
        None => read::input(input).map(Cow::Owned),
    };
    done.checked.outcome = match bytes {
        Ok(bytes) => {
            if matches!(input.origin, Origin::Found(_)) && !read::is_ours(&input.file, &bytes) {
                return None;
            }
            if is_named_elsewhere(input, &bytes, job) {
                done.is_named_elsewhere = true;
                return Some(done);
            }
            check(number, input, &bytes, job, &mut done)
        }
        Err(message) => Err(message),
    };
    settle(&mut done, job);
    Some(done)
}

/// Applies the settings of the inputs to the reports of one.
fn settle(done: &mut Done, job: &Job<'_>) {
    for checked in std::iter::once(&mut done.checked).chain(&mut done.named) {
        if let Ok(report) = &mut checked.outcome {
            report.fail_on = job.fail_on;
            if !job.hosts.is_empty() {
                report.renumber_hosts(job.hosts);
            }
        }
        if let Some((baseline, left_out)) = &job.baseline {
            baseline.apply(checked, left_out);
        }
    }
}

/// True for a file that is checked with the command line that names it, and need not be reported a second time; where
/// files are fixed, each is on its own.
fn is_named_elsewhere(input: &Input, bytes: &[u8], job: &Job<'_>) -> bool {
    matches!((job.mode, &input.origin), (Mode::Report, Origin::Found(_)))
        // XML, as nearly all.
        && bytes.first() != Some(&b'<')
        && std::str::from_utf8(bytes).is_ok_and(vmdisk::begins_with_group)
        && (job.named)().contains(&input.path())
}

/// The document of an input with the files that it names; a spec with its planned guest.
fn planned(
    input: &Input,
    bytes: &[u8],
    job: &Job<'_>,
    done: &mut Done,
) -> Result<Document, Box<Message>> {
    let is_written = job.mode != Mode::Report || job.tester.is_some();
    let document = match is_written {
        true => read::document(input, bytes)?,
        false => read::document_to_lint(input, bytes)?,
    };
    if job.has_outputs {
        used::disks(document.domain());
    }
    let DocumentWithFiles {
        mut document,
        failed,
    } = config_files::joined(input, document)
        .map_err(|failure| read::message(input, bytes, failure))?;
    done.named.extend(failed);
    if document.has_volumes() {
        document.locate_volumes(job.storage.storage());
    }
    if let Some(planned) = job.options.planned(&document) {
        document = planned;
    }
    Ok(document)
}

fn check(
    number: usize,
    input: &Input,
    bytes: &[u8],
    job: &Job<'_>,
    done: &mut Done,
) -> Result<DocumentReport, Box<Message>> {
    let document = planned(input, bytes, job, done)?;
    if document.storage().is_none() {
        job.storage.skip(number);
    }
    let domain = document.domain();
    done.is_guest = domain.scope == Scope::WholeGuest && domain.foreign_type().is_none();
    if job.compares_guests {
        done.needs = vmdisk::guest_needs(&document, &job.options, number).map(Box::new);
    }
    if job.mode != Mode::Report {
        return change(input, bytes, document, job, done);
    }
    let parts = Parts::of(input, &document);
    let report = match job.tester {
        Some(tester) => {
            let outcome = tester.run(&document).map_err(|why| {
                let place = MessagePlace {
                    path: input.path(),
                    quoted: None,
                };
                Box::new(Message::error(format!("could not be tried: {why}")).at(place))
            })?;
            vmdisk::lint_after_trial(&document, &job.options, &outcome)
        }
        None => vmdisk::lint(&document, &job.options),
    };
    let unknown = match job.options.host {
        Some(host) if job.lists_unknown_images => unknown_images(&document, host),
        Some(_) | None => BTreeMap::new(),
    };
    let paths = paths(&document, &report, job);
    let mut report = DocumentReport::new(document, report, job.names_every_place);
    report.paths = paths;
    report.unknown_images = unknown;
    done.named.extend(parts.split(&mut report));
    Ok(report)
}

/// Fixes a document or adds its allowances, and writes the text or tells the difference.
fn change(
    input: &Input,
    bytes: &[u8],
    document: Document,
    job: &Job<'_>,
    done: &mut Done,
) -> Result<DocumentReport, Box<Message>> {
    let own = document.own_text().to_owned();
    let files = config_files::texts(&document);
    let read_again = |own: &str| {
        let mut document = vmdisk::read_with_config_files(own, &files)?;
        if document.has_volumes() {
            document.locate_volumes(job.storage.storage());
        }
        Ok(document)
    };
    let fixed = match job.mode {
        Mode::Fix(scope) | Mode::Diff(scope) => {
            vmdisk::fix_document(document, &read_again, &job.options, scope)
        }
        Mode::Allow | Mode::Report => {
            let allowed = vmdisk::allow(document, &read_again, &job.options, job.reason);
            Fixed {
                document: allowed.document,
                report: allowed.report,
                mended: Vec::new(),
                failed: Vec::new(),
            }
        }
    };
    let text = fixed.document.own_text();
    let changes = text != own;
    match job.mode {
        Mode::Report => {}
        Mode::Diff(_) if changes => done.diff = diff::unified(&input.file, &own, text),
        Mode::Diff(_) => {}
        Mode::Fix(_) | Mode::Allow => match input.origin {
            Origin::Stdin => done.fixed = Some(text.to_owned()),
            Origin::Named | Origin::Found(_) if changes => {
                replace(&input.file, bytes, text.as_bytes())
                    .map_err(|error| not_written(input, &error))?;
            }
            Origin::Named | Origin::Found(_) | Origin::Given(_) => {}
        },
    }
    let parts = Parts::of(input, &fixed.document);
    let paths = paths(&fixed.document, &fixed.report, job);
    let mut report = DocumentReport::new(fixed.document, fixed.report, job.names_every_place);
    report.paths = paths;
    report.mended = fixed.mended;
    report.failed_fixes = fixed.failed;
    done.named.extend(parts.split(&mut report));
    Ok(report)
}

/// The I/O paths of the disks, if a report shows them.
fn paths(document: &Document, report: &LintReport, job: &Job<'_>) -> Vec<HostTrace> {
    match job.draws_paths {
        true => trace_linted(document, &job.options, &report.diagnostics),
        false => Vec::new(),
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

fn not_written(input: &Input, error: &ReplaceError) -> Box<Message> {
    let place = MessagePlace {
        path: input.path(),
        quoted: None,
    };
    let mut message = Message::error(format!("could not be fixed: {error}")).at(place);
    message.help = match error {
        ReplaceError::Changed => Some("run the same command again".to_owned()),
        ReplaceError::Linked(_) => {
            Some("write the result with -o to another file, or remove the other names".to_owned())
        }
        ReplaceError::Attributes(_) => Some("run it as the owner of the file".to_owned()),
        ReplaceError::Refused(_) | ReplaceError::Io(_) => None,
    };
    Box::new(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LintFormat;
    use crate::render::View;
    use crate::render::document::Content;

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
            mode: Mode::Report,
            reason: "",
            tester: None,
            read_before: &read_before,
            storage: &Search::new(&inputs, &read_before),
            named: &|| panic!("made up for this test"),
            names_every_place: false,
            has_outputs: false,
            lists_unknown_images: false,
            draws_paths: false,
            fail_on: Severity::Warning,
            baseline: None,
            hosts: &[],
            compares_guests: true,
        };
        let run = Run {
            inputs: &inputs,
            jobs: &[job],
            of_input: &[0, 0],
            threads: 1,
        };
        let github = Content::Findings(LintFormat::Github);
        let renderers = [Renderer::new(github, View::everything())];
        let mut done = Vec::new();
        let result = run.each(0, &renderers, &mut |_, one| {
            done.push(one);
            Ok(())
        });
        assert!(result.is_ok());
        assert!(done[0].checked.outcome.is_ok());
        let message = done[1].checked.outcome.as_ref().unwrap_err();
        assert!(message.title.contains("a bug in vmdisk"));
        let text = String::from_utf8_lossy(&done[1].items[0][0][0]);
        assert!(text.contains("bad.cfg"), "{text}");
    }
}
