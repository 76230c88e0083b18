//! The programs that a run starts: without a shell, never from the current directory, and never waited for in vain.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use vmdisk_qmp::OutputCollector;

use crate::stop::plain;

/// The longest time that a question may take: each program looks at one image or volume, and a key takes seconds of CPU.
const ANSWER: Duration = Duration::from_secs(300);
/// Time between two looks at a program that runs.
const PAUSE: Duration = Duration::from_millis(10);

/// What a program printed.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) is_success: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// The directories of programs. A relative one, of which an empty one is the current directory, belongs to whoever can
/// write there.
fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = if path.is_empty() {
        "/usr/bin:/bin"
    } else {
        &path
    };
    let own = path.split(':').filter(|folder| folder.starts_with('/'));
    own.chain(["/usr/sbin", "/sbin"])
        .collect::<Vec<_>>()
        .join(":")
}

pub(super) fn is_installed(program: &str) -> bool {
    let path = search_path();
    path.split(':')
        .any(|folder| Path::new(folder).join(program).is_file())
}

/// Runs a program; its output is read while it runs. `is_ended` is asked again and again, and ends it.
pub(super) fn run(
    argv: &[String],
    stdin: Option<&str>,
    mut is_ended: impl FnMut(Duration) -> Option<String>,
) -> Result<Answer, String> {
    let of_program = |error: std::io::Error| format!("{}: {}", argv[0], plain(&error));
    let mut child = Command::new(&argv[0])
        .args(&argv[1..])
        .env("PATH", search_path())
        .env("LC_ALL", "C")
        .stdin(if stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(of_program)?;
    let mut outputs = (
        child
            .stdout
            .take()
            .map(OutputCollector::of)
            .transpose()
            .map_err(of_program)?,
        child
            .stderr
            .take()
            .map(OutputCollector::of)
            .transpose()
            .map_err(of_program)?,
    );
    if let (Some(text), Some(mut pipe)) = (stdin, child.stdin.take()) {
        // A program that reads none of it says why.
        let _ = pipe.write_all(text.as_bytes());
    }
    let status = wait(&mut child, &mut is_ended).map_err(|why| format!("{}: {why}", argv[0]))?;
    let text = |of: &mut Option<OutputCollector>| {
        of.as_mut().map(OutputCollector::all).unwrap_or_default()
    };
    Ok(Answer {
        is_success: status.success(),
        stdout: text(&mut outputs.0),
        stderr: text(&mut outputs.1),
    })
}

fn wait(
    child: &mut Child,
    is_ended: &mut impl FnMut(Duration) -> Option<String>,
) -> Result<ExitStatus, String> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| plain(&error))? {
            return Ok(status);
        }
        if let Some(why) = is_ended(begun.elapsed()) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(why);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Asks a program something.
pub(super) fn ask(argv: &[String]) -> Result<Answer, String> {
    run(argv, None, is_late)
}

/// As [`ask`], with an input.
pub(super) fn answer(argv: &[String], stdin: &str) -> Result<Answer, String> {
    run(argv, Some(stdin), is_late)
}

fn is_late(elapsed: Duration) -> Option<String> {
    (elapsed > ANSWER).then(|| format!("no answer within {} seconds", ANSWER.as_secs()))
}

/// The output of a program, if it succeeds.
pub(super) fn output(argv: &[&str]) -> Option<String> {
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    let answer = ask(&argv).ok()?;
    answer.is_success.then_some(answer.stdout)
}

pub(super) fn succeeds(argv: &[String]) -> bool {
    ask(argv).is_ok_and(|answer| answer.is_success)
}
