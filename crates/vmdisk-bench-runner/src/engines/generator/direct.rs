//! A file or block device of this host, through io_uring and without the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use io_uring::{IoUring, opcode, types};
use rustix::fs::OFlags;

use super::memory::SharedMemory;
use super::queue::{Request, RequestQueue};

/// Opens a disk, and returns it with its size in bytes.
pub(super) fn open(path: &Path, is_written: bool) -> io::Result<(Arc<File>, u64)> {
    let mut options = OpenOptions::new();
    let direct = OFlags::DIRECT.bits() as i32;
    let mut file = options
        .read(true)
        .write(is_written)
        .custom_flags(direct)
        .open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    Ok((Arc::new(file), size))
}

/// The ring of one job.
pub(super) struct DirectQueue {
    ring: IoUring,
    file: Arc<File>,
    /// Length of the request in each slot.
    lengths: Vec<usize>,
    /// The buffers of the requests.
    _memory: Arc<SharedMemory>,
}

impl DirectQueue {
    pub(super) fn new(
        file: Arc<File>,
        memory: Arc<SharedMemory>,
        depth: usize,
    ) -> io::Result<Self> {
        let entries = u32::try_from(depth.next_power_of_two()).unwrap_or(u32::MAX);
        Ok(Self {
            ring: IoUring::new(entries)?,
            file,
            lengths: vec![0; depth],
            _memory: memory,
        })
    }
}

impl RequestQueue for DirectQueue {
    #[allow(unsafe_code, reason = "the kernel uses buffers by their address")]
    fn add(&mut self, slot: usize, request: Request) -> io::Result<()> {
        let file = types::Fd(self.file.as_raw_fd());
        let long = |length: usize| u32::try_from(length).map_err(io::Error::other);
        let (entry, length) = match request {
            Request::Read(at) => {
                let read = opcode::Read::new(file, at.address as *mut u8, long(at.length)?);
                (read.offset(at.offset).build(), at.length)
            }
            Request::Write(at) => {
                let write = opcode::Write::new(file, at.address as *const u8, long(at.length)?);
                (write.offset(at.offset).build(), at.length)
            }
            Request::Flush => {
                let sync = opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC);
                (sync.build(), 0)
            }
        };
        self.lengths[slot] = length;
        // SAFETY: the file and the memory of the buffer live as long as this queue.
        unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) }
            .map_err(io::Error::other)
    }

    fn complete(&mut self, done: &mut dyn FnMut(usize)) -> io::Result<()> {
        self.ring.submit_and_wait(1)?;
        for completion in self.ring.completion() {
            let slot = completion.user_data() as usize;
            let result = completion.result();
            if result < 0 {
                return Err(io::Error::from_raw_os_error(-result));
            }
            if result as usize != self.lengths[slot] {
                return Err(io::Error::other("only a part of a block was transferred"));
            }
            done(slot);
        }
        Ok(())
    }
}
