//! The place of a new file. All that a run writes is made by [`Private::new`] and named by [`move_to`].
//!
//! A name is used once, to open its directory. In that directory the run makes one of its own, which nobody else can
//! write, and the programs get the file in it by a descriptor. The file is given its name when it is complete, and only
//! what this run made is removed. Other users of the directory can so stop a run, but neither lead it elsewhere nor lose
//! a file.

use std::ffi::OsStr;
use std::fmt::Display;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::fs::{Gid, Uid};
use rustix::io::{Errno, FdFlags};

use super::failure::Failure;
use crate::atomic::{self, ReplaceError};
use crate::stop::plain;

/// The name of a file in its private directory.
const FILE: &str = "image";

/// What makes a file the same one.
type Identity = (u64, u64);

/// A directory, and a name in it.
#[derive(Debug)]
pub(super) struct Place {
    directory: OwnedFd,
    name: String,
    path: String,
    /// Other users may be able to write into the directory that is made; its name is used.
    is_trusted: bool,
}

/// A directory beside the place, which only this user can write, with the file that is being made.
#[derive(Debug)]
pub(super) struct Private {
    place: Place,
    directory: OwnedFd,
    identity: Identity,
}

/// A file that this run made and named.
#[derive(Debug)]
pub(super) struct Made {
    place: Place,
    identity: Identity,
    /// While it is open, no other file gets its number.
    file: OwnedFd,
}

impl Place {
    pub(super) fn of(path: &str, is_trusted: bool) -> Result<Self, Failure> {
        let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
        let directory = if directory.is_empty() { "/" } else { directory };
        let opened = match is_trusted {
            true => rustix::fs::open(directory, DIRECTORY, Mode::empty())
                .map_err(|error| failed(directory, error)),
            false => atomic::directory_of(Path::new(path)).map_err(|error| match error {
                ReplaceError::Refused(why) => {
                    Failure::Refused(format!("{path}: {why}, or use --trust-directory"))
                }
                error => Failure::Failed(format!("{directory}: {error}")),
            }),
        };
        Ok(Place {
            directory: opened?,
            name: name.to_owned(),
            path: path.to_owned(),
            is_trusted,
        })
    }

    /// The name of the directory that is made.
    fn part(&self) -> String {
        format!("{}.part", self.name)
    }

    fn refused(&self, why: impl Display) -> Failure {
        Failure::Refused(format!("{} {why}", self.path))
    }
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Private {
    /// Makes the directory and an empty file in it.
    pub(super) fn new(place: Place) -> Result<Self, Failure> {
        let private = Self::empty(place)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::openat(&private.directory, FILE, flags, Mode::from_raw_mode(0o600)) {
            Ok(_) => Ok(private),
            // Another user gave the directory of another run this name.
            Err(Errno::EXIST) => Err(private.place.refused("is being made by another run")),
            Err(error) => Err(failed(&private.place.path, error)),
        }
    }

    fn empty(place: Place) -> Result<Self, Failure> {
        let part = place.part();
        match rustix::fs::mkdirat(&place.directory, &part, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                return Err(place.refused("is being made by another run, or its `.part` is left"));
            }
            Err(error) => return Err(failed(&place.path, error)),
        }
        let opened = atomic::open_private(&place.directory, OsStr::new(&part));
        let (directory, is_own) = match opened {
            Ok(opened) => opened,
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => {
                return Err(place.refused("is in a directory in which another user moves files"));
            }
            Err(error) => return Err(failed(&place.path, error)),
        };
        let failed = |error| failed(&place.path, error);
        let is = rustix::fs::fstat(&directory).map_err(failed)?;
        let above = rustix::fs::fstat(&place.directory).map_err(failed)?;
        if !(is_own && is.st_dev == above.st_dev || place.is_trusted) {
            // It may be another directory, so only an empty one is removed.
            let _ = rustix::fs::unlinkat(&place.directory, &part, AtFlags::REMOVEDIR);
            return Err(place.refused(
                "is in a directory in which this user cannot make one that nobody else can write: its file system has \
                 other owners, or another user moves files there; use another directory, or --trust-directory",
            ));
        }
        // The programs inherit it.
        rustix::io::fcntl_setfd(&directory, FdFlags::empty()).map_err(failed)?;
        Ok(Private {
            identity: identity_of(&is),
            place,
            directory,
        })
    }

    /// The file, for a program that this run starts.
    pub(super) fn file(&self) -> String {
        if self.place.is_trusted {
            return format!("{}.part/{FILE}", self.place.path);
        }
        format!("/proc/self/fd/{}/{FILE}", self.directory.as_raw_fd())
    }

    /// Bytes of the file on its file system.
    pub(super) fn allocated(&self) -> u64 {
        let blocks = stat(&self.directory, FILE).map_or(0, |stat| stat.st_blocks);
        u64::try_from(blocks).unwrap_or(0).saturating_mul(512)
    }

    /// Gives the file its name, which it takes from nothing.
    pub(super) fn publish(self) -> Result<Made, (Self, Failure)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, FILE, flags, Mode::empty());
        let named = file.and_then(|file| {
            let (from, to) = (&self.directory, &self.place.directory);
            move_to(from, FILE, to, &self.place.name)?;
            Ok((identity_of(&rustix::fs::fstat(&file)?), file))
        });
        let (identity, file) = match named {
            Ok(named) => named,
            Err(Errno::EXIST) => {
                let refused = self.place.refused("exists, and nothing is overwritten");
                return Err((self, refused));
            }
            Err(error) => {
                let failed = failed(&self.place.path, error);
                return Err((self, failed));
            }
        };
        let place = self.end();
        Ok(Made {
            place,
            identity,
            file,
        })
    }

    /// Removes the directory with the file in it.
    pub(super) fn end(self) -> Place {
        let _ = rustix::fs::unlinkat(&self.directory, FILE, AtFlags::empty());
        let (above, part) = (&self.place.directory, self.place.part());
        if stat(above, &part).is_ok_and(|stat| identity_of(&stat) == self.identity) {
            // It removes only an empty directory.
            let _ = rustix::fs::unlinkat(above, &part, AtFlags::REMOVEDIR);
        }
        self.place
    }
}

