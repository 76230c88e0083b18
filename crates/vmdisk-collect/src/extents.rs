//! In which pieces a file is stored, as FIEMAP tells: how many, shared with whom, compressed, reserved.

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

/// What is told of a file's pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    pub(crate) count: Fact<u64>,
    pub(crate) is_capped: Fact<bool>,
    pub(crate) shared: Fact<bool>,
    pub(crate) compressed: Fact<bool>,
    pub(crate) unwritten: Fact<u64>,
}

impl Extents {
    /// Nothing could be found out, for this reason.
    pub(crate) fn unknown(unknown: &Unknown) -> Self {
        Self {
            count: Fact::Unknown(unknown.clone()),
            is_capped: Fact::Unknown(unknown.clone()),
            shared: Fact::Unknown(unknown.clone()),
            compressed: Fact::Unknown(unknown.clone()),
            unwritten: Fact::Unknown(unknown.clone()),
        }
    }

    /// There is no such thing here.
    pub(crate) fn absent() -> Self {
        Self {
            count: Fact::Absent,
            is_capped: Fact::Absent,
            shared: Fact::Absent,
            compressed: Fact::Absent,
            unwritten: Fact::Absent,
        }
    }
}

/// After so many pieces, or so long, it is known well enough that there are many.
const MOST: u64 = 65_536;
const LONGEST: Duration = Duration::from_millis(20);

/// How many are asked for at once.
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

/// `struct fiemap` of linux/fiemap.h, with room for what it is asked for.
#[repr(C)]
#[derive(Clone, Debug)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

/// FS_IOC_FIEMAP, whose number has the size of the structure without the extents.
const FIEMAP: Opcode = ioctl::opcode::read_write::<[u8; 32]>(b'f', 11);

/// Asks for the next pieces. Nothing is written back first: what is still in memory has no place yet, and says so.
fn ask(file: &File, start: u64) -> io::Result<Vec<Extent>> {
    let mut request = Request {
        start,
        length: u64::MAX - start,
        flags: 0,
        mapped_extents: 0,
        extent_count: AT_ONCE as u32,
        reserved: 0,
        extents: [Extent::default(); AT_ONCE],
    };
    // SAFETY: FS_IOC_FIEMAP takes a pointer to `struct fiemap`, which `Request` is, field for field, and writes at most
    // `extent_count` extents behind it, for which `Request` has room. Every pattern of bits is a value of its integers.
    unsafe {
        let updater = Updater::<FIEMAP, Request>::new(&mut request);
        ioctl::ioctl(file, updater)?;
    }
    let count = (request.mapped_extents as usize).min(AT_ONCE);
    Ok(request.extents[..count].to_vec())
}

/// Counts the pieces of a file that is opened for reading.
pub(crate) fn of(file: &File, path: &str) -> Extents {
    let began = Instant::now();
    let mut seen = Seen::default();
    let mut start = 0;
    loop {
        let extents = match ask(file, start) {
            Ok(extents) => extents,
            Err(error) => {
                return match Errno::from_io_error(&error) {
                    // tmpfs, FUSE and network filesystems do not tell.
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
        // A filesystem whose answer does not get on must not be asked for ever.
        let end = extents.last().filter(|last| last.flags & LAST == 0);
        let end = end.and_then(|last| last.logical.checked_add(last.length));
        match end.filter(|end| *end > start) {
            Some(end) if seen.looked_at < MOST && began.elapsed() < LONGEST => start = end,
            more => return seen.told(more.is_some()),
        }
    }
}

/// What was seen so far.
#[derive(Debug, Default)]
struct Seen {
    looked_at: u64,
    pieces: u64,
    /// Where the device would go on if the next extent belonged to the same piece.
    next: Option<u64>,
    shared: bool,
    compressed: bool,
    unwritten: u64,
}

impl Seen {
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
        self.compressed |= has(ENCODED);
        if has(UNWRITTEN) {
            self.unwritten = self.unwritten.saturating_add(length);
        }
        if has(NOT_YET_ALLOCATED | UNKNOWN_PLACE) {
            // It will be stored somewhere, and nobody knows where.
            self.next = None;
            return;
        }
        // A compressed extent is shorter on the device than it says, and one within an inode is on none.
        let has_length = !has(ENCODED) && !has(INLINE);
        if self.next != Some(physical) || !has_length {
            self.pieces += 1;
        }
        self.next = physical.checked_add(length).filter(|_| has_length);
    }

    fn told(self, is_capped: bool) -> Extents {
        Extents {
            count: Fact::Known(self.pieces),
            is_capped: Fact::Known(is_capped),
            shared: Fact::Known(self.shared),
            compressed: Fact::Known(self.compressed),
            unwritten: Fact::Known(self.unwritten),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(extents: &[(u64, u64, u32)]) -> Extents {
        let mut seen = Seen::default();
        for (physical, length, flags) in extents {
            seen.add(&Extent {
                physical: *physical,
                length: *length,
                flags: *flags,
                ..Extent::default()
            });
        }
        seen.told(false)
    }

    #[test]
    fn the_structures_have_the_sizes_of_the_kernels() {
        assert_eq!(size_of::<Extent>(), 56);
        assert_eq!(size_of::<Request>(), 32 + AT_ONCE * 56);
        // As linux/fs.h and the preprocessor have it.
        assert_eq!(FIEMAP, 0xC020_660B);
    }

    #[test]
    fn extents_that_follow_each_other_on_the_device_are_one_piece() {
        let pieces = |extents| told(extents).count;
        assert_eq!(pieces(&[]), Fact::Known(0));
        assert_eq!(pieces(&[(0, 8, 0), (8, 8, 0), (100, 8, 0)]), Fact::Known(2));
        // Of compressed ones nobody knows where they end.
        assert_eq!(pieces(&[(0, 8, ENCODED), (8, 8, ENCODED)]), Fact::Known(2));
        assert_eq!(
            pieces(&[(0, 8, NOT_YET_ALLOCATED | UNKNOWN_PLACE)]),
            Fact::Known(0)
        );
        assert_eq!(pieces(&[(u64::MAX, 8, 0), (0, 8, 0)]), Fact::Known(2));
    }

    #[test]
    fn flags_of_any_piece_are_flags_of_the_file() {
        let extents = told(&[(0, 8, 0), (8, 16, UNWRITTEN), (24, 8, SHARED | LAST)]);
        assert_eq!(extents.shared, Fact::Known(true));
        assert_eq!(extents.compressed, Fact::Known(false));
        assert_eq!(extents.unwritten, Fact::Known(16));
        assert_eq!(extents.count, Fact::Known(1));
    }
}
