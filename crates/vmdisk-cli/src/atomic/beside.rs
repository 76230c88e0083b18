//! Files that are written beside their target, and what a killed run left of them.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::{Builder, NamedTempFile};

use super::interrupt;
use crate::contents::Contents;

/// How the names begin and end, with six letters or digits between.
const PREFIX: &str = ".vmdisk-";
const SUFFIX: &str = ".tmp";

const WHOLE: &str = "only `persist` and `drop` take the file, at the end";

/// A file beside its target, locked while this run lives.
#[derive(Debug)]
pub(super) struct Beside(Option<NamedTempFile>);

impl Beside {
    /// Creates a file in `directory`, after the files of killed runs are removed from it.
    pub(super) fn new(directory: &Path, mode: Option<u32>) -> io::Result<Self> {
        if is_first_in(directory) {
            remove_abandoned(directory);
        }
        loop {
            let mut builder = Builder::new();
            builder.prefix(PREFIX).suffix(SUFFIX);
            if let Some(mode) = mode {
                builder.permissions(Permissions::from_mode(mode));
            }
            let file = interrupt::create(|| builder.tempfile_in(directory), |file| file.path())?;
            flock(file.as_file(), FlockOperation::LockExclusive)?;
            // Another run may have removed it as abandoned before it was locked.
            let is_named = file.as_file().metadata()?.nlink() > 0;
            let beside = Beside(Some(file));
            if is_named {
                return Ok(beside);
            }
        }
    }

    pub(super) fn write(&mut self, write: impl Contents) -> io::Result<()> {
        let mut out = BufWriter::new(self.file());
        write(&mut out)?;
        out.flush()
    }

    pub(super) fn file(&self) -> &File {
        self.0.as_ref().expect(WHOLE).as_file()
    }

    /// Gives the file the name of its target.
    pub(super) fn persist(mut self, target: &Path) -> io::Result<()> {
        let file = self.0.take().expect(WHOLE);
        let path = file.path().to_owned();
        let named = interrupt::end(&path, || file.persist(target));
        named.map_err(|error| error.error)?;
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            let path = file.path().to_owned();
            interrupt::end(&path, || drop(file));
        }
    }
}

/// True once for each directory: to list it for each of its files would take quadratic time.
fn is_first_in(directory: &Path) -> bool {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.insert(directory.to_owned())
}

/// Removes files that a killed run left in a directory: unlocked files of this user. If that
/// fails, they remain, which is harmless.
fn remove_abandoned(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(is_our_name);
        if is_ours {
            let _ = remove_if_abandoned(&entry.path());
        }
    }
}

fn is_our_name(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
        .is_some_and(|middle| {
            middle.len() == 6 && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

fn remove_if_abandoned(path: &Path) -> io::Result<()> {
    let seen = fs::symlink_metadata(path)?;
    let user = rustix::process::geteuid().as_raw();
    if !seen.is_file() || seen.uid() != user || seen.nlink() != 1 {
        return Ok(());
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    // Refused while the run that writes it lives.
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let (locked, named) = (file.metadata()?, fs::symlink_metadata(path)?);
    if (locked.dev(), locked.ino()) == (named.dev(), named.ino()) {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in [
            ".vmdisk-a1B2c3.tmp",
            ".vmdisk-config",
            ".vmdisk-toolong.tmp",
        ] {
            fs::write(at(name), "half").unwrap();
        }
        std::os::unix::fs::symlink("nowhere", at(".vmdisk-linked.tmp")).unwrap();
        // A run that still writes has its file locked.
        let writing = Beside::new(directory.path(), None).unwrap();
        drop(Beside::new(directory.path(), None).unwrap());
        assert!(!at(".vmdisk-a1B2c3.tmp").exists());
        assert!(at(".vmdisk-config").exists());
        assert!(at(".vmdisk-toolong.tmp").exists());
        assert!(at(".vmdisk-linked.tmp").is_symlink());
        assert!(writing.0.as_ref().unwrap().path().exists());
        writing.persist(&at("target")).unwrap();
        assert!(at("target").exists());
    }
}
