//! Our own generator of requests: the same on a vhost-user-blk socket and, through io_uring, on a file or device.

use std::mem::MaybeUninit;
use std::path::Path;
use std::time::{Duration, Instant};

use blkio::{Blkio, Blkioq, Completion, MemoryRegion, ReqFlags};

use super::latency::Latencies;
use super::noise::Noise;
use crate::{Access, Amount, BlockLoad, Cancel, Direction, Error, SeriesPoint, Workload};

/// Interval of the course of a measurement.
const INTERVAL: Duration = Duration::from_millis(500);

/// Noise that written requests are taken out of, at any block of it.
const POOL_BYTES: usize = 8 << 20;

/// What is driven.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Driven<'a> {
    /// The socket of a vhost-user-blk export.
    VhostUser(&'a Path),
    /// A file or block device, past the page cache.
    Direct(&'a Path),
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) read: Option<Direction>,
    pub(crate) write: Option<Direction>,
    pub(crate) sync: Option<crate::Latency>,
    pub(crate) flushes: u64,
    pub(crate) seconds: f64,
    pub(crate) series: Vec<SeriesPoint>,
}

/// The bytes that requests go to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Sends what a workload says, and counts what comes back.
pub(crate) fn generate(
    driven: Driven<'_>,
    load: &BlockLoad,
    workload: &Workload,
    range: Range,
    seed: u64,
    cancel: &Cancel,
) -> Result<Generated, Error> {
    let failed = |error: blkio::Error| Error::program("the generator", error.message());
    let refused = |why: &str| Error::Refused {
        what: "to generate requests".to_owned(),
        why: why.to_owned(),
    };
    let block = usize::try_from(load.block_bytes).map_err(|_| refused("a block that large"))?;
    if block == 0 || block % 512 != 0 || load.block_bytes > range.length {
        return Err(refused(
            "blocks are multiples of 512 bytes and fit into the disk",
        ));
    }
    let depth = if load.is_blocking {
        1
    } else {
        load.depth.max(1) as usize
    };
    let jobs = load.jobs.max(1) as usize;
    let mut blkio = open(driven, jobs, depth).map_err(failed)?;
    let outcome = blkio.start().map_err(failed)?;
    let capacity = blkio.get_u64("capacity").map_err(failed)?;
    if range.offset.saturating_add(range.length) > capacity {
        return Err(refused(&format!(
            "the disk has {capacity} bytes, and {} from {} are to be used",
            range.length, range.offset
        )));
    }
    let pool = if load.access.writes() {
        POOL_BYTES.max(4 * block)
    } else {
        0
    };
    let length = (jobs * depth * block + pool).next_multiple_of(1 << 16);
    let region = blkio.alloc_mem_region(length).map_err(failed)?;
    blkio.map_mem_region(&region).map_err(failed)?;
    let buffers = Buffers::new(&region, jobs * depth * block, seed);
    let plan = Plan {
        load,
        range,
        depth,
        block,
        ramp: Duration::from_secs_f64(workload.ramp_seconds.max(0.0)),
        limit: limit(workload.amount, load, jobs as u64),
    };
    let began = Instant::now();
    let mut tallies = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = outcome
            .queues
            .into_iter()
            .take(jobs)
            .enumerate()
            .map(|(job, queue)| {
                let (plan, buffers) = (&plan, &buffers);
                let noise = Noise::new(seed.wrapping_add(job as u64 + 1));
                scope.spawn(move || Job::new(plan, buffers, job, queue, noise).run(began, cancel))
            })
            .collect();
        for thread in threads {
            tallies.push(thread.join().unwrap_or_else(|_| {
                Err(Error::program("the generator", "one of its jobs panicked"))
            }));
        }
    });
    drop(blkio);
    let mut total = Tally::new();
    for tally in tallies {
        total.add_all(&tally?);
    }
    cancel.check()?;
    Ok(total.generated(load))
}

