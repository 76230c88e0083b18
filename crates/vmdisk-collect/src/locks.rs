//! Writers of images, by the locks that QEMU takes on them.
//!
//! `/proc/locks` is readable by everyone, and the image is not opened. Locks of other hosts on a network
//! filesystem are not visible.

use std::collections::HashSet;

use vmdisk_facts::path::Lock;
use vmdisk_facts::{DeviceNumber, Fact, Unknown};

use crate::obstacle::obstacle;
use crate::root::Root;

/// QEMU holds a read lock on byte 100 plus the number of each permission it uses; writing is number 1
/// (block/file-posix.c, RAW_LOCK_PERM_BASE).
const WRITE_PERMISSION: u64 = 101;

/// The files that a QEMU has open for writing.
#[derive(Debug)]
pub(crate) struct Locks {
    /// By device number of the filesystem and inode.
    writers: Result<HashSet<(DeviceNumber, u64)>, Unknown>,
}

impl Locks {
    pub(crate) fn read(root: &Root) -> Self {
        let path = "/proc/locks";
        Self {
            writers: match root.text(path) {
                Ok(text) => Ok(text.lines().filter_map(writer).collect()),
                Err(error) => Err(obstacle(path, &error)),
            },
        }
    }

    /// Returns the lock on a file. `device` must be the device of its mount: on btrfs stat(2) returns another.
    pub(crate) fn of(&self, device: DeviceNumber, inode: u64) -> Fact<Lock> {
        match &self.writers {
            Ok(writers) => Fact::Known(Lock {
                writer: Fact::Known(writers.contains(&(device, inode))),
            }),
            Err(unknown) => Fact::Unknown(unknown.clone()),
        }
    }
}

/// Returns the file of a line with QEMU's lock for writing: `3: OFDLCK ADVISORY READ -1 fe:01:1234 100 101`.
fn writer(line: &str) -> Option<(DeviceNumber, u64)> {
    let mut words = line.split_whitespace().skip(1);
    let mut class = words.next()?;
    if class == "->" {
        // A process that waits for the lock of the previous line does not hold it.
        return None;
    }
    if class == "FLOCK" || class == "LEASE" || class == "DELEG" {
        return None;
    }
    class = words.next()?;
    if class != "ADVISORY" && class != "MANDATORY" {
        return None;
    }
    let (_kind, _process) = (words.next()?, words.next()?);
    let mut file = words.next()?.split(':');
    let major = u32::from_str_radix(file.next()?, 16).ok()?;
    let minor = u32::from_str_radix(file.next()?, 16).ok()?;
    let inode = file.next()?.parse().ok()?;
    let start: u64 = words.next()?.parse().ok()?;
    let end: u64 = match words.next()? {
        "EOF" => u64::MAX,
        number => number.parse().ok()?,
    };
    (start <= WRITE_PERMISSION && WRITE_PERMISSION <= end)
        .then_some((DeviceNumber { major, minor }, inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_held_locks_on_the_write_byte_count() {
        let file = Some((
            DeviceNumber {
                major: 254,
                minor: 1,
            },
            1234,
        ));
        assert_eq!(
            writer("3: OFDLCK ADVISORY  READ -1 fe:01:1234 100 101"),
            file
        );
        assert_eq!(
            writer("3: POSIX  ADVISORY  WRITE 77 fe:01:1234 0 EOF"),
            file
        );
        assert_eq!(
            writer("3: OFDLCK ADVISORY  READ -1 fe:01:1234 100 100"),
            None,
            "it only reads"
        );
        assert_eq!(
            writer("3: OFDLCK ADVISORY  READ -1 fe:01:1234 201 201"),
            None,
            "it prevents others from writing"
        );
        assert_eq!(
            writer("3: -> OFDLCK ADVISORY  READ -1 fe:01:1234 100 101"),
            None,
            "it waits"
        );
        assert_eq!(writer("1: FLOCK  ADVISORY  WRITE 12 fe:00:9 0 EOF"), None);
        assert_eq!(writer("nonsense"), None);
        assert_eq!(writer(""), None);
    }
}
