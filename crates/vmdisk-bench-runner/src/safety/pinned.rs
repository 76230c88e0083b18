//! What a path led to when it was checked. Programs get the open descriptor, and never the path again.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The path of a descriptor of this process, also for the programs that it starts. None of them inherits the descriptor:
/// a program beside them would have the device open, too.
pub(super) fn path_of(file: &File) -> PathBuf {
    let process = std::process::id();
    PathBuf::from(format!("/proc/{process}/fd/{}", file.as_raw_fd()))
}

/// A file or device that is only read.
#[derive(Debug)]
pub(crate) struct Pinned {
    given: PathBuf,
    file: File,
    path: PathBuf,
}

impl Pinned {
    pub(crate) fn open(given: &Path) -> io::Result<Self> {
        let file = File::open(given)?;
        let path = path_of(&file);
        Ok(Self {
            given: given.to_owned(),
            file,
            path,
        })
    }

    /// The path of the descriptor.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn size_bytes(&self) -> io::Result<u64> {
        (&self.file).seek(SeekFrom::End(0))
    }

    /// Returns true if the given path still leads to the open file or device.
    pub(crate) fn is_still_named(&self) -> bool {
        let identity = |it: std::fs::Metadata| (it.dev(), it.ino(), it.rdev());
        let (now, held) = (std::fs::metadata(&self.given), self.file.metadata());
        // Every node of a device has its own inode.
        match (now.map(identity), held.map(identity)) {
            (Ok((.., now)), Ok((.., held))) if held != 0 => now == held,
            (Ok(now), Ok(held)) => now == held,
            _ => false,
        }
    }
}