impl Made {
    /// True if its path still leads to it.
    pub(super) fn is_found(&self) -> bool {
        let found = std::fs::symlink_metadata(Path::new(&self.place.path));
        found.is_ok_and(|it| {
            use std::os::unix::fs::MetadataExt as _;
            (it.dev(), it.ino()) == self.identity
        })
    }

    /// The path that it was given.
    pub(super) fn path(&self) -> &str {
        &self.place.path
    }

    /// Removes the file if it still has its name. It is moved into a private directory first, so that what is looked at is
    /// what is removed; another file that took the name is moved back.
    pub(super) fn remove(self) -> Result<(), String> {
        let Made {
            place,
            identity,
            file: _file, // until the end
        } = self;
        let is_it =
            |stat: rustix::io::Result<Stat>| stat.is_ok_and(|it| identity_of(&it) == identity);
        if !is_it(stat(&place.directory, &place.name)) {
            return Err("another file has its name".to_owned());
        }
        let private = Private::empty(place).map_err(Failure::into_text)?;
        let Private {
            place, directory, ..
        } = &private;
        let moved = move_to(&place.directory, &place.name, directory, FILE);
        moved.map_err(|error| plain(&error.into()))?;
        if !is_it(stat(directory, FILE)) {
            return match move_to(directory, FILE, &place.directory, &place.name) {
                Ok(()) => {
                    private.end();
                    Err("another file has its name".to_owned())
                }
                Err(_) => Err(format!(
                    "another file had its name, and is now {}.part/{FILE}",
                    place.path
                )),
            };
        }
        private.end();
        Ok(())
    }
}

/// The names of an image, of the image when its copy has taken its name, and of the copy, in one directory.
pub(super) struct Names {
    place: Place,
    kept: String,
    copy: String,
}

impl Names {
    pub(super) fn of([image, kept, copy]: [&str; 3], is_trusted: bool) -> Result<Self, Failure> {
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Names {
            place: Place::of(image, is_trusted)?,
            kept: name(kept),
            copy: name(copy),
        })
    }

    /// Gives the copy the owner, the permissions and the name of the image. At any time, that name leads to one of them.
    pub(super) fn exchange(&self) -> Result<(), Failure> {
        let Place {
            directory, name, ..
        } = &self.place;
        rustix::fs::linkat(directory, name, directory, &self.kept, AtFlags::empty())
            .map_err(|error| failed(&self.place.path, error))?;
        let kept = stat(directory, &self.kept);
        let [is, was] = [stat(directory, name), kept].map(|it| it.map(|it| identity_of(&it)));
        if is != was {
            return Err(self.place.refused("was replaced meanwhile"));
        }
        let is_named = self
            .own(kept)
            .and_then(|()| rustix::fs::renameat(directory, &self.copy, directory, name));
        is_named.map_err(|error| {
            let _ = rustix::fs::unlinkat(directory, &self.kept, AtFlags::empty());
            failed(&self.place.path, error)
        })
    }

    /// Gives the copy the owner and the permissions of the image.
    fn own(&self, image: rustix::io::Result<Stat>) -> rustix::io::Result<()> {
        let image = image?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let copy = rustix::fs::openat(&self.place.directory, &self.copy, flags, Mode::empty())?;
        let has = rustix::fs::fstat(&copy)?;
        if (has.st_uid, has.st_gid) != (image.st_uid, image.st_gid) {
            let (user, group) = (Uid::from_raw(image.st_uid), Gid::from_raw(image.st_gid));
            rustix::fs::fchown(&copy, Some(user), Some(group))?;
        }
        rustix::fs::fchmod(&copy, Mode::from_raw_mode(image.st_mode))
    }

    /// Gives the image its name again, in place of the copy.
    pub(super) fn restore(&self) -> Result<(), Failure> {
        let Place {
            directory, name, ..
        } = &self.place;
        rustix::fs::renameat(directory, &self.kept, directory, name)
            .map_err(|error| failed(&self.place.path, error))
    }
}

/// Writes the name of a file to the drive, before something else depends on it.
pub(super) fn keep_name(path: &str) {
    let directory = Path::new(path).parent();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = directory.map(|it| rustix::fs::open(it, flags, Mode::empty()));
    if let Some(Ok(directory)) = opened {
        let _ = rustix::fs::fsync(&directory);
    }
}

/// Moves a file where nothing is.
fn move_to(from: &OwnedFd, name: &str, to: &OwnedFd, new: &str) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        // The file system has no such rename; a link replaces nothing either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rustix::fs::linkat(from, name, to, new, AtFlags::empty())?;
            rustix::fs::unlinkat(from, name, AtFlags::empty())
        }
        other => other,
    }
}

fn stat(directory: &impl AsFd, name: &str) -> rustix::io::Result<Stat> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn identity_of(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

fn failed(path: &str, error: Errno) -> Failure {
    Failure::Failed(format!("{path}: {}", plain(&error.into())))
}
