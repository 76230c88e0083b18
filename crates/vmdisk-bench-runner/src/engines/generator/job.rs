//! One job: its queue of requests, and their buffers.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use blkio::{Blkioq, Completion, MemoryRegion, ReqFlags};

use super::tally::Tally;
use super::{Limit, RequestPlan};
use crate::engines::noise::Noise;
use crate::{Access, Cancel, Error};

/// Memory shared with the device: a slot for each request, followed by random data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers {
    slots: usize,
    pool: usize,
    pool_bytes: usize,
}

impl Buffers {
    #[allow(
        unsafe_code,
        reason = "memory shared with a device has an address but no owner"
    )]
    pub(super) fn new(region: &MemoryRegion, slots_bytes: usize, seed: u64) -> Self {
        let buffers = Self {
            slots: region.addr,
            pool: region.addr + slots_bytes,
            pool_bytes: region.len - slots_bytes,
        };
        // SAFETY: the region is mapped read-write from `addr` for `len` bytes, and the pool is its last part. It stays mapped
        // as long as the Blkio it came from, which `generate` keeps, and no other reference to it exists yet.
        let pool =
            unsafe { std::slice::from_raw_parts_mut(buffers.pool as *mut u8, buffers.pool_bytes) };
        Noise::new(seed).fill(pool);
        buffers
    }

    fn slot(&self, index: usize, block: usize) -> *mut u8 {
        (self.slots + index * block) as *mut u8
    }

    /// Returns a block of random data, aligned to 4 KiB.
    fn noise(&self, noise: &mut Noise, block: usize) -> *const u8 {
        let places = (self.pool_bytes - block) / 4096 + 1;
        let place = noise.below(places as u64) as usize;
        (self.pool + place * 4096) as *const u8
    }
}

/// The slot number of a flush.
const FLUSH: usize = usize::MAX;

pub(super) struct GeneratorJob<'a> {
    plan: &'a RequestPlan<'a>,
    buffers: &'a Buffers,
    job: usize,
    queue: Blkioq,
    noise: Noise,
    tally: Tally,
    /// The time at which each slot's request was sent, and true if it is a read.
    sent: Vec<(Instant, bool)>,
    free: Vec<usize>,
    next_block: u64,
    writes_since_flush: u32,
}

impl<'a> GeneratorJob<'a> {
    pub(super) fn new(
        plan: &'a RequestPlan<'a>,
        buffers: &'a Buffers,
        job: usize,
        queue: Blkioq,
        noise: Noise,
    ) -> Self {
        Self {
            plan,
            buffers,
            job,
            queue,
            noise,
            tally: Tally::new(),
            sent: vec![(Instant::now(), true); plan.depth],
            free: (0..plan.depth).rev().collect(),
            next_block: 0,
            writes_since_flush: 0,
        }
    }

    pub(super) fn run(mut self, began: Instant, cancel: &Cancel) -> Result<Tally, Error> {
        let timed_from = began + self.plan.ramp;
        let mut sent = 0_u64;
        let mut ended = None;
        loop {
            let now = Instant::now();
            let is_over = cancel.is_cancelled()
                || match self.plan.limit {
                    Limit::Time(time) => now >= timed_from + time,
                    Limit::Requests(count) => sent >= count,
                };
            let under_way = self.plan.depth - self.free.len();
            if is_over && under_way == 0 {
                break;
            }
            let flush_is_due = self.is_flush_due();
            if flush_is_due && under_way == 0 {
                self.flush(timed_from)?;
                continue;
            }
            if !is_over && !flush_is_due {
                sent = self.send_due(began, sent);
            }
            if self.free.len() == self.plan.depth {
                // Nothing is in flight, and the next request is not due yet.
                std::thread::sleep(Duration::from_micros(20));
                continue;
            }
            self.receive(timed_from)?;
        }
        if self.plan.load.ends_with_sync {
            self.flush(timed_from)?;
            ended = Some(Instant::now());
        }
        let end = ended.unwrap_or_else(Instant::now);
        self.tally.seconds = end.saturating_duration_since(timed_from).as_secs_f64();
        Ok(self.tally)
    }

