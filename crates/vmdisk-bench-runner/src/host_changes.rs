//! Changes of a run to the host, reverted by the run itself, or by the next one if the run was killed.
//!
//! Each change is on disk before it is made, in a file under [`FOLDER`] that is locked as long as its run lives.
//! [`take_back_left_over`] takes back what is in files that nobody holds. The folder is in memory, as settings are:
//! neither outlasts a boot. Volumes do, and are found by their tag.

mod change;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};

pub(crate) use change::volume;
pub use change::{Change, QueueSetting};

use crate::Error;

/// Where journals of changes are.
pub const FOLDER: &str = "/run/vmdisk-bench";

/// Begins the name of everything that a run makes on a host outside its own directory.
pub const PREFIX: &str = "vmdisk-bench-";

/// The changes of one run.
#[derive(Debug)]
pub struct HostChanges {
    path: PathBuf,
    file: File,
    made: Vec<Change>,
}

/// The outcome of reverting changes.
#[derive(Debug, Default)]
pub struct TakenBack {
    /// Reverted changes.
    pub done: Vec<String>,
    /// Changes that could not be reverted, with the reason; their journal is kept.
    pub failed: Vec<String>,
}

impl HostChanges {
    /// Begins a journal in a folder that only its owner may enter.
    ///
    /// # Errors
    /// If it cannot be made, or belongs to somebody else.
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
        unreachable!("a folder has fewer files than there are numbers")
    }

    /// Writes down a change, and makes it.
    ///
    /// # Errors
    /// If it can be neither written down nor made.
    pub fn make(&mut self, change: Change) -> Result<(), Error> {
        change.check()?;
        let mut line = serde_json::to_string(&change)
            .expect("a change holds only text, numbers and maps with text as keys");
        line.push('\n');
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(|error| Error::io("append to", &self.path, error))?;
        // It counts as made from here on: half of it may be.
        self.made.push(change);
        self.made.last().expect("it was put there").make()
    }

    /// Takes back the last changes until `count` are left.
    ///
    /// # Errors
    /// If one cannot be taken back; it stays in the journal, and earlier ones are not tried.
    pub fn take_back_to(&mut self, count: usize) -> Result<(), Error> {
        while self.made.len() > count {
            let last = self.made.last().expect("there are more than none");
            last.take_back()?;
            self.made.pop();
        }
        Ok(())
    }

    /// Takes back the last change that is meant, wherever it is among the others; nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be taken back; it stays in the journal.
    pub(crate) fn take_back_one(
        &mut self,
        is_meant: impl Fn(&Change) -> bool,
    ) -> Result<(), Error> {
        if let Some(place) = self.made.iter().rposition(is_meant) {
            self.made[place].take_back()?;
            self.made.remove(place);
        }
        Ok(())
    }

    /// How many changes are in force.
    pub fn len(&self) -> usize {
        self.made.len()
    }

    /// True if nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Takes back everything, and forgets the journal if that worked.
    pub fn take_back(mut self) -> TakenBack {
        self.undo()
    }

    fn undo(&mut self) -> TakenBack {
        let made = std::mem::take(&mut self.made);
        let taken_back = undo_all(&made);
        if taken_back.failed.is_empty() {
            let _ = fs::remove_file(&self.path);
            if let Some(folder) = self.path.parent() {
                // The last run leaves nothing; while others are there, it stays.
                let _ = fs::remove_dir(folder);
            }
        }
        taken_back
    }
}

impl Drop for HostChanges {
    fn drop(&mut self) {
        // What fails stays in the journal, for the next start to say.
        let _ = self.undo();
    }
}

fn undo_all(made: &[Change]) -> TakenBack {
    let mut taken_back = TakenBack::default();
    for change in made.iter().rev() {
        match change.take_back() {
            Ok(true) => taken_back.done.push(change.to_string()),
            // It is unchanged, or was never made.
            Ok(false) => {}
            Err(error) => taken_back.failed.push(format!("{change}: {error}")),
        }
    }
    taken_back
}

/// Takes back what runs changed that were killed.
pub fn take_back_left_over(folder: &Path) -> TakenBack {
    let mut all = TakenBack::default();
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
            // Its run lives.
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
            // A line without its end was being written when the run was killed, so its change was not made yet.
            if !line.ends_with('\n') {
                continue;
            }
            match serde_json::from_str::<Change>(line) {
                Ok(change) if change.check().is_ok() => changes.push(change),
                _ => {
                    is_understood = false;
                    all.failed.push(format!(
                        "{}: '{}' is not understood",
                        path.display(),
                        line.trim()
                    ));
                }
            }
        }
        let TakenBack { done, failed } = undo_all(&changes);
        if failed.is_empty() && is_understood {
            let _ = fs::remove_file(&path);
        }
        all.done.extend(done);
        all.failed.extend(failed);
    }
    // The last run leaves nothing; others may be there, and then it stays.
    let _ = fs::remove_dir(folder);
    all
}

/// Refuses a folder that others may write to: what is in it is done as root.
fn trusted(folder: &Path) -> Result<(), Error> {
    let metadata =
        fs::symlink_metadata(folder).map_err(|error| Error::io("look at", folder, error))?;
    if !metadata.is_dir()
        || metadata.uid() != rustix::process::geteuid().as_raw()
        || metadata.mode() & 0o022 != 0
    {
        return Err(Error::Refused {
            what: format!("to use {}", folder.display()),
            why: "it is not a folder of this user's alone".to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_may_write_to_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("state");
        drop(HostChanges::begin(&folder).unwrap());
        assert!(!folder.exists(), "no change, no file");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(HostChanges::begin(&folder).is_err());
        assert_eq!(take_back_left_over(&folder).failed.len(), 1);
    }

    #[test]
    fn a_journal_that_is_not_understood_is_kept_and_said() {
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
        let TakenBack { done, failed } = take_back_left_over(&folder);
        assert_eq!(done, Vec::<String>::new());
        assert_eq!(failed.len(), 2, "{failed:?}");
        assert!(folder.join("1-0.jsonl").exists());
    }
}
