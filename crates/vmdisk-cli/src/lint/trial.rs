//! `--try-qemu`: starts a QEMU with the disks of a configuration, on replacement images.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use vmdisk::trial::{QemuTrialOutcome, StandIn, Trial};
use vmdisk::write::StorageDaemon;
use vmdisk::{Document, Severity, Target};
use vmdisk_qmp::{Launch, QmpError};

use crate::atomic::interrupt;
use crate::qemu::{self, in_words};
use crate::stop::{Stop, plain};

/// Longest wait for a start; an idle machine needs a tenth of a second.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often a QEMU is started again without what it refused.
const MAX_STARTS: usize = 50;

const SANDBOX: &[&str] = &["-sandbox", "on"];

/// The QEMU to try on.
pub(crate) struct Tester {
    program: PathBuf,
    /// Serves vhost-user disks, if it is there.
    storage_daemon: Option<PathBuf>,
    /// Its reported capabilities.
    target: Target,
    /// The options that deny it the system calls that it does not need; none if it was built without seccomp, or the kernel
    /// was.
    sandbox: &'static [&'static str],
}

impl Tester {
    /// Asks the program what it is.
    pub(crate) fn new(path: &Path) -> Result<Self, Stop> {
        let program = qemu::find(path)?;
        let introspection = qemu::ask_program(&program)?;
        let empty = Launch::paused(&program).args(["-nodefaults", "-machine", "none"]);
        let starts = empty.args(SANDBOX).timeout(TIMEOUT).start().is_ok();
        Ok(Tester {
            sandbox: if starts { SANDBOX } else { &[] },
            storage_daemon: beside(&program, StorageDaemon::PROGRAM),
            program,
            target: introspection.target(),
        })
    }

    /// Its messages about the disks of a document.
    pub(crate) fn run(&self, document: &Document) -> Result<QemuTrialOutcome, String> {
        let version = self
            .target
            .qemu
            .map_or_else(String::new, |version| format!(" {version}"));
        let without = match self.sandbox {
            [] => " without its sandbox",
            _ => "",
        };
        let mut outcome = QemuTrialOutcome::default();
        outcome.qemu = format!("QEMU{version}{without}");
        let folder =
            interrupt::create(tempfile::tempdir, TempDir::path).map_err(|error| plain(&error))?;
        let Some(path) = folder.path().to_str() else {
            return Err(
                "the name of the directory for temporary files is not valid UTF-8".to_owned(),
            );
        };
        let has_daemon = self.storage_daemon.is_some();
        let trial =
            Trial::new(document.domain(), &self.target, path, has_daemon).with_locks_of(document);
        outcome.not_tried.clone_from(&trial.not_tried);
        if !trial.is_possible() {
            return Ok(outcome);
        }
        for stand_in in &trial.stand_ins {
            make(stand_in).map_err(|error| plain(&error))?;
        }
        let daemons = trial.daemons.iter().map(|daemon| self.serve(daemon));
        let _daemons = daemons.collect::<Result<Vec<Daemon>, String>>()?;
        let mut without = Vec::new();
        for _ in 0..MAX_STARTS {
            match self.start(&trial, &without) {
                Ok(output) => {
                    let warnings = output.lines().filter_map(|line| trial.understand(line));
                    outcome
                        .messages
                        .extend(warnings.map(|(message, _)| message));
                    break;
                }
                Err(QmpError::Ended { status, stderr }) => {
                    match self.refused(&trial, &without, &mut outcome, status, &stderr) {
                        Some(number) => without.push(number),
                        None => break,
                    }
                }
                Err(error) => {
                    outcome.messages.push(trial.ended(None, &in_words(&error)));
                    break;
                }
            }
        }
        Ok(outcome)
    }

    /// Records the messages of a QEMU that ended, and returns the disk to leave out of the next start.
    fn refused(
        &self,
        trial: &Trial,
        without: &[usize],
        outcome: &mut QemuTrialOutcome,
        status: Option<ExitStatus>,
        stderr: &str,
    ) -> Option<usize> {
        let disks = trial.disks();
        let mut refused = None;
        let mut has_error = false;
        let understood = stderr.lines().filter_map(|line| trial.understand(line));
        for (message, number) in
            understood.filter(|(message, _)| message.severity == Severity::Error)
        {
            has_error = true;
            refused = refused.or(number.filter(|number| disks.contains(number)));
            if !outcome.messages.contains(&message) {
                outcome.messages.push(message);
            }
        }
        if has_error {
            return refused;
        }
        let culprit = self.culprit(trial, without);
        let how = status.map_or_else(
            || "it ends without a message".to_owned(),
            |status| format!("it ends ({status}) without a message"),
        );
        outcome.messages.push(trial.ended(culprit, &how));
        culprit
    }

    /// Starts a daemon and waits until it listens.
    fn serve(&self, daemon: &StorageDaemon) -> Result<Daemon, String> {
        let Some(program) = &self.storage_daemon else {
            return Err(format!("there is no {}", StorageDaemon::PROGRAM));
        };
        let words = daemon.argv();
        let child = Command::new(program)
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| plain(&error))?;
        let mut process = Daemon(child);
        let begun = Instant::now();
        while !Path::new(&daemon.socket).exists() {
            let is_over = !matches!(process.0.try_wait(), Ok(None));
            if is_over || begun.elapsed() > TIMEOUT {
                return Err(format!(
                    "the {} that replaces a daemon of the guest does not serve",
                    StorageDaemon::PROGRAM
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(process)
    }

    fn start(&self, trial: &Trial, without: &[usize]) -> Result<String, QmpError> {
        let launch = Launch::paused(&self.program)
            .args(self.sandbox)
            .args(trial.words(without));
        let qemu = launch.timeout(TIMEOUT).start()?;
        Ok(qemu.end())
    }

    /// The disk without which QEMU does not die.
    fn culprit(&self, trial: &Trial, without: &[usize]) -> Option<usize> {
        let others = trial
            .disks()
            .into_iter()
            .filter(|number| !without.contains(number));
        others.take(MAX_STARTS).find(|number| {
            let mut without = without.to_vec();
            without.push(*number);
            self.start(trial, &without).is_ok()
        })
    }
}

/// A program of the same QEMU, otherwise the system's.
fn beside(program: &Path, name: &str) -> Option<PathBuf> {
    let sibling = program.with_file_name(name);
    if sibling.is_file() {
        return Some(sibling);
    }
    qemu::find(Path::new(name)).ok()
}

/// A daemon that ends with this value.
#[derive(Debug)]
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only where it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "nobody else can write into the folder"
)]
fn make(stand_in: &StandIn) -> std::io::Result<()> {
    let mut file = File::create_new(&stand_in.path)?;
    file.set_len(stand_in.bytes)?;
    file.seek(SeekFrom::Start(stand_in.offset))?;
    file.write_all(&stand_in.head)
}
