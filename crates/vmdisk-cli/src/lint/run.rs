//! Checks the inputs, several at once, and keeps their order.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use rayon::prelude::*;
use vmdisk::{LintOptions, Severity, Storage};

use crate::atomic::{self, ReplaceError};
use crate::lint::checked::Report;
use crate::lint::config_files::{self, Joined, Parts};
use crate::lint::diff;
use crate::lint::inputs::{Input, Origin};
use crate::lint::mode::Mode;
use crate::lint::output::Output;
use crate::lint::read;
use crate::lint::results::Done;
use crate::lint::trial::Tester;
use crate::render::message::{Message, MessagePlace};

/// Fewer files than this are not worth the start of a thread.
const WORTH_THREADS: usize = 8;

/// What all inputs share.
pub(crate) struct Job<'a> {
    pub(crate) options: LintOptions<'a>,
    pub(crate) mode: Mode,
    /// The QEMU that configurations are tried on, if they are.
    pub(crate) tester: Option<&'a Tester>,
    /// Bytes that were read already, by the number of the input: a pipe can be read only once.
    pub(crate) read_before: &'a BTreeMap<usize, Vec<u8>>,
    /// Pools and volumes among the inputs.
    pub(crate) storage: &'a (dyn Fn() -> &'a Storage + Sync),
    pub(crate) output: &'a Output,
    /// The least severity that fails the run.
    pub(crate) fail_on: Severity,
    /// The numbers of the hosts that the inputs may run on, where there are several.
    pub(crate) hosts: &'a [usize],
}

/// Handles all inputs; foreign files have no result.
pub(crate) fn all(
    inputs: &[Input],
    jobs: &[Job<'_>],
    of_input: &[usize],
    threads: usize,
) -> Vec<Option<Done>> {
    let numbered = |(number, input)| unless_it_panics(number, input, &jobs[of_input[number]]);
    let one_by_one = || inputs.iter().enumerate().map(numbered).collect();
    if threads < 2 || inputs.len() < WORTH_THREADS {
        return one_by_one();
    }
    // Where no thread can be had, the work is done without.
    match rayon::ThreadPoolBuilder::new()
        .num_threads(threads.min(inputs.len()))
        .build()
    {
        Ok(pool) => pool.install(|| inputs.par_iter().enumerate().map(numbered).collect()),
        Err(_) => one_by_one(),
    }
}

/// One input; a bug of this program is reported as such, and the other inputs are still checked.
fn unless_it_panics(number: usize, input: &Input, job: &Job<'_>) -> Option<Done> {
    let attempt = panic::catch_unwind(AssertUnwindSafe(|| one(number, input, job)));
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
            ..Message::error("could not be checked because of a mistake in vmdisk itself").at(place)
        }));
        render(&mut done, job.output);
        Some(done)
    })
}

fn one(number: usize, input: &Input, job: &Job<'_>) -> Option<Done> {
    let mut done = Done::new(input);
    let bytes = match job.read_before.get(&number) {
        Some(bytes) => Ok(bytes.clone()),
        None => read::file(&input.file),
    };
    done.checked.outcome = match bytes {
        Ok(bytes) => {
            if matches!(input.origin, Origin::Found(_)) && !read::is_ours(&input.file, &bytes) {
                return None;
            }
            check(input, &bytes, job, &mut done)
        }
        Err(message) => Err(message),
    };
    for checked in std::iter::once(&mut done.checked).chain(&mut done.named) {
        if let Ok(report) = &mut checked.outcome {
            report.fail_on = job.fail_on;
            if !job.hosts.is_empty() {
                report.renumber_hosts(job.hosts);
            }
        }
    }
    render(&mut done, job.output);
    Some(done)
}

/// Turns the reports of an input into text, where the output has a text for each.
fn render(done: &mut Done, output: &Output) {
    let all = std::iter::once(&mut done.checked).chain(&mut done.named);
    done.rendered = all.map(|checked| output.render(checked)).collect();
}

