//! Runs steps, and removes what this run made if one of them fails.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use vmdisk::model::Bytes;
use vmdisk::plan::{Step, StepKind};

use super::state::{command, output, succeeds};
use crate::io::Io;
use crate::sanitize;
use crate::stop::plain;

/// The steps of a run.
pub(super) struct Run<'s> {
    is_stopped: Arc<AtomicBool>,
    made: Vec<&'s Step>,
}

/// Why a step was not done.
pub(super) enum Failure {
    /// Something took the name meanwhile.
    Refused(String),
    /// Its command failed, or a signal stopped it.
    Failed(String),
}

/// Time between two messages about a step that is still running.
const PROGRESS: Duration = Duration::from_secs(5);

impl<'s> Run<'s> {
    pub(super) fn new() -> Self {
        // Images are for root and the hypervisor; other users must not read them.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let is_stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let _ = signal_hook::flag::register(signal, Arc::clone(&is_stopped));
        }
        Run {
            is_stopped,
            made: Vec::new(),
        }
    }

    /// Runs the command of a step.
    pub(super) fn step(&mut self, step: &'s Step, io: &mut Io<'_>) -> Result<(), Failure> {
        let made = step.makes();
        if step.makes_file() {
            // Whoever takes the name between the checks and now keeps it: `qemu-img create` would overwrite the file.
            let mut options = fs::OpenOptions::new();
            let claimed = options.write(true).create_new(true).mode(0o600).open(&made);
            match claimed {
                Ok(_) => self.made.push(step),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let message = format!("{made} exists, and nothing is overwritten");
                    return Err(Failure::Refused(message));
                }
                Err(error) => {
                    return Err(Failure::Failed(format!("{made}: {}", plain(&error))));
                }
            }
        }
        self.command(step, io).map_err(Failure::Failed)?;
        if step.makes_named().is_some() {
            self.made.push(step);
        }
        Ok(())
    }

    fn command(&self, step: &Step, io: &mut Io<'_>) -> Result<(), String> {
        let program = &step.argv[0];
        let of_program = |error: std::io::Error| format!("{program}: {}", plain(&error));
        let mut command = command(&step.argv);
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(of_program)?;
        let mut shown = Instant::now();
        let status = loop {
            if self.is_stopped.load(Ordering::Relaxed) {
                let _ = child.kill();
                let _ = child.wait();
                return Err("a signal stopped it".to_owned());
            }
            if let Some(status) = child.try_wait().map_err(of_program)? {
                break status;
            }
            if shown.elapsed() >= PROGRESS {
                shown = Instant::now();
                let made = step.makes();
                let blocks = |path| fs::metadata(path).map_or(0, |it| it.blocks());
                let so_far = Bytes(step.files().map(blocks).sum::<u64>() * 512).rounded();
                io.say(&format!("{}: {so_far} so far\n", sanitize::line(&made)));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if status.success() {
            return Ok(());
        }
        let mut said = Vec::new();
        if let Some(mut stderr) = child.stderr.take() {
            let _ = stderr.read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said);
        Err(format!("{program} fails: {}", said.trim()))
    }

    /// Removes what this run made, the last first; returns what was removed, and what could not be.
    pub(super) fn undo(self) -> (Vec<String>, Vec<String>) {
        let (mut removed, mut left) = (Vec::new(), Vec::new());
        for step in self.made.into_iter().rev() {
            let made = step.makes();
            // The removal of a pool would remove volumes that others made in it meanwhile.
            let count = || output(&["lvs", "--noheadings", "-o", "thin_count", "--", &made]);
            let is_in_use =
                step.kind == StepKind::ThinPool && count().is_none_or(|it| it.trim() != "0");
            let undo = || succeeds(&step.undo());
            let is_removed = !is_in_use && undo();
            if is_removed { &mut removed } else { &mut left }.push(made);
        }
        (removed, left)
    }
}
