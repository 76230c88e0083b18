//! Whole files or none: writes beside the target, then renames.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Why a file was not replaced; it is as it was.
#[derive(Debug)]
pub(crate) enum ReplaceError {
    /// Somebody else wrote it since it was read.
    Changed,
    /// Its owner or mode could not be kept.
    Ownership(io::Error),
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
            ReplaceError::Changed => f.write_str("it was changed by somebody else meanwhile"),
            ReplaceError::Ownership(error) => {
                write!(
                    f,
                    "its owner and mode could not be kept: {}",
                    crate::stop::plain(error)
                )
            }
            ReplaceError::Io(error) => f.write_str(&crate::stop::plain(error)),
        }
    }
}

/// Replaces the contents of a file if they still are `before`; mode, owner and a symbolic link that
/// leads to it stay.
pub(crate) fn replace(path: &Path, before: &[u8], after: &[u8]) -> Result<(), ReplaceError> {
    let target = fs::canonicalize(path)?;
    let metadata = fs::metadata(&target)?;
    let mut beside = Builder::new()
        .prefix(".vmdisk-")
        .tempfile_in(directory_of(&target))?;
    beside.write_all(after)?;
    keep_owner_and_mode(beside.as_file(), &metadata).map_err(ReplaceError::Ownership)?;
    beside.as_file().sync_all()?;
    // As late as can be: what is written between this and the rename is lost, and nothing else is.
    if fs::read(&target)? != before {
        return Err(ReplaceError::Changed);
    }
    persist(beside, &target)?;
    Ok(())
}

/// Creates a file or replaces it as a whole. What is no regular file (a pipe, `/dev/stdout`) is
/// written to as it stands.
pub(crate) fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            File::options().write(true).open(path)?.write_all(contents)
        }
        Ok(metadata) => {
            let target = fs::canonicalize(path)?;
            let mut beside = Builder::new()
                .prefix(".vmdisk-")
                .tempfile_in(directory_of(&target))?;
            beside.write_all(contents)?;
            keep_owner_and_mode(beside.as_file(), &metadata)?;
            persist(beside, &target)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut builder = Builder::new();
            builder.prefix(".vmdisk-");
            new_file_mode(&mut builder);
            let mut beside = builder.tempfile_in(directory_of(path))?;
            beside.write_all(contents)?;
            persist(beside, path)
        }
        Err(error) => Err(error),
    }
}

fn persist(beside: NamedTempFile, target: &Path) -> io::Result<()> {
    beside.persist(target).map_err(|error| error.error)?;
    Ok(())
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

#[cfg(unix)]
fn new_file_mode(builder: &mut Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    // The process's umask still applies, as for every file that a program creates.
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn new_file_mode(_: &mut Builder<'_, '_>) {}

#[cfg(unix)]
fn keep_owner_and_mode(file: &File, wanted: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let is = file.metadata()?;
    if (is.uid(), is.gid()) != (wanted.uid(), wanted.gid()) {
        fchown(file, Some(wanted.uid()), Some(wanted.gid()))?;
    }
    // After the owner, because changing the owner clears set-id bits.
    file.set_permissions(wanted.permissions())
}

#[cfg(not(unix))]
fn keep_owner_and_mode(file: &File, wanted: &Metadata) -> io::Result<()> {
    file.set_permissions(wanted.permissions())
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