fn check(
    input: &Input,
    bytes: &[u8],
    job: &Job<'_>,
    done: &mut Done,
) -> Result<Report, Box<Message>> {
    let document = read::document(input, bytes)?;
    let Joined {
        mut document,
        failed,
    } = config_files::joined(input, document)
        .map_err(|failure| read::message(input, bytes, failure))?;
    done.named.extend(failed);
    if document.has_volumes() {
        document.locate_volumes((job.storage)());
    }
    if let Some(planned) = job.options.planned(&document) {
        document = planned;
    }
    let parts = Parts::of(input, &document);
    let scope = match job.mode {
        Mode::Report => {
            let report = match job.tester {
                Some(tester) => {
                    let tried = tester.run(&document).map_err(|why| {
                        let place = MessagePlace {
                            path: input.path(),
                            quoted: None,
                        };
                        Box::new(Message::error(format!("could not be tried: {why}")).at(place))
                    })?;
                    vmdisk::lint_tried(&document, &job.options, &tried)
                }
                None => vmdisk::lint(&document, &job.options),
            };
            let mut report = Report::new(document, report, job.output.names_every_place());
            done.named.extend(parts.split(&mut report));
            return Ok(report);
        }
        Mode::Fix(scope) | Mode::Diff(scope) => scope,
    };
    let own = document.own_text().to_owned();
    let files = config_files::texts(&document);
    let read_again = |own: &str| {
        let mut document = vmdisk::read_with_config_files(own, &files)?;
        if document.has_volumes() {
            document.locate_volumes((job.storage)());
        }
        Ok(document)
    };
    let fixed = vmdisk::fix_document(document, &read_again, &job.options, scope);
    let text = fixed.document.own_text();
    let changes = text != own;
    match job.mode {
        Mode::Report => {}
        Mode::Diff(_) if changes => done.diff = diff::unified(&input.file, &own, text),
        Mode::Diff(_) => {}
        Mode::Fix(_) => match input.origin {
            Origin::Stdin => done.fixed = Some(text.to_owned()),
            Origin::Named | Origin::Found(_) if changes => {
                replace(&input.file, bytes, text.as_bytes())
                    .map_err(|error| not_written(input, &error))?;
            }
            Origin::Named | Origin::Found(_) => {}
        },
    }
    let parts = Parts::of(input, &fixed.document);
    let mut report = Report::new(fixed.document, fixed.report, job.output.names_every_place());
    report.mended = fixed.mended;
    report.failed_fixes = fixed.failed;
    done.named.extend(parts.split(&mut report));
    Ok(report)
}

/// Replaces a file, unless another run has written the very same meanwhile.
fn replace(path: &Path, before: &[u8], after: &[u8]) -> Result<(), ReplaceError> {
    match atomic::replace(path, before, after) {
        Err(ReplaceError::Changed) if std::fs::read(path).is_ok_and(|is| is == after) => Ok(()),
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
        ReplaceError::Io(_) => None,
    };
    Box::new(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LintFormat;

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
        let inputs = ["good.xml", "bad.xml"].map(|name| Input {
            file: name.into(),
            origin: Origin::Stdin,
        });
        let text = b"<disk type='file'><source file='/a'/><target dev='vda'/></disk>";
        let on_volume =
            b"<disk type='volume'><source pool='p' volume='v'/><target dev='vda'/></disk>";
        let read_before = BTreeMap::from([(0, text.to_vec()), (1, on_volume.to_vec())]);
        let job = Job {
            options: LintOptions::default(),
            mode: Mode::Report,
            tester: None,
            read_before: &read_before,
            storage: &|| panic!("made up for this test"),
            output: &Output::plain(LintFormat::Github),
            fail_on: Severity::Warning,
            hosts: &[],
        };
        let done: Vec<Done> = all(&inputs, &[job], &[0, 0], 1)
            .into_iter()
            .flatten()
            .collect();
        assert!(done[0].checked.outcome.is_ok());
        let message = done[1].checked.outcome.as_ref().unwrap_err();
        assert!(message.title.contains("a mistake in vmdisk itself"));
        assert!(done[1].rendered.contains("bad.xml"));
    }
}
