//! Whole files or none: writes beside the target, then renames.

mod attributes;
mod beside;
pub(crate) mod interrupt;
mod refusal;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::contents::Contents;
use crate::input::bounded::{self, MAX_BYTES};
use beside::Beside;

/// The reason why a file was not replaced; its contents are unchanged.
#[derive(Debug)]
pub(crate) enum ReplaceError {
    /// Somebody else wrote it since it was read.
    Changed,
    /// It has other names, which would keep the old text.
    Linked(u64),
    /// Its owner, mode or extended attributes could not be kept.
    Attributes(io::Error),
    /// The output would destroy what is there.
    Refused(String),
    /// Something else.
    Io(io::Error),
}

impl From<io::Error> for ReplaceError {
    fn from(error: io::Error) -> Self {
        ReplaceError::Io(error)
    }
}

impl std::fmt::Display for ReplaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplaceError::Changed => f.write_str("it was changed by another process meanwhile"),
            ReplaceError::Linked(names) => {
                write!(
                    f,
                    "it has {names} hard links, and the others would keep the old text"
                )
            }
            ReplaceError::Attributes(error) => {
                write!(
                    f,
                    "its owner, mode and extended attributes could not be kept: {}",
                    crate::stop::plain(error)
                )
            }
            ReplaceError::Refused(why) => f.write_str(why),
            ReplaceError::Io(error) => f.write_str(&crate::stop::plain(error)),
        }
    }
}

/// Replaces the contents of a file if they still are `before`; mode, owner, access control list, extended
/// attributes and a symbolic link to it stay. An identical change by another program is not a failure.
pub(crate) fn replace(path: &Path, before: &[u8], after: &[u8]) -> Result<(), ReplaceError> {
    let target = fs::canonicalize(path)?;
    let beside = like(&target, |file| file.write_all(after))?;
    // As late as possible: a change by another program between this and the rename is lost.
    let now = bounded::regular(&target, MAX_BYTES)?;
    if now == after {
        return Ok(());
    }
    if now != before {
        return Err(ReplaceError::Changed);
    }
    beside.persist(&target)?;
    Ok(())
}

/// A file beside `target` with all that `target` has but its contents.
fn like(target: &Path, write: impl Contents) -> Result<Beside, ReplaceError> {
    let metadata = fs::metadata(target)?;
    let names = attributes::names_of(&metadata);
    if names > 1 {
        return Err(ReplaceError::Linked(names));
    }
    let mut beside = Beside::new(&directory_of(target), None)?;
    beside.write(write)?;
    attributes::copy(target, &metadata, beside.file()).map_err(ReplaceError::Attributes)?;
    beside.file().sync_all()?;
    Ok(beside)
}

/// Creates a file or replaces it as a whole. A pipe or a terminal (`/dev/stdout`) is written to directly.
///
/// # Errors
/// Also if the file is one that this run reads, a disk image or a device: every output of the command is written here.
pub(crate) fn write(path: &Path, contents: &[u8]) -> Result<(), ReplaceError> {
    write_with(path, |file| file.write_all(contents))
}

/// As [`write`], with contents that are made while they are written.
pub(crate) fn write_with(path: &Path, write: impl Contents) -> Result<(), ReplaceError> {
    refuse(path)?;
    rewrite(path, write)
}

/// Fails if [`write`] would refuse to write to a path.
pub(crate) fn refuse(path: &Path) -> Result<(), ReplaceError> {
    match refusal::of(path)? {
        Some(why) => Err(ReplaceError::Refused(why)),
        None => Ok(()),
    }
}

/// As [`write_with`], for a file of this program that the run reads to change it: a baseline, or its cache.
pub(crate) fn rewrite(path: &Path, write: impl Contents) -> Result<(), ReplaceError> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            let mut out = io::BufWriter::new(File::options().write(true).open(path)?);
            write(&mut out)?;
            Ok(out.flush()?)
        }
        Ok(_) => {
            let target = fs::canonicalize(path)?;
            Ok(like(&target, write)?.persist(&target)?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The process's umask still applies, as for every file that a program creates.
            let mut beside = Beside::new(&directory_of(path), Some(0o666))?;
            beside.write(write)?;
            Ok(beside.persist(path)?)
        }
        Err(error) => Err(error.into()),
    }
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_meanwhile_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.xml");
        fs::write(&path, "theirs").unwrap();
        let refused = replace(&path, b"before", b"after");
        assert!(matches!(refused, Err(ReplaceError::Changed)), "{refused:?}");
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing is left behind"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_the_mode_stays() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("real.xml");
        let link = directory.path().join("link.xml");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real.xml", &link).unwrap();
        replace(&link, b"before", b"after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o640
        );
    }

    #[test]
    fn a_new_file_is_written_and_an_old_one_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert!(write(&directory.path().join("no/such/place"), b"x").is_err());
    }
}
