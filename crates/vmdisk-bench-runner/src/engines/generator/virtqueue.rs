//! A split virtqueue of a virtio-blk device, in memory that its program maps. Virtio 1.3, 2.7 and 5.2.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering, fence};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::memory::SharedMemory;
use super::queue::{Request, RequestQueue};

/// Timeout after which the device is considered broken.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Descriptors of a request: header, data and status.
const PARTS: usize = 3;

/// Longest queue that programs support.
const LONGEST: usize = 1024;

const SECTOR: u64 = 512;

/// Flags of a descriptor: another one follows; the device writes it.
const NEXT: u16 = 1;
const WRITTEN: u16 = 2;

/// Types of a request.
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;

/// A status that the device never returns.
const UNANSWERED: u8 = 0xff;

/// Offsets in the part of the memory that belongs to a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Number of descriptors.
    pub(crate) size: usize,
    pub(crate) descriptors: usize,
    pub(crate) available: usize,
    pub(crate) used: usize,
    headers: usize,
    statuses: usize,
    end: usize,
}

impl Layout {
    /// The part for a queue of this depth that begins at an offset; `None` if the queue is too deep.
    pub(super) fn at(start: usize, depth: usize) -> Option<Self> {
        let size = (PARTS * depth).next_power_of_two();
        let available = start + 16 * size;
        let used = (available + 6 + 2 * size).next_multiple_of(4);
        let headers = (used + 6 + 8 * size).next_multiple_of(16);
        let statuses = headers + 16 * depth;
        (size <= LONGEST).then_some(Self {
            size,
            descriptors: start,
            available,
            used,
            headers,
            statuses,
            end: (statuses + depth).next_multiple_of(4096),
        })
    }

    /// The offset behind the part.
    pub(super) fn end(&self) -> usize {
        self.end
    }
}

/// A queue that the program behind a socket serves.
pub(crate) struct VirtQueue {
    memory: Arc<SharedMemory>,
    layout: Layout,
    /// Events for the device and of the device.
    kick: OwnedFd,
    call: OwnedFd,
    /// The connection; it ends with the program.
    stream: UnixStream,
    /// Numbers of requests made available and seen as used.
    available: u16,
    used: u16,
    is_kick_due: bool,
    /// True for each slot with a request under way.
    under_way: Vec<bool>,
}

impl VirtQueue {
    pub(crate) fn new(
        memory: Arc<SharedMemory>,
        layout: Layout,
        depth: usize,
        stream: UnixStream,
    ) -> io::Result<Self> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self {
            memory,
            layout,
            kick: event()?,
            call: event()?,
            stream,
            available: 0,
            used: 0,
            is_kick_due: false,
            under_way: vec![false; depth],
        })
    }

    pub(crate) fn kick(&self) -> BorrowedFd<'_> {
        self.kick.as_fd()
    }

    pub(crate) fn call(&self) -> BorrowedFd<'_> {
        self.call.as_fd()
    }

    #[allow(unsafe_code, reason = "memory shared with another program")]
    fn write<T>(&self, offset: usize, value: T) {
        // SAFETY: `place` returns an aligned place for a value in the mapping. The device may read it at any time, which
        // a volatile write allows for.
        unsafe { ptr::write_volatile(self.memory.place(offset), value) }
    }

    #[allow(unsafe_code, reason = "memory shared with another program")]
    fn read<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: `place` returns an aligned place for a value in the mapping, and it is only asked for integers.
        unsafe { ptr::read_volatile(self.memory.place(offset)) }
    }

    #[allow(unsafe_code, reason = "memory shared with another program")]
    fn index(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: `place` returns an aligned place in the mapping, which lives as long as `self`; both sides access it
        // atomically.
        unsafe { AtomicU16::from_ptr(self.memory.place(offset)) }
    }

    fn describe(&self, number: usize, offset: usize, length: usize, flags: u16) {
        let at = self.layout.descriptors + 16 * number;
        let address = self.memory.address() + offset;
        self.write(at, address as u64);
        self.write(at + 8, length as u32);
        self.write(at + 12, flags);
        self.write(at + 14, (number + 1) as u16);
    }

    fn has_used(&self) -> bool {
        self.index(self.layout.used + 2).load(Ordering::Acquire) != self.used
    }

    fn wait(&self) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: TIMEOUT.as_secs() as i64,
            tv_nsec: 0,
        };
        let mut events = [
            PollFd::new(&self.call, PollFlags::IN),
            PollFd::new(&self.stream, PollFlags::IN),
        ];
        if poll(&mut events, Some(&timeout))? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the device did not answer within {} s", TIMEOUT.as_secs()),
            ));
        }
        if !events[0].revents().is_empty() {
            rustix::io::read(&self.call, &mut [0; 8])?;
        } else if !self.has_used() {
            return Err(io::Error::other("the program behind the socket ended"));
        }
        Ok(())
    }
}

