//! Changes of a run to the host, reverted by the run itself, or by the next one if the run was killed.
//!
//! Each change is on disk before it is applied, in a file under [`FOLDER`] that is locked as long as its run is alive.
//! [`revert_left_over`] reverts the changes in unlocked files. The folder is in memory, as settings are:
//! neither survives a reboot. Volumes do, and are found by their tag. Nothing removes the folder: another run may be about
//! to create its journal there.

mod change;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};

pub(crate) use change::volume;
pub use change::{HostChange, PREFIX, QueueSetting};

use crate::Error;

/// The folder of the journals of changes.
pub const FOLDER: &str = "/run/vmdisk-bench";

/// The changes of one run.
#[derive(Debug)]
pub struct HostChanges {
    path: PathBuf,
    file: File,
    made: Vec<HostChange>,
}

/// The outcome of reverting changes.
#[derive(Debug, Default)]
pub struct RevertOutcome {
    /// Reverted changes.
    pub done: Vec<String>,
    /// Changes that could not be reverted, with the reason; their journal is kept.
    pub failed: Vec<String>,
}

impl HostChanges {
    /// Starts a journal in a folder that only its owner may access.
    ///
    /// # Errors
    /// If it cannot be created, or belongs to another user.
    pub fn begin(folder: &Path) -> Result<Self, Error> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("create", folder, error)),
        }
        trusted(folder)?;
        for number in 0_u32.. {
            let path = folder.join(format!("{}-{number}.jsonl", std::process::id()));
            let file = OpenOptions::new()
                .append(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            match file {
                Ok(file) => {
                    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
                        .map_err(|error| Error::io("lock", &path, error.into()))?;
                    return Ok(Self {
                        path,
                        file,
                        made: Vec::new(),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("create", &path, error)),
            }
        }
        unreachable!("a folder has fewer files than u32 has values")
    }

    /// Records a change and applies it.
    ///
    /// # Errors
    /// If it cannot be recorded or applied.
    pub fn make(&mut self, change: HostChange) -> Result<(), Error> {
        change.check()?;
        let mut line = serde_json::to_string(&change)
            .expect("a change holds only text, numbers and maps with text as keys");
        line.push('\n');
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(|error| Error::io("append to", &self.path, error))?;
        // Count it as applied from here on: a failure may have applied a part of it.
        self.made.push(change);
        self.made.last().expect("it was pushed above").make()
    }

    /// Reverts the last changes until `count` are left.
    ///
    /// # Errors
    /// If a change cannot be reverted; it stays in the journal, and earlier ones are not tried.
    pub fn revert_to(&mut self, count: usize) -> Result<(), Error> {
        while self.made.len() > count {
            let last = self.made.last().expect("the length exceeds `count`");
            last.revert()?;
            self.made.pop();
        }
        Ok(())
    }

    /// Reverts the last matching change, wherever it is among the others; does nothing without one.
    ///
    /// # Errors
    /// If it cannot be reverted; it stays in the journal.
    pub(crate) fn revert_one(
        &mut self,
        is_meant: impl Fn(&HostChange) -> bool,
    ) -> Result<(), Error> {
        if let Some(place) = self.made.iter().rposition(is_meant) {
            self.made[place].revert()?;
            self.made.remove(place);
        }
        Ok(())
    }

    /// Returns the number of changes in force.
    pub fn len(&self) -> usize {
        self.made.len()
    }

    /// Returns true if nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Reverts everything, and deletes the journal on success.
    pub fn revert(mut self) -> RevertOutcome {
        self.undo()
    }

    fn undo(&mut self) -> RevertOutcome {
        let made = std::mem::take(&mut self.made);
        let outcome = undo_all(&made);
        if outcome.failed.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
        outcome
    }
}

impl Drop for HostChanges {
    fn drop(&mut self) {
        // A failure stays in the journal, and the next start reports it.
        let _ = self.undo();
    }
}

fn undo_all(made: &[HostChange]) -> RevertOutcome {
    let mut outcome = RevertOutcome::default();
    for change in made.iter().rev() {
        match change.revert() {
            Ok(true) => outcome.done.push(change.to_string()),
            // It was already reverted, or was never applied.
            Ok(false) => {}
            Err(error) => outcome.failed.push(format!("{change}: {error}")),
        }
    }
    outcome
}

/// Reverts the changes of killed runs.
pub fn revert_left_over(folder: &Path) -> RevertOutcome {
    let mut all = RevertOutcome::default();
    let Ok(entries) = fs::read_dir(folder) else {
        return all;
    };
    if let Err(error) = trusted(folder) {
        all.failed.push(error.to_string());
        return all;
    }
    for entry in entries.flatten() {
        let path = entry.path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        let Ok(file) = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
        else {
            continue;
        };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            // Its run is alive.
            continue;
        }
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                all.failed.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        let mut changes = Vec::new();
        let mut is_understood = true;
        for line in text.split_inclusive('\n') {
            // An incomplete line was being written when the run was killed, so its change was not applied.
            if !line.ends_with('\n') {
                continue;
            }
            match serde_json::from_str::<HostChange>(line) {
                Ok(change) if change.check().is_ok() => changes.push(change),
                _ => {
                    is_understood = false;
                    all.failed.push(format!(
                        "{}: `{}` is not a valid change",
                        path.display(),
                        line.trim()
                    ));
                }
            }
        }
        let RevertOutcome { done, failed } = undo_all(&changes);
        if failed.is_empty() && is_understood {
            let _ = fs::remove_file(&path);
        }
        all.done.extend(done);
        all.failed.extend(failed);
    }
    all
}

/// Refuses a folder that others may write to: its contents are executed as root.
fn trusted(folder: &Path) -> Result<(), Error> {
    let metadata =
        fs::symlink_metadata(folder).map_err(|error| Error::io("look at", folder, error))?;
    if !metadata.is_dir()
        || metadata.uid() != rustix::process::geteuid().as_raw()
        || metadata.mode() & 0o022 != 0
    {
        return Err(Error::refused(
            format!("to use {}", folder.display()),
            "it must belong to this user and be writable by no one else",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_may_write_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("state");
        drop(HostChanges::begin(&folder).unwrap());
        fs::remove_dir(&folder).expect("no change, no file");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(HostChanges::begin(&folder).is_err());
        assert_eq!(revert_left_over(&folder).failed.len(), 1);
    }

    #[test]
    fn an_invalid_journal_is_kept_and_reported() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("state");
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        let text = concat!(
            "{\"change\":\"thin-pool\",\"group\":\"vg0\",\"pool\":\"root\",\"volume_bytes\":1,",
            "\"pool_bytes\":1,\"chunk_bytes\":1,\"zero\":true}
nonsense
{\"cut"
        );
        fs::write(folder.join("1-0.jsonl"), text).unwrap();
        let RevertOutcome { done, failed } = revert_left_over(&folder);
        assert_eq!(done, Vec::<String>::new());
        assert_eq!(failed.len(), 2, "{failed:?}");
        assert!(folder.join("1-0.jsonl").exists());
    }
}
