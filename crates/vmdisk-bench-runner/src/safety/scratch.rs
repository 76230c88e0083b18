//! The fresh directory that a run's images are in.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};

use super::node::plain;

/// How the names of such directories begin.
const PREFIX: &str = "vmdisk-bench-";

/// Most that has to stay free: 5 %, and of a large file system no more than this.
const MOST_KEPT: u64 = 1 << 30;

/// The file in each by whose lock it is known whether its run still lives.
const OWNER: &str = ".owner";

/// How old a directory without that file is at least, if it was left behind.
const FIRST_MOMENT: Duration = Duration::from_secs(60);

/// Why there is no directory to measure in.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The directory to make it in cannot be used.
    #[error("{}: {problem}", path.display())]
    Unusable {
        /// The directory, or the file in it.
        path: PathBuf,
        /// What the system says.
        problem: String,
    },
    /// There is not enough room.
    #[error("{} has {free_bytes} bytes free, and this run needs {needed_bytes} twice over and {kept_bytes} left", path.display())]
    Full {
        /// The directory.
        path: PathBuf,
        /// Bytes that are free for this user.
        free_bytes: u64,
        /// Bytes that all images of the run take.
        needed_bytes: u64,
        /// Bytes that stay free for everybody else.
        kept_bytes: u64,
    },
}

impl ScratchError {
    fn new(path: &Path, error: &io::Error) -> Self {
        ScratchError::Unusable {
            path: path.to_owned(),
            problem: plain(error),
        }
    }
}

/// A directory that the run made and that nobody else may enter; it goes with all it holds when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Device and inode: what is taken away is what was made.
    identity: (u64, u64),
    _owner: File,
}

impl Scratch {
    /// Makes a directory in `parent`, if that has room for the images and some more.
    ///
    /// # Errors
    /// If there is not enough room, or nothing can be made there.
    pub fn create(parent: &Path, needed_bytes: u64) -> Result<Self, ScratchError> {
        let failed = |error: io::Error| ScratchError::new(parent, &error);
        let parent = fs::canonicalize(parent).map_err(failed)?;
        let room = rustix::fs::statvfs(&parent)
            .map_err(|error| ScratchError::new(&parent, &error.into()))?;
        let free_bytes = room.f_bavail.saturating_mul(room.f_frsize);
        let kept_bytes = (room.f_blocks / 20)
            .saturating_mul(room.f_frsize)
            .min(MOST_KEPT);
        let wanted_bytes = needed_bytes.saturating_mul(2).saturating_add(kept_bytes);
        if free_bytes < wanted_bytes && needed_bytes > 0 {
            return Err(ScratchError::Full {
                path: parent,
                free_bytes,
                needed_bytes,
                kept_bytes,
            });
        }
        let path = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&parent)
            .map_err(|error| ScratchError::new(&parent, &error))?
            .keep();
        let made = (|| {
            let owner = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path.join(OWNER))?;
            rustix::fs::flock(&owner, FlockOperation::NonBlockingLockExclusive)?;
            Ok((owner, identity(&path)?))
        })();
        match made {
            Ok((owner, identity)) => Ok(Self {
                path,
                identity,
                _owner: owner,
            }),
            Err(error) => {
                let _ = fs::remove_dir_all(&path);
                Err(ScratchError::new(&path, &error))
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file that was not there; never opens one that was.
    ///
    /// # Errors
    /// If there is such a file, or it cannot be made.
    pub fn new_file(&self, name: &str) -> Result<(PathBuf, File), ScratchError> {
        let path = self.path.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(|error| ScratchError::new(&path, &error))?;
        Ok((path, file))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Somebody who put another directory in its place keeps that.
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Removes what runs that were killed left in a directory, and says what it was.
pub fn clear_left_over(parent: &Path) -> Vec<PathBuf> {
    let mut cleared = Vec::new();
    let us = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && fs::symlink_metadata(&path)
                .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == us);
        if !is_ours {
            continue;
        }
        let owner = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path.join(OWNER));
        let Ok(owner) = owner else {
            // A run may be about to put it there, unless it was killed before it could.
            let is_old = fs::symlink_metadata(&path)
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > FIRST_MOMENT));
            // Only an empty directory goes.
            if is_old && fs::remove_dir(&path).is_ok() {
                cleared.push(path);
            }
            continue;
        };
        let is_dead = rustix::fs::flock(&owner, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_dead && fs::remove_dir_all(&path).is_ok() {
            cleared.push(path);
        }
    }
    cleared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_with_its_run_and_no_file_is_opened_that_was_there() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path(), 1).unwrap();
        let (path, _) = scratch.new_file("a.raw").unwrap();
        assert!(scratch.new_file("a.raw").is_err(), "it is there");
        std::os::unix::fs::symlink("/etc/hostname", scratch.path().join("b.raw")).unwrap();
        assert!(scratch.new_file("b.raw").is_err(), "it is a link");
        assert!(path.is_file());
        assert!(clear_left_over(parent.path()).is_empty(), "its run lives");
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_cleared_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let left = Scratch::create(parent.path(), 1).unwrap();
        let path = left.path().to_owned();
        left.new_file("a.raw").unwrap();
        let Scratch { _owner, .. } = &left;
        rustix::fs::flock(_owner, FlockOperation::Unlock).unwrap();
        std::mem::forget(left);
        fs::create_dir(parent.path().join("vmdisk-bench-notes")).unwrap();
        fs::write(parent.path().join("vmdisk-bench-notes/mine"), "x").unwrap();
        assert_eq!(clear_left_over(parent.path()), [path]);
        assert!(parent.path().join("vmdisk-bench-notes/mine").exists());
    }

    #[test]
    fn too_much_is_refused_before_anything_is_made() {
        let parent = tempfile::tempdir().unwrap();
        let error = Scratch::create(parent.path(), u64::MAX / 4).unwrap_err();
        assert!(matches!(error, ScratchError::Full { .. }), "{error}");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_was_put_in_its_place_is_not_taken_away() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path(), 0).unwrap();
        let path = scratch.path().to_owned();
        fs::rename(&path, parent.path().join("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("mine"), "x").unwrap();
        drop(scratch);
        assert!(path.join("mine").exists());
    }
}
