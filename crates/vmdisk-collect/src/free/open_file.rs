//! The identity of a file or device, whatever its path is.

use std::path::Path;

use vmdisk_facts::DeviceNumber;

/// The file or device at a path or behind an open descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OpenFile {
    Device(DeviceNumber),
    /// Anything else, by the device of its file system and its inode.
    Other(DeviceNumber, u64),
}

impl OpenFile {
    /// Asks the kernel without a request to the server of a network file system.
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
        let found = statx(
            CWD,
            path,
            AtFlags::STATX_DONT_SYNC,
            StatxFlags::TYPE | StatxFlags::INO,
        )?;
        let number = |major, minor| DeviceNumber { major, minor };
        Ok(match FileType::from_raw_mode(u32::from(found.stx_mode)) {
            FileType::BlockDevice => {
                OpenFile::Device(number(found.stx_rdev_major, found.stx_rdev_minor))
            }
            _ => OpenFile::Other(
                number(found.stx_dev_major, found.stx_dev_minor),
                found.stx_ino,
            ),
        })
    }
}

/// Returns the number of a device in the kernel's notation.
pub(super) fn number_of(device: u64) -> DeviceNumber {
    DeviceNumber {
        major: rustix::fs::major(device),
        minor: rustix::fs::minor(device),
    }
}
