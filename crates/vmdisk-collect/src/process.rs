//! Running read-only programs on request.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_facts::{Fact, Reason, Unknown};

use crate::obstacle::{obstacle, shortened};
use crate::root::Root;
use crate::timeout::{WaitError, within};

/// A program that provides facts, and the path of its output in a recorded system.
pub(crate) struct ProgramQuery<'a> {
    /// Its name, or its absolute path.
    pub(crate) program: &'a str,
    pub(crate) arguments: &'a [&'a str],
    pub(crate) recorded: &'a str,
}

impl ProgramQuery<'_> {
    /// Returns true if output is available: a recorded system has only the output of requested programs.
    pub(crate) fn can_answer(&self, root: &Root) -> bool {
        root.is_live()
            || root.answers().failed.contains_key(self.recorded)
            || root.exists(self.recorded)
    }

    /// Returns the program's output, or its recorded output, or why there is none.
    pub(crate) fn ask(&self, root: &Root, limit: Duration) -> Result<String, Unknown> {
        let Self {
            program,
            arguments,
            recorded,
        } = *self;
        answered(root, program, recorded, || {
            let path = if program.starts_with('/') {
                Some(program.to_owned())
            } else {
                find(root, program)
            };
            match path {
                Some(path) => output(&path, arguments, limit),
                None => Err(Unknown::new(
                    Reason::ToolMissing,
                    format!("{program} is not installed"),
                )),
            }
        })
    }
}

/// Finds a program in the directories for administrative programs.
fn find(root: &Root, name: &str) -> Option<String> {
    ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
        .iter()
        .map(|directory| format!("{directory}/{name}"))
        .find(|path| root.exists(Path::new(path)))
}

/// Returns the result of `query` on a live system, or the recorded output.
pub(crate) fn answered(
    root: &Root,
    program: &str,
    recorded: &str,
    ask: impl FnOnce() -> Result<String, Unknown>,
) -> Result<String, Unknown> {
    if !root.is_live() {
        if let Some(Fact::Unknown(unknown)) = root.answers().failed.get(recorded) {
            return Err(unknown.clone());
        }
        return root.text(recorded).map_err(|_| {
            Unknown::new(
                Reason::ToolMissing,
                format!("`{program}` was not run when this system was recorded"),
            )
        });
    }
    let asked = ask();
    if let Some(recorder) = root.recorder() {
        match &asked {
            Ok(answer) => recorder.file(Path::new(recorded), answer.as_bytes()),
            Err(unknown) => recorder.answer(|answers| {
                answers
                    .failed
                    .insert(recorded.to_owned(), Fact::Unknown(unknown.clone()));
            }),
        }
    }
    asked
}

/// The result of waiting for some output of a program.
#[derive(Debug)]
pub(crate) enum Output {
    /// The output appeared after this time.
    Seen(Duration),
    /// The output did not appear before the timeout.
    TimedOut,
    /// The program exited without it, with this message.
    Exited(String),
}

/// Runs a program until some output appears, or until the timeout; then kills it.
pub(crate) fn until(
    program: &str,
    arguments: &[&str],
    awaited: &'static str,
    limit: Duration,
) -> Result<Output, Unknown> {
    let began = Instant::now();
    let mut command = quiet(program, arguments);
    let mut child = command.spawn().map_err(|error| obstacle(program, &error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let complaints = std::thread::spawn(move || text(stderr));
    let heard = within(limit, move || hears(stdout, awaited));
    let took = began.elapsed();
    // It may already have exited; that is fine.
    let _ = child.kill();
    let _ = child.wait();
    match heard {
        Ok(true) => Ok(Output::Seen(took)),
        Ok(false) => {
            let said = complaints.join().unwrap_or_default();
            let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
            let first = lines
                .find(|line| !line.contains("warning:"))
                .unwrap_or_default();
            // Messages begin with the name of the program.
            let name = Path::new(program)
                .file_name()
                .and_then(|name| name.to_str());
            let after = name.and_then(|name| first.strip_prefix(name)?.strip_prefix(": "));
            Ok(Output::Exited(shortened(after.unwrap_or(first))))
        }
        Err(WaitError::Timeout | WaitError::Panicked) => Ok(Output::TimedOut),
    }
}

/// Returns true if a text appears in a stream before its end.
fn hears(stream: Option<impl Read>, awaited: &str) -> bool {
    let Some(mut stream) = stream else {
        return false;
    };
    let mut said = Vec::new();
    let mut buffer = [0; 256];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
        }
        if said
            .windows(awaited.len())
            .any(|part| part == awaited.as_bytes())
        {
            return true;
        }
    }
}

/// Returns a command with a clean environment, whose output is read.
fn quiet(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        // LVM warns about every inherited file descriptor.
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns the output of a program, or why there is none; kills it after the timeout.
pub(crate) fn output(
    program: &str,
    arguments: &[&str],
    limit: Duration,
) -> Result<String, Unknown> {
    let mut command = quiet(program, arguments);
    let mut child = command.spawn().map_err(|error| obstacle(program, &error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let complaints = std::thread::spawn(move || text(stderr));
    let Ok(printed) = within(limit, move || text(stdout)) else {
        // It may already have exited; that is fine.
        let _ = child.kill();
        let _ = child.wait();
        return Err(Unknown::new(
            Reason::Timeout,
            format!("{program} took longer than {} s", limit.as_secs()),
        ));
    };
    let status = child.wait().map_err(|error| obstacle(program, &error))?;
    if status.success() {
        return Ok(printed);
    }
    let said = complaints.join().unwrap_or_default();
    let first = said
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let reason = if said.to_lowercase().contains("permission denied") {
        Reason::Permission
    } else {
        Reason::ToolMissing
    };
    Err(Unknown::new(
        reason,
        format!("{program} failed ({status}): {}", shortened(first)),
    ))
}

fn text(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        // Keep the output before an error.
        let _ = stream.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let unknown = output("/bin/sleep", &["30"], Duration::from_millis(50)).unwrap_err();
        assert_eq!(unknown.reason(), &Reason::Timeout);
    }

    #[test]
    fn waiting_ends_when_the_output_appears_or_the_timeout_expires() {
        let run = |script: &str| {
            until(
                "/bin/sh",
                &["-c", script],
                "done\n",
                Duration::from_millis(500),
            )
            .unwrap()
        };
        assert!(matches!(run("echo done; sleep 30"), Output::Seen(_)));
        assert!(matches!(run("exec sleep 30"), Output::TimedOut));
        match run("echo 'a warning: x' >&2; echo 'no such thing' >&2; echo don") {
            Output::Exited(complaint) => assert_eq!(complaint, "no such thing"),
            other @ (Output::Seen(_) | Output::TimedOut) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_missing_or_failing_program_is_an_error() {
        assert!(output("/nonexistent/program", &[], Duration::from_secs(5)).is_err());
        let unknown = output(
            "/bin/sh",
            &[
                "-c",
                "echo '/run/lock: open failed: Permission denied' >&2; exit 5",
            ],
            Duration::from_secs(5),
        );
        let unknown = unknown.unwrap_err();
        assert_eq!(unknown.reason(), &Reason::Permission);
        assert!(unknown.detail().contains("open failed"), "{unknown}");
        assert_eq!(
            output("/bin/sh", &["-c", "echo fine"], Duration::from_secs(5)),
            Ok("fine\n".to_owned())
        );
        assert_eq!(
            output("/bin/cat", &[], Duration::from_secs(5)),
            Ok(String::new()),
            "its standard input is empty"
        );
    }
}
