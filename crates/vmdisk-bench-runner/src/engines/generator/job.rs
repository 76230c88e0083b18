//! One job: its queue of requests, and their buffers.

use std::time::{Duration, Instant};

use super::memory::SharedMemory;
use super::queue::{Request, RequestQueue, Transfer};
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
    /// Buffers from an offset to the end of the memory.
    #[allow(
        unsafe_code,
        reason = "memory shared with a device has an address but no owner"
    )]
    pub(super) fn new(memory: &SharedMemory, offset: usize, slots_bytes: usize, seed: u64) -> Self {
        let pool = offset + slots_bytes;
        let buffers = Self {
            slots: memory.address() + offset,
            pool: memory.address() + pool,
            pool_bytes: memory.length() - pool,
        };
        // SAFETY: the pool is the last part of the mapping, and no request is under way that could use it.
        let pool =
            unsafe { std::slice::from_raw_parts_mut(buffers.pool as *mut u8, buffers.pool_bytes) };
        Noise::new(seed).fill(pool);
        buffers
    }

    fn slot(&self, index: usize, block: usize) -> usize {
        self.slots + index * block
    }

    /// Returns a block of random data, aligned to 4 KiB.
    fn noise(&self, noise: &mut Noise, block: usize) -> usize {
        let places = (self.pool_bytes - block) / 4096 + 1;
        let place = noise.below(places as u64) as usize;
        self.pool + place * 4096
    }
}

pub(super) struct GeneratorJob<'a> {
    plan: &'a RequestPlan<'a>,
    buffers: &'a Buffers,
    job: usize,
    queue: Box<dyn RequestQueue>,
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
        queue: Box<dyn RequestQueue>,
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
                sent = self.send_due(began, sent)?;
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
    fn send_due(&mut self, began: Instant, mut sent: u64) -> Result<u64, Error> {
        while let Some(slot) = self.free.pop() {
            let at = self.plan.due(began, sent);
            if at > Instant::now() {
                self.free.push(slot);
                break;
            }
            self.send(slot, at)?;
            sent += 1;
            let is_enough = match self.plan.limit {
                Limit::Requests(count) => sent >= count,
                Limit::Time(_) => false,
            };
            if self.is_flush_due() || is_enough {
                break;
            }
        }
        Ok(sent)
    }

    /// Sends a request; its latency counts from its due time, so that a late request includes its wait.
    fn send(&mut self, slot: usize, due: Instant) -> Result<(), Error> {
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
        let address = if reads {
            let index = self.job * self.plan.depth + slot;
            self.buffers.slot(index, *block)
        } else {
            self.writes_since_flush += 1;
            self.buffers.noise(&mut self.noise, *block)
        };
        let transfer = Transfer {
            offset: start,
            address,
            length: *block,
        };
        let request = if reads {
            Request::Read(transfer)
        } else {
            Request::Write(transfer)
        };
        self.queue.add(slot, request).map_err(failed)
    }

    /// Flushes while no other request is under way.
    fn flush(&mut self, timed_from: Instant) -> Result<(), Error> {
        let sent = Instant::now();
        self.queue.add(0, Request::Flush).map_err(failed)?;
        self.queue.complete(&mut |_| ()).map_err(failed)?;
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
        let Self {
            queue,
            sent,
            free,
            tally,
            ..
        } = self;
        let mut done = |slot: usize| {
            let now = Instant::now();
            let (sent, reads) = sent[slot];
            free.push(slot);
            if now < timed_from {
                return;
            }
            let latencies = if reads {
                &mut tally.read
            } else {
                &mut tally.write
            };
            latencies.add(nanoseconds(now - sent));
            tally.point(now - timed_from, block);
        };
        queue.complete(&mut done).map_err(failed)
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::program("the generator", format!("a request failed: {error}"))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