fn open(driven: Driven<'_>, jobs: usize, depth: usize) -> Result<Blkio, blkio::Error> {
    let mut blkio;
    match driven {
        Driven::VhostUser(path) => {
            blkio = Blkio::new("virtio-blk-vhost-user")?;
            blkio.set_str("path", &path.to_string_lossy())?;
            blkio.connect()?;
        }
        Driven::Direct(path) => {
            blkio = Blkio::new("io_uring")?;
            blkio.set_str("path", &path.to_string_lossy())?;
            blkio.set_bool("direct", true)?;
            blkio.connect()?;
            let entries = depth.next_power_of_two().max(8);
            blkio.set_i32("num-entries", i32::try_from(entries).unwrap_or(i32::MAX))?;
        }
    }
    blkio.set_i32("num-queues", i32::try_from(jobs).unwrap_or(i32::MAX))?;
    Ok(blkio)
}

/// When a job ends.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Time(Duration),
    Requests(u64),
}

fn limit(amount: Amount, load: &BlockLoad, jobs: u64) -> Limit {
    match amount {
        Amount::Seconds(seconds) => Limit::Time(Duration::from_secs_f64(seconds.max(0.001))),
        Amount::Operations(count) => Limit::Requests((count / jobs).max(1)),
        Amount::Bytes(bytes) => Limit::Requests((bytes / load.block_bytes / jobs).max(1)),
    }
}

#[derive(Debug)]
struct Plan<'a> {
    load: &'a BlockLoad,
    range: Range,
    depth: usize,
    block: usize,
    ramp: Duration,
    limit: Limit,
}

/// Memory that the device reads and writes: a slot for each request, then the noise.
#[derive(Clone, Copy, Debug)]
struct Buffers {
    slots: usize,
    pool: usize,
    pool_bytes: usize,
}

impl Buffers {
    #[allow(
        unsafe_code,
        reason = "memory shared with a device has an address and no owner"
    )]
    fn new(region: &MemoryRegion, slots_bytes: usize, seed: u64) -> Self {
        let buffers = Self {
            slots: region.addr,
            pool: region.addr + slots_bytes,
            pool_bytes: region.len - slots_bytes,
        };
        // SAFETY: the region is mapped for reading and writing from `addr` on for `len` bytes, of which these are the
        // last; it stays mapped as long as the Blkio it came from, which `generate` keeps; nobody else has it yet.
        let pool =
            unsafe { std::slice::from_raw_parts_mut(buffers.pool as *mut u8, buffers.pool_bytes) };
        Noise::new(seed).fill(pool);
        buffers
    }

    fn slot(&self, index: usize, block: usize) -> *mut u8 {
        (self.slots + index * block) as *mut u8
    }

    /// A block of noise that begins at any multiple of 4 KiB.
    fn noise(&self, noise: &mut Noise, block: usize) -> *const u8 {
        let places = (self.pool_bytes - block) / 4096 + 1;
        let place = noise.below(places as u64) as usize;
        (self.pool + place * 4096) as *const u8
    }
}

/// What a flush has in place of the number of a slot.
const FLUSH: usize = usize::MAX;

struct Job<'a> {
    plan: &'a Plan<'a>,
    buffers: &'a Buffers,
    job: usize,
    queue: Blkioq,
    noise: Noise,
    tally: Tally,
    /// When each slot's request was sent, and whether it reads.
    sent: Vec<(Instant, bool)>,
    free: Vec<usize>,
    next_block: u64,
    writes_since_flush: u32,
}

