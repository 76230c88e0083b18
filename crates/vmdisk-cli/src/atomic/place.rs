//! Where an output goes: an open directory and a name in it. Each part of a path is looked at by its descriptor, so that no
//! name leads elsewhere between the check and the use.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, fstatfs, openat, readlinkat};

use super::replace_error::ReplaceError;
use super::step::reached;
use crate::input::bounded::Regular;

/// The kernel's limit of links in a path.
const MAX_LINKS: usize = 40;
/// The mode bits of a directory in which others than its owner may create, remove and rename.
pub(super) const OTHERS_WRITE: u32 = 0o022;
/// The magic number of /proc, whose links lead to open files.
const PROC: u64 = 0x9fa0;
/// The time in which another program must open a named pipe for reading.
const READER: Duration = Duration::from_secs(2);

/// A directory, and a name in it that is no symbolic link.
#[derive(Debug)]
pub(super) struct Place {
    directory: OwnedFd,
    name: OsString,
    /// True for a link of /proc to an open file that has no path, such as a pipe.
    is_open_file: bool,
}

/// What has the name of a place.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    File(Regular),
    Other(Other),
}

/// Something else than a regular file; nothing of it is open.
#[derive(Debug)]
pub(super) struct Other {
    handle: File,
    pub(super) metadata: Metadata,
}

impl Place {
    /// The place that a path leads to now.
    pub(super) fn of(path: &Path) -> Result<Self, ReplaceError> {
        Self::walk(path, true)
    }

    /// The place of a name in the directory that a path leads to now; a link with that name is not followed.
    pub(super) fn of_name(path: &Path) -> Result<Self, ReplaceError> {
        Self::walk(path, false)
    }

    fn walk(path: &Path, is_followed: bool) -> Result<Self, ReplaceError> {
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        let mut rest = parts(path);
        let mut directory = open_directory(CWD, OsStr::new("."))?;
        let (mut links, mut is_linked) = (0, false);
        while let Some(name) = rest.pop() {
            let is_last = rest.is_empty();
            if is_last && !is_followed {
                return Ok(Place::new(directory, name, false));
            }
            let found = match openat(&directory, &name, handle(), Mode::empty()) {
                Ok(found) => File::from(found),
                Err(rustix::io::Errno::NOENT) if is_last && is_linked => {
                    let why = "it is a link to a file that does not exist";
                    return Err(ReplaceError::Refused(why.to_owned()));
                }
                Err(rustix::io::Errno::NOENT) if is_last => {
                    return Ok(Place::new(directory, name, false));
                }
                Err(error) => return Err(io::Error::from(error).into()),
            };
            let metadata = found.metadata()?;
            if !metadata.is_symlink() {
                match is_last {
                    true => return Ok(Place::new(directory, name, false)),
                    false => directory = found.into(),
                }
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(io::Error::other("too many symbolic links").into());
            }
            is_linked |= is_last;
            refuse_foreign(&directory, &name, &metadata)?;
            let target = readlinkat(&found, "", Vec::new()).map_err(io::Error::from)?;
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            let has_path = target.is_absolute() || !target.as_os_str().as_bytes().contains(&b':');
            if is_last && !has_path && is_of_proc(&directory)? {
                return Ok(Place::new(directory, name, true));
            }
            rest.extend(parts(&target));
        }
        Err(io::Error::from(io::ErrorKind::IsADirectory).into())
    }

    fn new(directory: OwnedFd, name: OsString, is_open_file: bool) -> Self {
        reached("resolved");
        Place {
            directory,
            name,
            is_open_file,
        }
    }

    /// What has the name now.
    pub(super) fn look(&self) -> io::Result<Found> {
        let flags = match self.is_open_file {
            true => handle() - OFlags::NOFOLLOW,
            false => handle(),
        };
        let handle = match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(handle) => File::from(handle),
            Err(rustix::io::Errno::NOENT) => return Ok(Found::Nothing),
            Err(error) => return Err(error.into()),
        };
        let metadata = handle.metadata()?;
        reached("looked at");
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if metadata.is_symlink() {
            return Err(io::Error::other("it became a symbolic link meanwhile"));
        }
        if !metadata.is_file() {
            return Ok(Found::Other(Other { handle, metadata }));
        }
        let file = open_again(&handle, OpenOptions::new().read(true))?;
        reached("opened");
        Ok(Found::File(Regular { file, metadata }))
    }

    /// The directory, as a path that no rename changes.
    pub(super) fn directory(&self) -> PathBuf {
        path_of(self.directory.as_raw_fd())
    }

    pub(super) fn into_directory(self) -> OwnedFd {
        self.directory
    }

    pub(super) fn handle(&self) -> &OwnedFd {
        &self.directory
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The device and the number of the directory.
    pub(super) fn directory_identity(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.directory)?;
        Ok((stat.st_dev, stat.st_ino))
    }
}

impl Other {
    /// Opens a terminal, to ask whether it is one.
    pub(super) fn open_terminal(&self) -> io::Result<File> {
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        open_again(
            &self.handle,
            OpenOptions::new().read(true).custom_flags(flags),
        )
    }

    /// Opens a pipe, a terminal or a harmless device for writing.
    pub(super) fn open_to_write(&self) -> io::Result<File> {
        if !self.metadata.file_type().is_fifo() {
            return open_again(&self.handle, OpenOptions::new().write(true));
        }
        let until = Instant::now() + READER;
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        loop {
            let opened = open_again(
                &self.handle,
                OpenOptions::new().write(true).custom_flags(flags),
            );
            match opened {
                Err(error) if is_without_reader(&error) && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) if is_without_reader(&error) => {
                    return Err(io::Error::other("no program reads from this pipe"));
                }
                Err(error) => return Err(error),
                Ok(file) => {
                    // A slow reader makes the output slow, and no error.
                    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
                    return Ok(file);
                }
            }
        }
    }
}

fn is_without_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

/// Opens exactly what a handle is of.
fn open_again(handle: &File, options: &OpenOptions) -> io::Result<File> {
    options.open(path_of(handle.as_raw_fd()))
}

fn path_of(descriptor: i32) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{descriptor}"))
}

/// The flags with which a name is held without opening what it names.
fn handle() -> OFlags {
    OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn open_directory(at: impl std::os::fd::AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

fn is_of_proc(directory: &OwnedFd) -> io::Result<bool> {
    let kind = fstatfs(directory)?.f_type;
    Ok(u64::try_from(kind).is_ok_and(|kind| kind == PROC))
}

/// Refuses a link that another user may have put there, in a directory where others than the caller and root can write. The
/// kernel refuses those of sticky directories only (`fs.protected_symlinks`).
fn refuse_foreign(directory: &OwnedFd, name: &OsStr, link: &Metadata) -> Result<(), ReplaceError> {
    let caller = rustix::process::geteuid().as_raw();
    let is_trusted = |user: u32| user == caller || user == 0;
    let holder = rustix::fs::fstat(directory).map_err(io::Error::from)?;
    let is_private = is_trusted(holder.st_uid) && holder.st_mode & OTHERS_WRITE == 0;
    if is_private || is_trusted(link.uid()) {
        return Ok(());
    }
    Err(ReplaceError::Refused(format!(
        "{} is a link of another user, in a directory where others can write; name the file that it leads to",
        Path::new(name).display()
    )))
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |part: Component<'_>| part.as_os_str().to_owned();
    path.components().rev().map(part).collect()
}
