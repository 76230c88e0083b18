//! Running a program that only reads, when that was asked for.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_facts::{Fact, Reason, Unknown};

use crate::obstacle::{obstacle, shortened};
use crate::patience::{GivenUp, within};
use crate::programs;
use crate::root::Root;

/// A program that is asked for something only it knows, and the place of its answer within a recorded system.
pub(crate) struct Deep<'a> {
    /// Its name, or its whole path.
    pub(crate) program: &'a str,
    pub(crate) arguments: &'a [&'a str],
    pub(crate) recorded: &'a str,
}

impl Deep<'_> {
    /// Whether there can be an answer: a recorded system has only those it was asked for.
    pub(crate) fn can_answer(&self, root: &Root) -> bool {
        root.is_live()
            || root.answers().failed.contains_key(self.recorded)
            || root.exists(self.recorded)
    }

    /// What it prints, or printed when the system was recorded; or why there is nothing.
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
                programs::find(root, program)
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

/// What a program answers when it is asked on a live system, or what it answered when the system was recorded.
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
                format!("{program} was not asked when this system was recorded"),
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

/// What became of waiting for a program to say something.
#[derive(Debug)]
pub(crate) enum Said {
    /// It did, after so long.
    It(Duration),
    /// It said nothing of the kind in time.
    Late,
    /// It ended without, and complained so.
    Ended(String),
}

/// Runs a program until it has said something, or for so long; then it is killed in any case.
pub(crate) fn until(
    program: &str,
    arguments: &[&str],
    awaited: &'static str,
    limit: Duration,
) -> Result<Said, Unknown> {
    let began = Instant::now();
    let mut command = quiet(program, arguments);
    let mut child = command.spawn().map_err(|error| obstacle(program, &error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let complaints = std::thread::spawn(move || text(stderr));
    let heard = within(limit, move || hears(stdout, awaited));
    let took = began.elapsed();
    // It may have ended by itself meanwhile, which is as well.
    let _ = child.kill();
    let _ = child.wait();
    match heard {
        Ok(true) => Ok(Said::It(took)),
        Ok(false) => {
            let said = complaints.join().unwrap_or_default();
            let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
            let first = lines
                .find(|line| !line.contains("warning:"))
                .unwrap_or_default();
            // Programs begin with their own name.
            let name = Path::new(program)
                .file_name()
                .and_then(|name| name.to_str());
            let after = name.and_then(|name| first.strip_prefix(name)?.strip_prefix(": "));
            Ok(Said::Ended(shortened(after.unwrap_or(first))))
        }
        Err(GivenUp::Late | GivenUp::Broken) => Ok(Said::Late),
    }
}

/// Whether a stream says something before it ends.
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

/// A program with nothing of this one's surroundings, whose output is read.
fn quiet(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        // LVM complains of every file descriptor it inherited.
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a program prints, or why there is nothing; it is killed when it takes too long.
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
        // It may have ended by itself meanwhile, which is as well.
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
        // What was read before an error is still worth having.
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
        assert_eq!(unknown.reason, Reason::Timeout);
    }

    #[test]
    fn a_program_is_heard_as_soon_as_it_speaks_and_waited_for_no_longer_than_said() {
        let run = |script: &str| {
            until(
                "/bin/sh",
                &["-c", script],
                "done\n",
                Duration::from_millis(500),
            )
            .unwrap()
        };
        assert!(matches!(run("echo done; sleep 30"), Said::It(_)));
        assert!(matches!(run("exec sleep 30"), Said::Late));
        match run("echo 'a warning: x' >&2; echo 'no such thing' >&2; echo don") {
            Said::Ended(complaint) => assert_eq!(complaint, "no such thing"),
            other @ (Said::It(_) | Said::Late) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_program_that_is_not_there_or_fails_says_so() {
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
        assert_eq!(unknown.reason, Reason::Permission);
        assert!(unknown.detail.contains("open failed"), "{}", unknown.detail);
        assert_eq!(
            output("/bin/sh", &["-c", "echo fine"], Duration::from_secs(5)),
            Ok("fine\n".to_owned())
        );
        assert_eq!(
            output("/bin/cat", &[], Duration::from_secs(5)),
            Ok(String::new()),
            "it has nothing to read, and waits for nothing"
        );
    }
}
