//! The fresh directory that a run's images are in.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};

use super::node::plain;
use crate::report::bytes;

/// How the names of such directories begin.
const PREFIX: &str = "vmdisk-bench-";

/// Most that has to stay free: 5 %, and of a large file system no more than this.
const MOST_KEPT: u64 = 1 << 30;

/// The file in each by whose lock it is known whether its run still lives.
const OWNER: &str = ".owner";

/// How old a directory without that file is at least, if it was left behind.
const FIRST_MOMENT: Duration = Duration::from_secs(60);

/// The reason why no directory could be made.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The directory to make it in cannot be used.
    #[error("{}: {problem}", path.display())]
    Unusable {
        /// The directory, or the file in it.
        path: PathBuf,
        /// The system's message.
        problem: String,
    },
    /// There is not enough room.
    #[error(
        "{} has {} free; the images of this run take {} there, and {} stay free",
        path.display(), bytes(*free_bytes), bytes(*needed_bytes), bytes(*kept_bytes)
    )]
    Full {
        /// The directory.
        path: PathBuf,
        /// Bytes that are free for this user.
        free_bytes: u64,
        /// Bytes that all images of the run on this file system take.
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
    /// Device and inode: only the created directory is removed.
    identity: (u64, u64),
    _owner: File,
}

impl Scratch {
    /// Makes a directory in `parent`.
    ///
    /// # Errors
    /// If nothing can be made there.
    pub fn create(parent: &Path) -> Result<Self, ScratchError> {
        let failed = |error: io::Error| ScratchError::new(parent, &error);
        let parent = fs::canonicalize(parent).map_err(failed)?;
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

/// Checks that the file systems of some directories have room for what each is to hold.
///
/// # Errors
/// The first file system without enough room, or a directory that cannot be read.
pub fn check_room(needs: &[(PathBuf, u64)]) -> Result<(), ScratchError> {
    let mut by_device: BTreeMap<u64, (&Path, u64)> = BTreeMap::new();
    for (path, bytes) in needs {
        let metadata = fs::metadata(path).map_err(|error| ScratchError::new(path, &error))?;
        let need = by_device.entry(metadata.dev()).or_insert((path, 0));
        need.1 = need.1.saturating_add(*bytes);
    }
    for (path, needed_bytes) in by_device.into_values() {
        let room =
            rustix::fs::statvfs(path).map_err(|error| ScratchError::new(path, &error.into()))?;
        let free_bytes = room.f_bavail.saturating_mul(room.f_frsize);
        let kept_bytes = (room.f_blocks / 20)
            .saturating_mul(room.f_frsize)
            .min(MOST_KEPT);
        if free_bytes < needed_bytes.saturating_add(kept_bytes) && needed_bytes > 0 {
            return Err(ScratchError::Full {
                path: path.to_owned(),
                free_bytes,
                needed_bytes,
                kept_bytes,
            });
        }
    }
    Ok(())
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
        let scratch = Scratch::create(parent.path()).unwrap();
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
        let left = Scratch::create(parent.path()).unwrap();
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
    fn directories_of_one_file_system_share_its_room() {
        let parent = tempfile::tempdir().unwrap();
        let directories = ["a", "b"].map(|name| parent.path().join(name));
        for directory in &directories {
            fs::create_dir(directory).unwrap();
        }
        let room = rustix::fs::statvfs(parent.path()).unwrap();
        let free = room.f_bavail * room.f_frsize;
        let kept = (room.f_blocks / 20 * room.f_frsize).min(MOST_KEPT);
        let each = free.saturating_sub(kept) * 2 / 3;
        assert!(each > 0, "this test needs some room");
        let [a, b] = directories;
        check_room(&[(a.clone(), each)]).unwrap();
        let error = check_room(&[(a, each), (b, each)]).unwrap_err();
        assert!(matches!(error, ScratchError::Full { .. }), "{error}");
        assert!(error.to_string().contains("iB there"), "{error}");
        assert!(check_room(&[(parent.path().join("no"), 1)]).is_err());
    }

    #[test]
    fn a_directory_that_was_put_in_its_place_is_not_taken_away() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let path = scratch.path().to_owned();
        fs::rename(&path, parent.path().join("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("mine"), "x").unwrap();
        drop(scratch);
        assert!(path.join("mine").exists());
    }
}
