//! Directories in which only this user can write, so that names in them lead nowhere else.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;

use super::place::{OTHERS_WRITE, Place};
use super::replace_error::ReplaceError;
use crate::input::watch;

/// The directory of a path, which no link of another user leads to.
pub(crate) fn directory_of(path: &Path) -> Result<OwnedFd, ReplaceError> {
    watch::look(path, || Ok(Place::of_name(path)?.into_directory()))
}

/// Opens a directory that was made; false if another user can write into it, or has put another one there.
pub(crate) fn open_private(above: impl AsFd, name: &OsStr) -> rustix::io::Result<(OwnedFd, bool)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(above, name, flags, Mode::empty())?;
    let is = fstat(&directory)?;
    let user = rustix::process::geteuid().as_raw();
    Ok((
        directory,
        is.st_uid == user && is.st_mode & OTHERS_WRITE == 0,
    ))
}

/// Makes a directory that only this user can read, or opens an empty one that only this user can write.
pub(crate) fn empty_directory(path: &Path) -> Result<OwnedFd, ReplaceError> {
    // A slash at its end does not belong to the name.
    let path = &path.components().collect::<std::path::PathBuf>();
    let place = watch::look(path, || Place::of(path))?;
    match mkdirat(place.handle(), place.name(), Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(io::Error::from(error).into()),
    }
    let (directory, is_private) =
        open_private(place.handle(), place.name()).map_err(io::Error::from)?;
    let refused = |why: &str| Err(ReplaceError::Refused(why.to_owned()));
    if !is_private {
        return refused("another user can write into it");
    }
    let opened = format!("/proc/self/fd/{}", directory.as_raw_fd());
    match std::fs::read_dir(opened)?.next() {
        Some(_) => refused("it is not empty"),
        None => Ok(directory),
    }
}
