//! Flushes that reach a device of the host, as counted by its kernel.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::{Semantics, WriteCache};

/// A device of the host whose flushes are counted.
#[derive(Debug)]
pub(crate) struct CountedDevice {
    sysfs: PathBuf,
    before: u64,
}

impl CountedDevice {
    /// Returns the disk of a file or device, if the kernel identifies it and counts its flushes (Linux 5.5).
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let number = if metadata.file_type().is_block_device() {
            metadata.rdev()
        } else {
            metadata.dev()
        };
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let mut sysfs = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        if sysfs.join("partition").exists() {
            sysfs.pop();
        }
        let before = flushes(&sysfs)?;
        Some(Self { sysfs, before })
    }

    /// Returns the write cache that the device reports.
    pub(crate) fn write_cache(&self) -> Option<WriteCache> {
        write_cache(&fs::read_to_string(self.sysfs.join("queue/write_cache")).ok()?)
    }

    /// Returns the number of flushes since the device was created.
    pub(crate) fn seen(&self) -> Option<u64> {
        Some(flushes(&self.sysfs)?.saturating_sub(self.before))
    }

    /// Records the flushes seen, and adds a complaint if some requested flushes did not arrive.
    ///
    /// Other programs use the device too, so only too few flushes prove anything.
    pub(crate) fn note(&self, semantics: &mut Semantics, reaches_device: bool) {
        semantics.flushes_seen = self.seen();
        let (Some(asked), Some(seen)) = (semantics.flushes_asked, semantics.flushes_seen) else {
            return;
        };
        if reaches_device && self.write_cache() == Some(WriteCache::WriteBack) && seen < asked / 2 {
            semantics.complaints.push(format!(
                "{asked} flushes were requested, but only {seen} reached {}",
                self.sysfs.file_name().unwrap_or_default().to_string_lossy()
            ));
        }
    }
}

/// Parses `queue/write_cache`.
pub(crate) fn write_cache(text: &str) -> Option<WriteCache> {
    match text.trim() {
        "write back" => Some(WriteCache::WriteBack),
        "write through" => Some(WriteCache::WriteThrough),
        _ => None,
    }
}

fn flushes(sysfs: &Path) -> Option<u64> {
    flushes_of(&fs::read_to_string(sysfs.join("stat")).ok()?)
}

/// Returns the sixteenth number of a `stat` file.
pub(crate) fn flushes_of(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(15)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_are_the_sixteenth_number() {
        assert_eq!(
            flushes_of("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 1999 17\n"),
            Some(1999)
        );
        assert_eq!(
            flushes_of("1 2 3 4 5 6 7 8 9 10 11\n"),
            None,
            "an old kernel"
        );
    }
}