impl RequestQueue for VirtQueue {
    fn add(&mut self, slot: usize, request: Request) -> io::Result<()> {
        let layout = self.layout;
        let first = PARTS * slot;
        let header = layout.headers + 16 * slot;
        let status = layout.statuses + slot;
        let (kind, sector) = match request {
            Request::Read(at) => (READ, at.offset / SECTOR),
            Request::Write(at) => (WRITE, at.offset / SECTOR),
            Request::Flush => (FLUSH, 0),
        };
        self.write(header, kind);
        self.write(header + 4, 0_u32);
        self.write(header + 8, sector);
        self.write(status, UNANSWERED);
        self.describe(first, header, 16, NEXT);
        let last = match request {
            Request::Read(at) | Request::Write(at) => {
                let written = if kind == READ { WRITTEN } else { 0 };
                let offset = at.address - self.memory.address();
                self.describe(first + 1, offset, at.length, NEXT | written);
                first + 2
            }
            Request::Flush => first + 1,
        };
        self.describe(last, status, 1, WRITTEN);
        self.under_way[slot] = true;
        let entry = usize::from(self.available) % layout.size;
        self.write(layout.available + 4 + 2 * entry, first as u16);
        self.available = self.available.wrapping_add(1);
        // The device sees what was written before it sees the new index.
        self.index(layout.available + 2)
            .store(self.available, Ordering::Release);
        self.is_kick_due = true;
        Ok(())
    }

    fn complete(&mut self, done: &mut dyn FnMut(usize)) -> io::Result<()> {
        if std::mem::take(&mut self.is_kick_due) {
            // The index is written before the flag is read that says whether the device sleeps.
            fence(Ordering::SeqCst);
            let is_unwanted = self.read::<u16>(self.layout.used) & 1 != 0;
            if !is_unwanted {
                rustix::io::write(&self.kick, &1_u64.to_ne_bytes())?;
            }
        }
        while !self.has_used() {
            self.wait()?;
        }
        while self.has_used() {
            let entry = usize::from(self.used) % self.layout.size;
            let number = self.read::<u32>(self.layout.used + 4 + 8 * entry) as usize;
            self.used = self.used.wrapping_add(1);
            let slot = number / PARTS;
            if !self.under_way.get(slot).is_some_and(|is| *is) {
                return Err(io::Error::other(
                    "the device answered a request that was not sent",
                ));
            }
            self.under_way[slot] = false;
            match self.read::<u8>(self.layout.statuses + slot) {
                0 => done(slot),
                status => {
                    return Err(io::Error::other(format!(
                        "the device answered with status {status}"
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::generator::queue::Transfer;

    const DEPTH: usize = 5;

    fn queue() -> (VirtQueue, UnixStream) {
        let layout = Layout::at(4096, DEPTH).unwrap();
        let memory = Arc::new(SharedMemory::new(layout.end()).unwrap());
        let (ours, theirs) = UnixStream::pair().unwrap();
        (VirtQueue::new(memory, layout, DEPTH, ours).unwrap(), theirs)
    }

    fn read(queue: &VirtQueue) -> Request {
        Request::Read(Transfer {
            offset: 512,
            address: queue.memory.address(),
            length: 512,
        })
    }

    /// Answers as the device does: with the number of the first descriptor.
    fn answer(queue: &VirtQueue, number: usize, status: u8) {
        let used = queue.index(queue.layout.used + 2);
        let count = used.load(Ordering::Relaxed);
        let entry = usize::from(count) % queue.layout.size;
        queue.write(queue.layout.used + 4 + 8 * entry, number as u32);
        if let Some(place) = (number < PARTS * DEPTH).then_some(queue.layout.statuses) {
            queue.write(place + number / PARTS, status);
        }
        used.store(count.wrapping_add(1), Ordering::Release);
    }

    #[test]
    fn requests_are_answered_in_any_order_and_beyond_the_wrap_of_the_index() {
        let (mut queue, _device) = queue();
        for round in 0..20_000_usize {
            for slot in 0..DEPTH {
                queue.add(slot, read(&queue)).unwrap();
            }
            let mut done = Vec::new();
            for turn in 0..DEPTH {
                answer(&queue, PARTS * ((round + 3 * turn) % DEPTH), 0);
            }
            queue.complete(&mut |slot| done.push(slot)).unwrap();
            let expected: Vec<usize> = (0..DEPTH).map(|turn| (round + 3 * turn) % DEPTH).collect();
            assert_eq!(done, expected, "{round}");
            let newest = queue.index(queue.layout.available + 2);
            assert_eq!(
                usize::from(newest.load(Ordering::Relaxed)),
                (round + 1) * DEPTH % 65536
            );
        }
    }

    #[test]
    fn a_device_that_answers_wrongly_or_ends_is_an_error() {
        for (number, status, why) in [
            (PARTS, 0, "was not sent"),
            (PARTS * DEPTH, 0, "was not sent"),
            (usize::MAX, 0, "was not sent"),
            (0, 1, "status 1"),
            (0, UNANSWERED, "status 255"),
        ] {
            let (mut queue, _device) = queue();
            queue.add(0, read(&queue)).unwrap();
            answer(&queue, number, status);
            let error = queue.complete(&mut |_| panic!("{number}")).unwrap_err();
            assert!(error.to_string().contains(why), "{number}: {error}");
        }
        let (mut queue, device) = queue();
        queue.add(0, Request::Flush).unwrap();
        drop(device);
        let error = queue
            .complete(&mut |_| panic!("nobody answers"))
            .unwrap_err();
        assert!(error.to_string().contains("ended"), "{error}");
    }
}
