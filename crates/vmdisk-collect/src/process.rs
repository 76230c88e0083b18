//! Running a program that only reads, when that was asked for.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use vmdisk_facts::{Reason, Unknown};

use crate::obstacle::{obstacle, shortened};
use crate::patience::within;

/// What a program prints, or why there is nothing; it is killed when it takes too long.
pub(crate) fn output(
    program: &str,
    arguments: &[&str],
    limit: Duration,
) -> Result<String, Unknown> {
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
    }
}
