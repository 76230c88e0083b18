//! The first step: starts the others, and reads what they report until the time is up.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::event::{CaptureEvent, FailedStep};
use crate::stage::{MYSELF, SANDBOX, UNBOXED};
use crate::{mounts, recorder};

/// The id of root in the sandbox.
const ORDINARY: u32 = 1000;

/// Bytes of all reports, at most: as many as a file may have that is read.
const MAX_BYTES: usize = 16 << 20;

/// A command, and how it runs.
#[derive(Clone, Debug)]
pub struct CapturePlan {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// How long it may run.
    pub limit: Duration,
    /// False if it runs on the host itself.
    pub is_sandboxed: bool,
    /// Folders that stay visible, besides those of the command.
    pub shown: Vec<PathBuf>,
}

/// How a capture ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All processes have ended: the status of the command, and what failed last of the commands that it ran.
    Alone(i32, Option<String>),
    /// The time was up.
    TimeIsUp,
    /// It started QEMU too often.
    TooMuch,
    /// The command did not run.
    Refused(FailedStep),
}

/// Runs the command, and calls `take` with what happens.
///
/// # Errors
/// If this program cannot start itself.
pub fn capture(plan: &CapturePlan, take: &mut dyn FnMut(CaptureEvent)) -> io::Result<Ended> {
    let current = env::current_dir()?.canonicalize()?;
    let mut step = Command::new(MYSELF);
    // Removed at the end.
    let mut recorders = None;
    if plan.is_sandboxed {
        let shown = shown(plan, &current);
        step.arg0(SANDBOX)
            .arg(&current)
            .arg(shown.len().to_string());
        step.args(&shown);
    } else {
        let recorders = recorders.insert(tempfile::tempdir()?);
        recorder::make(recorders.path())?;
        step.arg0(UNBOXED).arg(recorders.path());
        step.env("PATH", recorder::path_with(recorders.path()));
    }
    step.args(&plan.command).stdout(Stdio::piped());
    if io::stdin().is_terminal() {
        step.stdin(Stdio::null());
    }
    let mut child = step.spawn()?;
    let ended = follow(&mut child, plan, &current, take);
    // Its end is that of all processes that it traces.
    let _ = child.kill();
    child.wait()?;
    ended
}

/// Reads the reports of the other steps.
fn follow(
    child: &mut Child,
    plan: &CapturePlan,
    current: &Path,
    take: &mut dyn FnMut(CaptureEvent),
) -> io::Result<Ended> {
    if plan.is_sandboxed
        && let Err(error) = map_user(child, current)
    {
        return Ok(Ended::Refused(FailedStep::new("map a user into it", error)));
    }
    let output = child.stdout.take().expect("it is piped");
    let (sender, events) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
        let events = lines.filter_map(|line| {
            let event = serde_json::from_slice::<CaptureEvent>(&line).ok()?;
            Some((line.len(), event))
        });
        // The reader has gone when the time is up.
        events
            .map_while(|event| sender.send(event).ok())
            .for_each(drop);
    });
    let end = Instant::now() + plan.limit;
    let mut bytes = 0;
    loop {
        match events.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((_, CaptureEvent::Ended(status, failed))) => {
                return Ok(Ended::Alone(status, failed));
            }
            Ok((_, CaptureEvent::Refused(refusal))) => return Ok(Ended::Refused(refusal)),
            Ok((size, _)) if bytes + size > MAX_BYTES => return Ok(Ended::TooMuch),
            Ok((size, event)) => {
                bytes += size;
                take(event);
            }
            Err(RecvTimeoutError::Timeout) => return Ok(Ended::TimeIsUp),
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait()?;
                return Ok(Ended::Refused(FailedStep::new("run the command", status)));
            }
        }
    }
}

/// Maps one user of the host into the namespace of the next step: oneself. Root becomes the owner of the current folder, so that
/// it reads what its owner reads, and no more; if that is root, then with the number of an ordinary user.
fn map_user(child: &mut Child, current: &Path) -> io::Result<()> {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/user"));
    let id = child.id().to_string();
    let own = namespace("self")?;
    while namespace(&id)? == own {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    }
    let is_root = rustix::process::geteuid().is_root();
    let (user, group) = match is_root {
        true => {
            let owner = fs::metadata(current)?;
            (owner.uid(), owner.gid())
        }
        false => (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        ),
    };
    let inside = |id: u32| if id == 0 { ORDINARY } else { id };
    if !is_root {
        fs::write(format!("/proc/{id}/setgroups"), "deny")?;
    }
    fs::write(
        format!("/proc/{id}/gid_map"),
        format!("{} {group} 1", inside(group)),
    )?;
    fs::write(
        format!("/proc/{id}/uid_map"),
        format!("{} {user} 1", inside(user)),
    )
}

/// The folders that stay visible: the current one, those of files that the command names, and those of PATH. None is in another.
fn shown(plan: &CapturePlan, current: &Path) -> Vec<PathBuf> {
    let files = plan.command.iter().take(2).map(Path::new);
    let files =
        files.filter(|it| it.is_file() && (it.components().count() > 1 || it.is_absolute()));
    let files = files.filter_map(|it| Some(it.canonicalize().ok()?.parent()?.to_owned()));
    let files: Vec<PathBuf> = files.collect();
    let programs = recorder::path()
        .into_iter()
        .filter(|it| mounts::is_hidden(it));
    let asked = plan.shown.iter().cloned().chain(programs);
    let all = asked.filter_map(|it| it.canonicalize().ok()).chain(files);
    let mut all: Vec<PathBuf> = all.chain([current.to_owned()]).collect();
    // Nothing takes writes to `/` itself.
    all.retain(|it| it.is_dir() && it.parent().is_some());
    all.sort();
    all.dedup();
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in all {
        if !kept.iter().any(|it| folder.starts_with(it)) {
            kept.push(folder);
        }
    }
    kept
}
