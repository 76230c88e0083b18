//! Reads files and streams up to a limit, because `/dev/zero` has no end. Nothing else in this crate opens a file to read it:
//! `clippy.toml` disallows the functions of the standard library. What is read here, no output replaces.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FileType, OFlags};

use crate::input::{used, watch};

/// The limit for every input, facts file, configuration and result.
pub(crate) const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The time in which another program must open a named pipe for writing.
const WRITER: Duration = Duration::from_secs(2);

/// True if standard input is a pipe with unread bytes.
pub(crate) fn has_unread_pipe() -> bool {
    let stdin = io::stdin();
    let is_pipe = rustix::fs::fstat(&stdin)
        .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Fifo);
    is_pipe && rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0)
}

/// The bytes of a file that the caller named. A pipe, such as `<(…)` of a shell, is read to its end.
pub(crate) fn named(path: &Path) -> io::Result<Vec<u8>> {
    let seen = watch::look(path, || {
        let kind = path.metadata()?.file_type();
        let file = kind.is_file().then(|| Regular::open(path)).transpose()?;
        io::Result::Ok((kind, file))
    });
    let (kind, file) = seen?;
    if let Some(file) = file {
        return file.noted().contents(MAX_BYTES);
    }
    let path = path.to_owned();
    let file = match kind.is_fifo() {
        // This waits for a program that writes.
        true => watch::within(WRITER, move || open(&path, OFlags::empty()))
            .ok_or_else(|| io::Error::other("no program writes to this pipe"))??,
        false => open(&path, OFlags::empty())?,
    };
    stream(file)
}

/// The bytes of a regular file. Anything else is not opened, and no read waits.
pub(crate) fn regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    Regular::look(path)?.noted().contents(limit)
}

/// The bytes of an open file.
pub(crate) fn contents(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    Regular { file, metadata }.contents(limit)
}

/// The bytes of a regular file as text.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let bytes = regular(path, MAX_BYTES)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("not valid UTF-8"))
}

/// Opens a regular file. Opening a device can have an effect, and opening a pipe would wait.
pub(crate) fn regular_file(path: &Path) -> io::Result<File> {
    Ok(Regular::look(path)?.noted().file)
}

/// As [`regular_file`], for a file that an output may replace.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    Ok(Regular::look(path)?.file)
}

/// An open regular file, with what its descriptor said of it.
#[derive(Debug)]
pub(crate) struct Regular {
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

impl Regular {
    /// Opens a file if its name leads to a regular one.
    fn look(path: &Path) -> io::Result<Self> {
        watch::look(path, || match path.metadata()?.is_file() {
            true => Self::open(path),
            false => Err(not_regular()),
        })
    }

    /// Opens what was a regular file a moment ago. Another file may be there by now, and a file such as /proc/kmsg waits for
    /// more.
    fn open(path: &Path) -> io::Result<Self> {
        let file = open(path, OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok(Regular { file, metadata }),
            false => Err(not_regular()),
        }
    }

    /// Noted as read: no output replaces it.
    fn noted(self) -> Self {
        used::opened(&self.metadata);
        self
    }

    /// The current content of the whole file.
    pub(crate) fn contents(&self, limit: u64) -> io::Result<Vec<u8>> {
        let length = self.metadata.len();
        if length > limit {
            return Err(too_large(limit));
        }
        let length = usize::try_from(length).unwrap_or_default();
        (&self.file).rewind()?;
        up_to(limit, &self.file, Vec::with_capacity(length + 1))
    }
}

fn not_regular() -> io::Error {
    io::Error::other("not a regular file")
}

/// True if an open file lies in a directory without links in its path, wherever the names that led to it now lead.
pub(crate) fn lies_in(file: &File, directory: &Path) -> bool {
    let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    real.is_ok_and(|real| real.starts_with(directory))
}

/// All bytes of a stream.
pub(crate) fn stream(stream: impl Read) -> io::Result<Vec<u8>> {
    up_to(MAX_BYTES, stream, Vec::new())
}

fn up_to(limit: u64, stream: impl Read, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    stream.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(too_large(limit)),
        false => Ok(bytes),
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn too_large(limit: u64) -> io::Error {
    let mib = limit / 1024 / 1024;
    io::Error::other(format!("more than the {mib} MiB that are read of a file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_up_to_the_limit_is_read_and_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        for limit in [3, 4096, MAX_BYTES] {
            for length in [0, 1, limit - 1, limit, limit + 1, limit + 2, limit + 64] {
                File::create(&path).unwrap().set_len(length).unwrap();
                let whole = regular(&path, limit).map(|bytes| bytes.len() as u64);
                assert_eq!(whole.ok(), (length <= limit).then_some(length), "{limit}");
                let streamed = up_to(limit, io::repeat(0).take(length), Vec::new());
                assert_eq!(streamed.is_ok(), length <= limit, "{length} of {limit}");
            }
        }
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        for error in [named(&path), stream(io::repeat(b'x'))] {
            assert!(error.unwrap_err().to_string().contains("16 MiB"));
        }
    }

    #[test]
    fn only_a_regular_file_is_opened_and_a_pipe_without_a_writer_is_given_up() {
        let directory = tempfile::tempdir().unwrap();
        let [fifo, written] = ["a", "b"].map(|name| directory.path().join(name));
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        for path in [&fifo, &written] {
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        }
        for path in [&fifo, directory.path(), Path::new("/dev/zero")] {
            let error = regular(path, MAX_BYTES).unwrap_err();
            assert_eq!(
                error.to_string(),
                "not a regular file",
                "{}",
                path.display()
            );
        }
        let error = named(&fifo).unwrap_err();
        assert_eq!(error.to_string(), "no program writes to this pipe");
        let writer = {
            let written = written.clone();
            std::thread::spawn(move || std::fs::write(written, "text"))
        };
        assert_eq!(named(&written).unwrap(), b"text");
        writer.join().unwrap().unwrap();
    }
}
