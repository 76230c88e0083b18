//! What a job sends requests to.

use std::io;

/// A request for a range of the disk; the memory belongs to a [`super::memory::SharedMemory`] that the queue keeps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Read(Transfer),
    Write(Transfer),
    Flush,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// Byte of the disk.
    pub(super) offset: u64,
    /// Address in memory.
    pub(super) address: usize,
    pub(super) length: usize,
}

/// Requests under way, each with a slot of its own.
pub(super) trait RequestQueue: Send {
    /// Adds a request; it is sent at the latest by [`RequestQueue::complete`].
    fn add(&mut self, slot: usize, request: Request) -> io::Result<()>;

    /// Waits for at least one request, and reports the slot of each that has succeeded.
    ///
    /// # Errors
    /// If a request failed, or the device does not answer.
    fn complete(&mut self, done: &mut dyn FnMut(usize)) -> io::Result<()>;
}
