//! The fresh directory of a run's images.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};
use vmdisk_source::sanitize::system_message as plain;

use crate::report::bytes;

/// Prefix of the directory names.
const PREFIX: &str = "vmdisk-bench-";

/// Free space that is kept: 5 %, at most this much.
const MAX_KEPT: u64 = 1 << 30;

/// The file in each directory whose lock shows that its run is alive.
const OWNER: &str = ".owner";

/// Minimum age of a directory without that file to be considered left over.
const FIRST_MOMENT: Duration = Duration::from_secs(60);

/// Why a directory could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The parent directory cannot be used.
    #[error("{}: {problem}", path.display())]
    Unusable {
        /// The directory or its file.
        path: PathBuf,
        /// The system's message.
        problem: String,
    },
    /// There is not enough space.
    #[error(
        "{} has {} free; the images of this run need {}, and {} must stay free",
        path.display(), bytes(*free_bytes), bytes(*needed_bytes), bytes(*kept_bytes)
    )]
    Full {
        /// The directory.
        path: PathBuf,
        /// Bytes that are available to this user.
        free_bytes: u64,
        /// Bytes that all images of the run need on this file system.
        needed_bytes: u64,
        /// Bytes that must stay free.
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

/// A private directory created by the run; dropping it removes the directory and its contents.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Device and inode: only the created directory is removed.
    identity: (u64, u64),
    _owner: File,
}

impl Scratch {
    /// Creates a directory in `parent`.
    ///
    /// # Errors
    /// If the directory cannot be created.
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

    /// Creates a file; never opens an existing one.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
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

/// Checks that the file systems of some directories have enough space.
///
/// # Errors
/// The first file system without enough space, or a directory that cannot be read.
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
            .min(MAX_KEPT);
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
        // If the directory was replaced, the replacement is kept.
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Removes directories left over from killed runs, and returns their paths.
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
            // A live run may be about to create the file, unless the directory is old.
            let is_old = fs::symlink_metadata(&path)
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > FIRST_MOMENT));
            // Only an empty directory is removed.
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
    fn a_directory_is_removed_with_its_run_and_existing_files_are_never_opened() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        let (path, _) = scratch.new_file("a.raw").unwrap();
        assert!(scratch.new_file("a.raw").is_err(), "it exists");
        std::os::unix::fs::symlink("/etc/hostname", scratch.path().join("b.raw")).unwrap();
        assert!(scratch.new_file("b.raw").is_err(), "it is a link");
        assert!(path.is_file());
        assert!(
            clear_left_over(parent.path()).is_empty(),
            "its run is alive"
        );
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_left_over_directories_are_removed() {
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
    fn directories_on_one_file_system_share_its_space() {
        let parent = tempfile::tempdir().unwrap();
        let directories = ["a", "b"].map(|name| parent.path().join(name));
        for directory in &directories {
            fs::create_dir(directory).unwrap();
        }
        let room = rustix::fs::statvfs(parent.path()).unwrap();
        let free = room.f_bavail * room.f_frsize;
        let kept = (room.f_blocks / 20 * room.f_frsize).min(MAX_KEPT);
        let each = free.saturating_sub(kept) * 2 / 3;
        assert!(each > 0, "this test needs some free space");
        let [a, b] = directories;
        check_room(&[(a.clone(), each)]).unwrap();
        let error = check_room(&[(a, each), (b, each)]).unwrap_err();
        assert!(matches!(error, ScratchError::Full { .. }), "{error}");
        assert!(error.to_string().contains("iB must stay free"), "{error}");
        assert!(check_room(&[(parent.path().join("no"), 1)]).is_err());
    }

    #[test]
    fn a_replaced_directory_is_not_removed() {
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
