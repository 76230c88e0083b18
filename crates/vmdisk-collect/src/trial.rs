//! The direct I/O trial: writes an unnamed file with O_DIRECT in a directory given by the user.
//!
//! The file has no name (O_TMPFILE), inherits the directory's NOCOW flag, and is removed when it is closed.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};
use vmdisk_facts::path::{Dio, DioAlign, TrialOutcome};
use vmdisk_facts::{Fact, Reason};

use crate::obstacle::{errno_name, obstacle};

const LENGTH: usize = 64 * 1024;

/// Tries direct I/O in an existing directory.
pub(crate) fn in_directory(directory: &Path) -> Dio {
    let open = |extra: OFlags| {
        rustix::fs::open(
            directory,
            OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | extra,
            Mode::RUSR | Mode::WUSR,
        )
    };
    let nameless = match open(OFlags::DIRECT) {
        Ok(nameless) => nameless,
        // EINVAL means that O_DIRECT is refused only if opening works without it.
        Err(Errno::INVAL) if open(OFlags::empty()).is_ok() => {
            return Dio {
                open: failed(Errno::INVAL),
                ..Dio::default()
            };
        }
        Err(error) => return no_trial(directory, error),
    };
    let (dioalign, mem, off) = alignment(&nameless);
    let buffer = Aligned::new();
    // The first write allocates; the second overwrites, which must not wait if it is really direct.
    let first = rustix::io::pwrite(&nameless, buffer.bytes(), 0);
    let nowait_overwrite = match first {
        Ok(LENGTH) => overwrite_without_waiting(&nameless, buffer.bytes()),
        Ok(written) => Fact::unknown(
            Reason::Other("io".to_owned()),
            format!("only {written} of {LENGTH} bytes were written"),
        ),
        Err(error) => Fact::Unknown(obstacle("a direct write of 64 KiB", &error.into())),
    };
    let w512 = match rustix::io::pwrite(&nameless, &buffer.bytes()[..512], 512) {
        Ok(_) => Fact::Known(TrialOutcome::Ok),
        Err(error) => failed(error),
    };
    Dio {
        dioalign,
        mem,
        off,
        open: Fact::Known(TrialOutcome::Ok),
        nowait_overwrite,
        w512,
        ..Dio::default()
    }
}

/// Overwrites the data with RWF_NOWAIT until only the filesystem's write path can be a reason to wait.
///
/// The metadata of the first write may still be pending, so a single attempt proves nothing.
fn overwrite_without_waiting(file: &OwnedFd, bytes: &[u8]) -> Fact<TrialOutcome> {
    const ATTEMPTS: u32 = 5;
    // The result does not matter: this only completes the first write.
    let _ = rustix::fs::fdatasync(file);
    let mut outcome = Fact::NotCollected;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            thread::sleep(Duration::from_millis(5));
        }
        match rustix::io::pwritev2(file, &[IoSlice::new(bytes)], 0, ReadWriteFlags::NOWAIT) {
            Ok(_) => return Fact::Known(TrialOutcome::Ok),
            Err(Errno::AGAIN) => outcome = failed(Errno::AGAIN),
            Err(error) => return failed(error),
        }
    }
    outcome
}

fn failed(error: Errno) -> Fact<TrialOutcome> {
    Fact::Known(TrialOutcome::Failed(errno_name(error)))
}

fn no_trial(directory: &Path, error: Errno) -> Dio {
    let what = format!("{}: an unnamed file", directory.display());
    let unknown = match error {
        // The filesystem has no O_TMPFILE, which says nothing about O_DIRECT.
        Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL => Fact::unknown(
            Reason::UnsupportedKernel,
            format!("{what} is not supported"),
        ),
        _ => Fact::Unknown(obstacle(&what, &error.into())),
    };
    Dio {
        open: unknown.clone(),
        nowait_overwrite: unknown.clone(),
        w512: unknown,
        ..Dio::default()
    }
}

fn alignment(file: &OwnedFd) -> (Fact<DioAlign>, Fact<u64>, Fact<u64>) {
    match rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(stat) if StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN) => (
            Fact::Known(DioAlign::Set),
            Fact::Known(u64::from(stat.stx_dio_mem_align)),
            Fact::Known(u64::from(stat.stx_dio_offset_align)),
        ),
        Ok(_) => (
            Fact::Known(DioAlign::Unset),
            Fact::NotCollected,
            Fact::NotCollected,
        ),
        Err(error) => (
            Fact::Unknown(obstacle("statx", &error.into())),
            Fact::NotCollected,
            Fact::NotCollected,
        ),
    }
}

/// A page-aligned buffer within a larger allocation.
struct Aligned {
    storage: Vec<u8>,
    start: usize,
}

impl Aligned {
    const PAGE: usize = 4096;

    fn new() -> Self {
        // Not zeroes, which a filesystem may store as a hole. WrittenMounts, so that its pages are allocated.
        let storage: Vec<u8> = (0..LENGTH + Self::PAGE)
            .map(|place| (place % 251) as u8)
            .collect();
        let start = storage.as_ptr().align_offset(Self::PAGE).min(Self::PAGE);
        Self { storage, start }
    }

    fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + LENGTH]
    }
}
