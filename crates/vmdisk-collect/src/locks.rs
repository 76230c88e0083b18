//! Who has an image open for writing, by the locks QEMU takes on it.
//!
//! `/proc/locks` shows them to everybody, and the image need not be opened to look. Locks of other hosts on a network
//! filesystem do not show.

use std::collections::HashSet;

use vmdisk_facts::path::Lock;
use vmdisk_facts::{DeviceNumber, Fact, Unknown};

use crate::obstacle::obstacle;
use crate::root::Root;

/// QEMU holds a read lock on byte 100 plus the number of each permission it uses, and writing is number 1
/// (block/file-posix.c, RAW_LOCK_PERM_BASE).
const WRITE_PERMISSION: u64 = 101;

/// The files that somebody has open for writing as QEMU does.
#[derive(Debug)]
pub(crate) struct Locks {
    /// By the number of the filesystem's device and of the inode.
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

    /// Whether somebody writes to a file. The device is the one of its mount: on btrfs stat(2) shows another.
    pub(crate) fn of(&self, device: DeviceNumber, inode: u64) -> Fact<Lock> {
        match &self.writers {
            Ok(writers) => Fact::Known(Lock {
                writer: Fact::Known(writers.contains(&(device, inode))),
            }),
            Err(unknown) => Fact::Unknown(unknown.clone()),
        }
    }
}

/// The file of a line that shows QEMU's lock for writing: `3: OFDLCK ADVISORY READ -1 fe:01:1234 100 101`.
fn writer(line: &str) -> Option<(DeviceNumber, u64)> {
    let mut words = line.split_whitespace().skip(1);
    let mut class = words.next()?;
    if class == "->" {
        // Somebody waits for the lock of the line above, and holds nothing.
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
    fn only_a_held_lock_on_the_byte_for_writing_counts() {
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
            "it reads only"
        );
        assert_eq!(
            writer("3: OFDLCK ADVISORY  READ -1 fe:01:1234 201 201"),
            None,
            "it forbids others to write"
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
