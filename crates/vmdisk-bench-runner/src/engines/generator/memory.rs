//! Memory that a program behind a socket can map, too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Zeroed memory with a file descriptor.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    file: OwnedFd,
    address: usize,
    length: usize,
}

impl SharedMemory {
    #[allow(unsafe_code, reason = "a mapping has no owner but this value")]
    pub(super) fn new(length: usize) -> io::Result<Self> {
        let file = memfd_create("vmdisk-bench", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, length as u64)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free place for a new file, so that the mapping aliases nothing.
        let start = unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0)? };
        Ok(Self {
            file,
            address: start as usize,
            length,
        })
    }

    /// Its first address, which begins a page.
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Its length, in bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The file to map.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns the address of a value in it.
    ///
    /// # Panics
    /// If the value is not inside, or not aligned.
    pub(super) fn place<T>(&self, offset: usize) -> *mut T {
        assert!(offset + size_of::<T>() <= self.length && offset.is_multiple_of(align_of::<T>()));
        (self.address + offset) as *mut T
    }
}

impl Drop for SharedMemory {
    #[allow(unsafe_code, reason = "the mapping ends with this value")]
    fn drop(&mut self) {
        // SAFETY: the mapping is as long as `new` made it, and queues keep this value for as long as they use it.
        let _ = unsafe { munmap(self.address as *mut _, self.length) };
    }
}