impl<'a> Job<'a> {
    fn new(
        plan: &'a Plan<'a>,
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

    fn run(mut self, began: Instant, cancel: &Cancel) -> Result<Tally, Error> {
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
            let flush_is_due = self
                .plan
                .load
                .sync_every
                .is_some_and(|every| self.writes_since_flush >= every.max(1));
            if flush_is_due && under_way == 0 {
                self.flush(timed_from)?;
                continue;
            }
            if !is_over && !flush_is_due {
                while let Some(slot) = self.free.pop() {
                    self.send(slot);
                    sent += 1;
                    let is_due = self
                        .plan
                        .load
                        .sync_every
                        .is_some_and(|every| self.writes_since_flush >= every.max(1));
                    let is_enough = match self.plan.limit {
                        Limit::Requests(count) => sent >= count,
                        Limit::Time(_) => false,
                    };
                    if is_due || is_enough {
                        break;
                    }
                }
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

    fn send(&mut self, slot: usize) {
        let Plan {
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
            // Seven of ten requests read.
            Access::RandomMixed => (self.noise.below(blocks), self.noise.below(10) < 7),
        };
        let start = range.offset + place * load.block_bytes;
        self.sent[slot] = (Instant::now(), reads);
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
            debug_assert_eq!(done, FLUSH, "nothing else is under way");
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

    /// Waits until at least one request is done, and hands on each that is.
    #[allow(
        unsafe_code,
        reason = "blkio fills in completions that were not there before"
    )]
    fn complete(&mut self, mut done: impl FnMut(&mut Self, usize)) -> Result<(), Error> {
        /// A device that answers nothing for so long is broken.
        const PATIENCE: Duration = Duration::from_secs(30);
        let mut completions: [MaybeUninit<Completion>; 64] = [const { MaybeUninit::uninit() }; 64];
        let mut patience = PATIENCE;
        let count = self
            .queue
            .do_io(&mut completions, 1, Some(&mut patience), None)
            .map_err(|error| Error::program("the generator", error.message()))?;
        for completion in &completions[..count] {
            // SAFETY: do_io says that it filled in the first `count` of them.
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

/// What a job counted.
#[derive(Debug)]
struct Tally {
    read: Latencies,
    write: Latencies,
    sync: Latencies,
    flushes: u64,
    seconds: f64,
    /// Requests and bytes of each interval.
    intervals: Vec<(u64, u64)>,
}

impl Tally {
    fn new() -> Self {
        Self {
            read: Latencies::new(),
            write: Latencies::new(),
            sync: Latencies::new(),
            flushes: 0,
            seconds: 0.0,
            intervals: Vec::new(),
        }
    }

    fn point(&mut self, at: Duration, bytes: u64) {
        let interval = (at.as_nanos() / INTERVAL.as_nanos()) as usize;
        if self.intervals.len() <= interval {
            self.intervals.resize(interval + 1, (0, 0));
        }
        self.intervals[interval].0 += 1;
        self.intervals[interval].1 += bytes;
    }

    fn add_all(&mut self, other: &Self) {
        self.read.add_all(&other.read);
        self.write.add_all(&other.write);
        self.sync.add_all(&other.sync);
        self.flushes += other.flushes;
        self.seconds = self.seconds.max(other.seconds);
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), (0, 0));
        }
        for (sum, interval) in self.intervals.iter_mut().zip(&other.intervals) {
            sum.0 += interval.0;
            sum.1 += interval.1;
        }
    }

    fn generated(self, load: &BlockLoad) -> Generated {
        let seconds = self.seconds.max(1e-6);
        let direction = |latencies: &Latencies| {
            let count = latencies.count();
            (count > 0).then(|| Direction {
                latency: latencies.latency(),
                ..Direction::over(count * load.block_bytes, count, seconds)
            })
        };
        // The last interval is rarely whole, and would look like a fall.
        let whole = (seconds / INTERVAL.as_secs_f64()).floor() as usize;
        let series = self
            .intervals
            .iter()
            .take(whole)
            .enumerate()
            .map(|(index, (requests, bytes))| SeriesPoint {
                seconds: (index + 1) as f64 * INTERVAL.as_secs_f64(),
                iops: *requests as f64 / INTERVAL.as_secs_f64(),
                bytes_per_second: *bytes as f64 / INTERVAL.as_secs_f64(),
            })
            .collect();
        Generated {
            read: direction(&self.read),
            write: direction(&self.write),
            sync: self.sync.latency(),
            flushes: self.flushes,
            seconds,
            series,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Metric};
    use std::os::unix::fs::FileExt;

    const SIZE: u64 = 4 << 20;

    fn workload(load: BlockLoad, amount: Amount) -> Workload {
        Workload {
            name: "w".to_owned(),
            load: Load::Blocks(load),
            amount,
            ramp_seconds: 0.0,
            metric: Metric::Iops,
        }
    }

    fn load(access: Access) -> BlockLoad {
        BlockLoad {
            access,
            block_bytes: 4096,
            depth: 8,
            jobs: 1,
            sync_every: None,
            ends_with_sync: false,
            is_blocking: false,
        }
    }

    fn on_file(
        load: &BlockLoad,
        amount: Amount,
        range: Range,
    ) -> Result<(Generated, Vec<u8>), Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(SIZE).unwrap();
        let generated = generate(
            Driven::Direct(file.path()),
            load,
            &workload(load.clone(), amount),
            range,
            7,
            &Cancel::new(),
        )?;
        let mut bytes = vec![0; SIZE as usize];
        file.as_file().read_exact_at(&mut bytes, 0).unwrap();
        Ok((generated, bytes))
    }

    /// Skips where the kernel has no io_uring for us, as in many containers.
    fn ran(result: Result<(Generated, Vec<u8>), Error>) -> Option<(Generated, Vec<u8>)> {
        match result {
            Ok(done) => Some(done),
            Err(error) => {
                let is_required =
                    std::env::var_os("VMDISK_REAL").is_some_and(|value| value == "require");
                assert!(!is_required, "{error}");
                eprintln!("skipped: needs io_uring and O_DIRECT: {error}");
                None
            }
        }
    }

    #[test]
    fn every_byte_of_the_range_is_written_and_none_beyond_it() {
        let range = Range {
            offset: 1 << 20,
            length: 2 << 20,
        };
        let load = BlockLoad {
            sync_every: Some(16),
            ends_with_sync: true,
            ..load(Access::SequentialWrite)
        };
        let Some((generated, bytes)) = ran(on_file(&load, Amount::Bytes(2 << 20), range)) else {
            return;
        };
        let write = generated.write.unwrap();
        assert_eq!((write.operations, write.bytes), (512, 2 << 20));
        // The last one is the one at the end.
        assert_eq!(generated.flushes, 512 / 16);
        assert!(generated.read.is_none());
        assert!(bytes[..1 << 20].iter().all(|byte| *byte == 0));
        assert!(bytes[3 << 20..].iter().all(|byte| *byte == 0));
        assert!(
            bytes[1 << 20..3 << 20]
                .chunks(4096)
                .all(|block| block.iter().any(|byte| *byte != 0))
        );
    }

    #[test]
    fn a_time_is_kept_and_jobs_add_up() {
        let load = BlockLoad {
            jobs: 2,
            ..load(Access::RandomMixed)
        };
        let range = Range {
            offset: 0,
            length: SIZE,
        };
        let Some((generated, _)) = ran(on_file(&load, Amount::Seconds(1.2), range)) else {
            return;
        };
        assert!(
            (1.15..3.0).contains(&generated.seconds),
            "{}",
            generated.seconds
        );
        assert_eq!(generated.series.len(), 2);
        let (read, write) = (generated.read.unwrap(), generated.write.unwrap());
        let share = read.operations as f64 / (read.operations + write.operations) as f64;
        assert!((0.6..0.8).contains(&share), "{share}");
        assert!(read.latency.unwrap().percentiles_ns["50"] > 0);
    }

    #[test]
    fn what_does_not_fit_the_disk_is_refused_before_a_byte_is_written() {
        let range = Range {
            offset: 1 << 20,
            length: SIZE,
        };
        assert!(on_file(&load(Access::RandomWrite), Amount::Operations(1), range).is_err());
        let odd = BlockLoad {
            block_bytes: 1000,
            ..load(Access::RandomWrite)
        };
        let range = Range {
            offset: 0,
            length: SIZE,
        };
        assert!(on_file(&odd, Amount::Operations(1), range).is_err());
    }
}
