//! A block device held by a file descriptor, so that its path is resolved only once.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use vmdisk_facts::DeviceNumber;

use super::refusal::{Check, Refused, plain};

/// The identity of a device, independent of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The kind of name: `serial`, `wwid`, `dm-uuid`, `md-uuid` or `loop-file`.
    pub kind: String,
    /// The name, as typed by the user.
    pub value: String,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.value)
    }
}

/// A block device that is open for reading.
#[derive(Debug)]
pub(crate) struct Node {
    /// The given path.
    pub(crate) given: PathBuf,
    /// The path with links resolved.
    pub(crate) real: PathBuf,
    pub(crate) number: DeviceNumber,
    pub(crate) size_bytes: u64,
    /// Its directory in sysfs.
    pub(crate) sysfs: PathBuf,
    file: File,
}

impl Node {
    /// Opens a path, if it is a block device.
    pub(crate) fn open(given: &Path) -> Result<Self, Refused> {
        let refused = |found: String| Refused::one(given.display(), Check::BlockDevice, found);
        let real = fs::canonicalize(given).map_err(|error| refused(plain(&error)))?;
        // Opening a FIFO would block without O_NONBLOCK.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&real)
            .map_err(|error| refused(plain(&error)))?;
        let metadata = file.metadata().map_err(|error| refused(plain(&error)))?;
        if !metadata.file_type().is_block_device() {
            return Err(refused("not a block device".to_owned()));
        }
        let number = number_of(metadata.rdev());
        let sysfs = fs::canonicalize(format!("/sys/dev/block/{number}"))
            .map_err(|error| refused(format!("its directory in sysfs: {}", plain(&error))))?;
        let size_bytes = (&file)
            .seek(SeekFrom::End(0))
            .map_err(|error| refused(format!("its size: {}", plain(&error))))?;
        Ok(Self {
            given: given.to_owned(),
            real,
            number,
            size_bytes,
            sysfs,
            file,
        })
    }

    /// The open descriptor.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Opens the same device again, independent of its path, which may change.
    pub(crate) fn again(&self, options: &OpenOptions) -> std::io::Result<File> {
        options.open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Returns its identity, if the kernel knows one.
    pub(crate) fn identity(&self) -> Option<Identity> {
        identity(&self.sysfs)
    }

    /// Returns the kernel's name for it.
    pub(crate) fn kernel_name(&self) -> String {
        self.sysfs
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}

/// Returns the number of a device in the kernel's notation.
pub(crate) fn number_of(device: u64) -> DeviceNumber {
    DeviceNumber {
        major: rustix::fs::major(device),
        minor: rustix::fs::minor(device),
    }
}

fn identity(sysfs: &Path) -> Option<Identity> {
    let word = |name: &str| {
        let text = fs::read(sysfs.join(name)).ok()?;
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    if let Some(number) = word("partition") {
        let Identity { kind, value } = identity(sysfs.parent()?)?;
        return Some(Identity {
            kind,
            value: format!("{value}-part{number}"),
        });
    }
    // The SCSI serial number follows a header of four bytes.
    let page = || {
        let bytes = fs::read(sysfs.join("device/vpd_pg80")).ok()?;
        let text = String::from_utf8_lossy(bytes.get(4..)?)
            .trim_matches(['\0', ' '])
            .to_owned();
        (!text.is_empty()).then_some(text)
    };
    let named = |kind: &str, value: String| Identity {
        kind: kind.to_owned(),
        value,
    };
    let serial = || {
        word("serial")
            .or_else(|| word("device/serial"))
            .or_else(page)
    };
    // The name of a volume has priority: a mapping has no disk of its own.
    word("dm/uuid")
        .map(|uuid| named("dm-uuid", uuid))
        .or_else(|| word("md/uuid").map(|uuid| named("md-uuid", uuid)))
        .or_else(|| word("loop/backing_file").map(|file| named("loop-file", file)))
        .or_else(|| serial().map(|serial| named("serial", serial)))
        .or_else(|| {
            word("wwid")
                .or_else(|| word("device/wwid"))
                .map(|wwid| named("wwid", wwid))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_a_block_device_is_refused() {
        for path in ["/dev/null", "/etc/hostname", "/", "/nonexistent/device"] {
            let refused = Node::open(Path::new(path)).unwrap_err();
            assert!(refused.names(Check::BlockDevice), "{refused}");
        }
    }

    #[test]
    fn a_partition_is_identified_by_its_disk_and_number() {
        let folder = tempfile::tempdir().unwrap();
        let partition = folder.path().join("sdz/sdz3");
        fs::create_dir_all(folder.path().join("sdz/device")).unwrap();
        fs::create_dir_all(&partition).unwrap();
        fs::write(partition.join("partition"), "3\n").unwrap();
        assert_eq!(identity(&partition), None, "its disk has no name");
        fs::write(
            folder.path().join("sdz/device/vpd_pg80"),
            b"\0\x80\0\x08  HDD0001",
        )
        .unwrap();
        let found = identity(&partition).unwrap();
        assert_eq!(found.to_string(), "serial HDD0001-part3");
        fs::write(folder.path().join("sdz/serial"), "S1\n").unwrap();
        assert_eq!(identity(&partition).unwrap().value, "S1-part3");
    }
}