    fn is_flush_due(&self) -> bool {
        let every = self.plan.load.sync_every;
        every.is_some_and(|every| self.writes_since_flush >= every.max(1))
    }

    /// Sends requests that are due, up to the next flush; returns the number of requests sent since the start.
    fn send_due(&mut self, began: Instant, mut sent: u64) -> u64 {
        while let Some(slot) = self.free.pop() {
            let at = self.plan.due(began, sent);
            if at > Instant::now() {
                self.free.push(slot);
                break;
            }
            self.send(slot, at);
            sent += 1;
            let is_enough = match self.plan.limit {
                Limit::Requests(count) => sent >= count,
                Limit::Time(_) => false,
            };
            if self.is_flush_due() || is_enough {
                break;
            }
        }
        sent
    }

    /// Sends a request; its latency counts from its due time, so that a late request includes its wait.
    fn send(&mut self, slot: usize, due: Instant) {
        let RequestPlan {
            load, range, block, ..
        } = self.plan;
        let blocks = range.length / load.block_bytes;
        let (place, reads) = match load.access {
            Access::SequentialRead | Access::SequentialWrite => {
                let place = self.next_block;
                self.next_block = (place + 1) % blocks;
                (place, load.access.reads())
            }
            Access::RandomRead | Access::RandomWrite => {
                (self.noise.below(blocks), load.access.reads())
            }
            // Seven of ten requests are reads.
            Access::RandomMixed => (self.noise.below(blocks), self.noise.below(10) < 7),
        };
        let start = range.offset + place * load.block_bytes;
        self.sent[slot] = (due, reads);
        if reads {
            let buffer = self.buffers.slot(self.job * self.plan.depth + slot, *block);
            self.queue
                .read(start, buffer, *block, slot, ReqFlags::empty());
        } else {
            let buffer = self.buffers.noise(&mut self.noise, *block);
            self.queue
                .write(start, buffer, *block, slot, ReqFlags::empty());
            self.writes_since_flush += 1;
        }
    }

    fn flush(&mut self, timed_from: Instant) -> Result<(), Error> {
        let sent = Instant::now();
        self.queue.flush(FLUSH, ReqFlags::empty());
        self.complete(|_, done| {
            debug_assert_eq!(done, FLUSH, "no other request is in flight");
        })?;
        self.writes_since_flush = 0;
        let now = Instant::now();
        self.tally.flushes += 1;
        if now >= timed_from {
            self.tally.sync.add(nanoseconds(now - sent));
        }
        Ok(())
    }

    fn receive(&mut self, timed_from: Instant) -> Result<(), Error> {
        let block = self.plan.load.block_bytes;
        self.complete(|job, slot| {
            let now = Instant::now();
            let (sent, reads) = job.sent[slot];
            job.free.push(slot);
            if now < timed_from {
                return;
            }
            let latencies = if reads {
                &mut job.tally.read
            } else {
                &mut job.tally.write
            };
            latencies.add(nanoseconds(now - sent));
            job.tally.point(now - timed_from, block);
        })
    }

    /// Waits for at least one completion and passes on each of them.
    #[allow(unsafe_code, reason = "blkio initializes the completions it returns")]
    fn complete(&mut self, mut done: impl FnMut(&mut Self, usize)) -> Result<(), Error> {
        /// Timeout after which the device is considered broken.
        const TIMEOUT: Duration = Duration::from_secs(30);
        let mut completions: [MaybeUninit<Completion>; 64] = [const { MaybeUninit::uninit() }; 64];
        let mut timeout = TIMEOUT;
        let count = self
            .queue
            .do_io(&mut completions, 1, Some(&mut timeout), None)
            .map_err(|error| Error::program("the generator", error.message()))?;
        for completion in &completions[..count] {
            // SAFETY: do_io returned that it initialized the first `count` completions.
            let completion = unsafe { completion.assume_init_ref() };
            if completion.ret != 0 {
                let error = std::io::Error::from_raw_os_error(-completion.ret);
                return Err(Error::program(
                    "the generator",
                    format!("a request failed: {error}"),
                ));
            }
            done(self, completion.user_data);
        }
        Ok(())
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
