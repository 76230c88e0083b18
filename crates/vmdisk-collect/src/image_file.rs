//! One image on this host: opened for reading, its header read, and nothing it names touched.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use vmdisk_image::{Header, probe};

use crate::header::Opened;
use crate::obstacle::{missing, said};
use crate::paths::{device_length, open};
use crate::patience::{GivenUp, within};

/// An image that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// What tells it from every other.
    pub identity: FileIdentity,
    /// Its length in bytes; `None` where a device does not tell.
    pub length: Option<u64>,
    /// The bytes allocated for it; `None` for a device.
    pub allocated: Option<u64>,
    /// What its first bytes say.
    pub header: Header,
}

/// What tells a file from every other on this host, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileIdentity {
    /// A file by the number of its file system and its own.
    Inode(u64, u64),
    /// A block device by its number; its nodes may be many.
    Device(u64),
}

/// Why an image could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageFileError {
    /// Nothing is there.
    #[error("no such file or directory")]
    Missing,
    /// It is something that holds no image; it was not opened, as that may wake something up or wait for ever.
    #[error("it is {0}, and not a file or block device")]
    WrongKind(&'static str),
    /// The system refused, in its words.
    #[error("{0}")]
    Refused(String),
    /// The system did not answer, as on a hung network mount.
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
}

/// Looks at the header of an image, for at most as long as `patience` lasts.
///
/// Links are followed. A pipe, socket or character device is refused without opening it.
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
/// If there is no such image, or its first page cannot be read. What is wrong with the header is in the header.
pub fn read_image(path: &Path, patience: Duration) -> Result<ImageFile, ImageFileError> {
    let owned = path.to_owned();
    match within(patience, move || look(&owned)) {
        Ok(looked) => looked,
        Err(GivenUp::Late) => Err(ImageFileError::Late(patience)),
        Err(GivenUp::Broken) => Err(ImageFileError::Refused(
            "a thread could not be had to look at it".to_owned(),
        )),
    }
}

fn look(path: &Path) -> Result<ImageFile, ImageFileError> {
    let refused = |error: std::io::Error| {
        if missing(&error) {
            ImageFileError::Missing
        } else {
            ImageFileError::Refused(said(&error))
        }
    };
    must_hold_an_image(&fs::metadata(path).map_err(refused)?)?;
    let file = open(path, OFlags::NONBLOCK).map_err(refused)?;
    // What was looked at by name may be something else by now.
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

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn what_is_no_file_is_refused_and_never_waited_for() {
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
            assert_eq!(read_image(path, PATIENCE), Err(expected), "{path:?}");
            assert!(started.elapsed() < PATIENCE / 2);
        }
    }

    #[test]
    fn a_file_is_the_same_under_all_of_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (
            directory.path().join("a.img"),
            directory.path().join("b.img"),
        );
        fs::write(&file, vec![0; 4096]).unwrap();
        std::os::unix::fs::symlink("a.img", &link).unwrap();
        let (one, other) = (
            read_image(&file, PATIENCE).unwrap(),
            read_image(&link, PATIENCE).unwrap(),
        );
        assert_eq!(one, other);
        assert_eq!(one.header.format(), ImageFormat::Raw);
        assert_eq!(one.length, Some(4096));
    }
}
