//! `--try-qemu`: starts a QEMU with the disks of a configuration, on images that stand for its own.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vmdisk::trial::{StandIn, Trial, Tried};
use vmdisk::{Document, Severity, Target};
use vmdisk_qmp::{Launch, QmpError};

use crate::qemu;
use crate::stop::{Stop, plain};

/// Longest wait for a start; an idle machine needs a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a QEMU is started again without what it refused.
const MOST_STARTS: usize = 50;

/// The QEMU to try on.
pub(crate) struct Tester {
    program: PathBuf,
    /// What it said that it can do.
    target: Target,
}

impl Tester {
    /// Asks the program what it is.
    pub(crate) fn new(path: &Path) -> Result<Self, Stop> {
        let program = qemu::find(path)?;
        let introspection = qemu::ask_program(&program)?;
        Ok(Tester {
            program,
            target: introspection.target(),
        })
    }

    /// What it says to the disks of a document.
    pub(crate) fn run(&self, document: &Document) -> Result<Tried, String> {
        let version = self
            .target
            .qemu
            .map_or_else(String::new, |version| format!(" {version}"));
        let mut tried = Tried {
            qemu: format!("QEMU{version}"),
            ..Tried::default()
        };
        let folder = tempfile::tempdir().map_err(|error| plain(&error))?;
        let Some(path) = folder.path().to_str() else {
            return Err("the folder for temporary files has an odd name".to_owned());
        };
        let trial = Trial::new(document.domain(), &self.target, path);
        tried.not_tried.clone_from(&trial.not_tried);
        if !trial.is_possible() {
            return Ok(tried);
        }
        for stand_in in &trial.stand_ins {
            make(stand_in).map_err(|error| plain(&error))?;
        }
        let mut without = Vec::new();
        for _ in 0..MOST_STARTS {
            match self.start(&trial, &without) {
                Ok(said) => {
                    let warnings = said.lines().filter_map(|line| trial.understand(line));
                    tried.said.extend(warnings.map(|(said, _)| said));
                    break;
                }
                Err(QmpError::Ended { status, said }) => {
                    let understood: Vec<_> = said
                        .lines()
                        .filter_map(|line| trial.understand(line))
                        .collect();
                    let is_error = |severity| severity == Severity::Error;
                    let errors = understood
                        .iter()
                        .filter(|(said, _)| is_error(said.severity));
                    let numbers: Vec<usize> =
                        errors.clone().filter_map(|(_, number)| *number).collect();
                    let had_words = errors.count() > 0;
                    for (said, _) in understood {
                        if is_error(said.severity) && !tried.said.contains(&said) {
                            tried.said.push(said);
                        }
                    }
                    let disks = trial.disks();
                    let refused = numbers
                        .iter()
                        .find(|number| disks.contains(number))
                        .copied();
                    let culprit = refused.or_else(|| match had_words {
                        true => None,
                        false => self.culprit(&trial, &without),
                    });
                    if !had_words {
                        let how = status.map_or_else(
                            || "it ends without a word".to_owned(),
                            |status| format!("it ends ({status}) without a word"),
                        );
                        tried.said.push(trial.died(culprit, &how));
                    }
                    match culprit {
                        Some(number) => without.push(number),
                        None => break,
                    }
                }
                Err(error) => {
                    tried.said.push(trial.died(None, &error.to_string()));
                    break;
                }
            }
        }
        Ok(tried)
    }

    fn start(&self, trial: &Trial, without: &[usize]) -> Result<String, QmpError> {
        let launch = Launch::paused(&self.program).args(trial.words(without));
        let qemu = launch.patience(PATIENCE).start()?;
        Ok(qemu.end())
    }

    /// The disk without which QEMU does not die.
    fn culprit(&self, trial: &Trial, without: &[usize]) -> Option<usize> {
        let others = trial
            .disks()
            .into_iter()
            .filter(|number| !without.contains(number));
        others.take(MOST_STARTS).find(|number| {
            let mut without = without.to_vec();
            without.push(*number);
            self.start(trial, &without).is_ok()
        })
    }
}

fn make(stand_in: &StandIn) -> std::io::Result<()> {
    let mut file = File::create_new(&stand_in.path)?;
    file.write_all(&stand_in.head)?;
    file.set_len(stand_in.bytes)
}
