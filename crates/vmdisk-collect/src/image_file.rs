//! Reads the header of one image on this host, without touching the files it refers to.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use vmdisk_image::{Header, probe};

use crate::header::Opened;
use crate::obstacle::{message, missing};
use crate::paths::{device_length, open};
use crate::timeout::{WaitError, within};

/// An inspected image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageFile {
    /// Its identity.
    pub identity: FileIdentity,
    /// Its length in bytes; `None` if a device does not report it.
    pub length: Option<u64>,
    /// Its allocated bytes; `None` for a device.
    pub allocated: Option<u64>,
    /// Its parsed header.
    pub header: Header,
}

/// The identity of a file on this host, independent of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileIdentity {
    /// A file, by device number of its filesystem and inode.
    Inode(u64, u64),
    /// A block device, by number; it may have several nodes.
    Device(u64),
}

/// Why an image could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageFileError {
    /// The file does not exist.
    #[error("no such file or directory")]
    Missing,
    /// It is another kind of file; it was not opened, because that could trigger an action or block.
    #[error("it is {0}, not a file or block device")]
    WrongKind(&'static str),
    /// The operating system's error.
    #[error("{0}")]
    Refused(String),
    /// The timeout expired, as on a hung network mount.
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
}

/// Reads the header of an image, with a timeout.
///
/// Follows links. Refuses a pipe, socket or character device without opening it.
///
/// ```
/// use std::path::Path;
/// use std::time::Duration;
/// use vmdisk_collect::{ImageFileError, read_image};
///
/// let error = read_image(Path::new("/dev/null"), Duration::from_secs(2)).unwrap_err();
/// assert_eq!(error, ImageFileError::WrongKind("a character device"));
/// ```
///
/// # Errors
///
/// If the image does not exist, or its first page cannot be read. Defects of the header are part of the header.
pub fn read_image(path: &Path, timeout: Duration) -> Result<ImageFile, ImageFileError> {
    let owned = path.to_owned();
    match within(timeout, move || look(&owned)) {
        Ok(looked) => looked,
        Err(WaitError::Timeout) => Err(ImageFileError::Timeout(timeout)),
        Err(WaitError::Panicked) => Err(ImageFileError::Refused(
            "could not spawn a thread".to_owned(),
        )),
    }
}

fn look(path: &Path) -> Result<ImageFile, ImageFileError> {
    let refused = |error: std::io::Error| {
        if missing(&error) {
            ImageFileError::Missing
        } else {
            ImageFileError::Refused(message(&error))
        }
    };
    must_hold_an_image(&fs::metadata(path).map_err(refused)?)?;
    let file = open(path, OFlags::NONBLOCK).map_err(refused)?;
    // The path may refer to another file by now.
    let metadata = file.metadata().map_err(refused)?;
    must_hold_an_image(&metadata)?;
    let (identity, length, allocated) = if metadata.is_file() {
        (
            FileIdentity::Inode(metadata.dev(), metadata.ino()),
            Some(metadata.len()),
            Some(metadata.blocks().saturating_mul(512)),
        )
    } else {
        (
            FileIdentity::Device(metadata.rdev()),
            device_length(&file),
            None,
        )
    };
    let header = probe(&mut Opened {
        file: &file,
        length,
    })
    .map_err(|error| ImageFileError::Refused(error.to_string()))?;
    Ok(ImageFile {
        identity,
        length,
        allocated,
        header,
    })
}

fn must_hold_an_image(metadata: &Metadata) -> Result<(), ImageFileError> {
    let kind = metadata.file_type();
    let wrong = if kind.is_file() || kind.is_block_device() {
        return Ok(());
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() {
        "a character device"
    } else {
        "a special file"
    };
    Err(ImageFileError::WrongKind(wrong))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmdisk_image::ImageFormat;

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn other_kinds_of_files_are_refused_without_blocking() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let socket = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, expected) in [
            (pipe.as_path(), ImageFileError::WrongKind("a pipe")),
            (&socket, ImageFileError::WrongKind("a socket")),
            (directory.path(), ImageFileError::WrongKind("a directory")),
            (&directory.path().join("gone"), ImageFileError::Missing),
            (&pipe.join("below"), ImageFileError::Missing),
        ] {
            let started = std::time::Instant::now();
            assert_eq!(read_image(path, TIMEOUT), Err(expected), "{path:?}");
            assert!(started.elapsed() < TIMEOUT / 2);
        }
    }

    #[test]
    fn a_file_has_the_same_identity_under_all_names() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (
            directory.path().join("a.img"),
            directory.path().join("b.img"),
        );
        fs::write(&file, vec![0; 4096]).unwrap();
        std::os::unix::fs::symlink("a.img", &link).unwrap();
        let (one, other) = (
            read_image(&file, TIMEOUT).unwrap(),
            read_image(&link, TIMEOUT).unwrap(),
        );
        assert_eq!(one, other);
        assert_eq!(one.header.format(), ImageFormat::Raw);
        assert_eq!(one.length, Some(4096));
    }
}
