//! The extents of a file, from FIEMAP: their number, and whether they are shared or preallocated.

#![allow(
    unsafe_code,
    reason = "FIEMAP is an ioctl that rustix does not wrap; the one call is below, with its reasons"
)]

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::ioctl::{self, Opcode, Updater};
use vmdisk_facts::{Fact, Unknown};

use crate::obstacle::obstacle;

/// Facts about the extents of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    pub(crate) count: Fact<u64>,
    pub(crate) is_capped: Fact<bool>,
    pub(crate) shared: Fact<bool>,
    pub(crate) unwritten: Fact<u64>,
}

impl Extents {
    /// All facts unknown for one reason.
    pub(crate) fn unknown(unknown: &Unknown) -> Self {
        Self {
            count: Fact::Unknown(unknown.clone()),
            is_capped: Fact::Unknown(unknown.clone()),
            shared: Fact::Unknown(unknown.clone()),
            unwritten: Fact::Unknown(unknown.clone()),
        }
    }

    /// All facts absent: the file has no extents.
    pub(crate) fn absent() -> Self {
        Self {
            count: Fact::Absent,
            is_capped: Fact::Absent,
            shared: Fact::Absent,
            unwritten: Fact::Absent,
        }
    }
}

/// Limits after which a file is known to have many extents.
const MAX_PIECES: u64 = 65_536;
const MAX_TIME: Duration = Duration::from_millis(20);

/// Number of extents per request.
const AT_ONCE: usize = 128;

const LAST: u32 = 0x1;
const UNKNOWN_PLACE: u32 = 0x2;
const NOT_YET_ALLOCATED: u32 = 0x4;
const ENCODED: u32 = 0x8;
const INLINE: u32 = 0x200;
const UNWRITTEN: u32 = 0x800;
const SHARED: u32 = 0x2000;

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` of linux/fiemap.h, with space for the requested extents.
#[repr(C)]
#[derive(Clone, Debug)]
struct FiemapRequest {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

/// FS_IOC_FIEMAP, whose number contains the size of the structure without extents.
const FIEMAP: Opcode = ioctl::opcode::read_write::<[u8; 32]>(b'f', 11);

/// Requests the next extents. Delayed allocation is not flushed; such extents are flagged.
fn request(file: &File, start: u64) -> io::Result<Vec<Extent>> {
    let mut request = FiemapRequest {
        start,
        length: u64::MAX - start,
        flags: 0,
        mapped_extents: 0,
        extent_count: AT_ONCE as u32,
        reserved: 0,
        extents: [Extent::default(); AT_ONCE],
    };
    // SAFETY: FS_IOC_FIEMAP takes a pointer to `struct fiemap`, which `FiemapRequest` matches field by field, and writes at most
    // `extent_count` extents after it, for which `FiemapRequest` has space. Every bit pattern is a valid value of its integers.
    unsafe {
        let updater = Updater::<FIEMAP, FiemapRequest>::new(&mut request);
        ioctl::ioctl(file, updater)?;
    }
    let count = (request.mapped_extents as usize).min(AT_ONCE);
    Ok(request.extents[..count].to_vec())
}

/// Counts the contiguous pieces of an open file.
pub(crate) fn of(file: &File, path: &str) -> Extents {
    let began = Instant::now();
    let mut seen = Counter::default();
    let mut start = 0;
    loop {
        let extents = match request(file, start) {
            Ok(extents) => extents,
            Err(error) => {
                return match Errno::from_io_error(&error) {
                    // tmpfs, FUSE and network filesystems do not support FIEMAP.
                    Some(Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS | Errno::INVAL) => {
                        Extents::absent()
                    }
                    Some(_) | None => {
                        Extents::unknown(&obstacle(&format!("{path}: FS_IOC_FIEMAP"), &error))
                    }
                };
            }
        };
        for extent in &extents {
            seen.add(extent);
        }
        // A filesystem that makes no progress must not cause an endless loop.
        let end = extents.last().filter(|last| last.flags & LAST == 0);
        let end = end.and_then(|last| last.logical.checked_add(last.length));
        match end.filter(|end| *end > start) {
            Some(end) if seen.looked_at < MAX_PIECES && began.elapsed() < MAX_TIME => start = end,
            more => return seen.into_extents(more.is_some()),
        }
    }
}

/// The extents counted so far.
#[derive(Debug, Default)]
struct Counter {
    looked_at: u64,
    pieces: u64,
    /// The device offset at which an extent would continue the current piece.
    next: Option<u64>,
    shared: bool,
    unwritten: u64,
}

impl Counter {
    fn add(&mut self, extent: &Extent) {
        let Extent {
            logical: _,
            physical,
            length,
            reserved64: _,
            flags,
            reserved: _,
        } = *extent;
        let has = |flag: u32| flags & flag != 0;
        self.looked_at += 1;
        self.shared |= has(SHARED);
        if has(UNWRITTEN) {
            self.unwritten = self.unwritten.saturating_add(length);
        }
        if has(NOT_YET_ALLOCATED | UNKNOWN_PLACE) {
            // It is not allocated yet, so its location is unknown.
            self.next = None;
            return;
        }
        // A compressed extent is shorter on the device than its length, and an inline extent is not on the device.
        let has_length = !has(ENCODED) && !has(INLINE);
        if self.next != Some(physical) || !has_length {
            self.pieces += 1;
        }
        self.next = physical.checked_add(length).filter(|_| has_length);
    }

    fn into_extents(self, is_capped: bool) -> Extents {
        Extents {
            count: Fact::Known(self.pieces),
            is_capped: Fact::Known(is_capped),
            shared: Fact::Known(self.shared),
            unwritten: Fact::Known(self.unwritten),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents_of(extents: &[(u64, u64, u32)]) -> Extents {
        let mut seen = Counter::default();
        for (physical, length, flags) in extents {
            seen.add(&Extent {
                physical: *physical,
                length: *length,
                flags: *flags,
                ..Extent::default()
            });
        }
        seen.into_extents(false)
    }

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<Extent>(), 56);
        assert_eq!(size_of::<FiemapRequest>(), 32 + AT_ONCE * 56);
        // The value according to linux/fs.h and the preprocessor.
        assert_eq!(FIEMAP, 0xC020_660B);
    }

    #[test]
    fn adjacent_extents_are_one_piece() {
        let pieces = |extents| extents_of(extents).count;
        assert_eq!(pieces(&[]), Fact::Known(0));
        assert_eq!(pieces(&[(0, 8, 0), (8, 8, 0), (100, 8, 0)]), Fact::Known(2));
        // The end of a compressed extent is unknown.
        assert_eq!(pieces(&[(0, 8, ENCODED), (8, 8, ENCODED)]), Fact::Known(2));
        assert_eq!(
            pieces(&[(0, 8, NOT_YET_ALLOCATED | UNKNOWN_PLACE)]),
            Fact::Known(0)
        );
        assert_eq!(pieces(&[(u64::MAX, 8, 0), (0, 8, 0)]), Fact::Known(2));
    }

    #[test]
    fn a_flag_of_any_extent_applies_to_the_file() {
        let extents = extents_of(&[(0, 8, 0), (8, 16, UNWRITTEN), (24, 8, SHARED | LAST)]);
        assert_eq!(extents.shared, Fact::Known(true));
        assert_eq!(extents.unwritten, Fact::Known(16));
        assert_eq!(extents.count, Fact::Known(1));
    }
}
