//! Our request generator: on a vhost-user-blk socket or, through io_uring, on a file or device.

mod direct;
mod job;
mod memory;
mod queue;
mod tally;
mod virtqueue;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::direct::DirectQueue;
use self::job::{Buffers, GeneratorJob};
use self::queue::RequestQueue;
use self::tally::Tally;
use super::noise::Noise;
use super::socket;
use crate::{Amount, BlockLoad, Cancel, Error, Workload};

pub(crate) use self::memory::SharedMemory;
pub(crate) use self::tally::GeneratorResult;
pub(crate) use self::virtqueue::{Layout, VirtQueue};

/// Size of the random data that written blocks are taken from.
const POOL_BYTES: usize = 8 << 20;

/// The disk that requests are sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestTarget<'a> {
    /// The socket of a vhost-user-blk device.
    VhostUser(&'a Path),
    /// A file or block device, bypassing the page cache.
    Direct(&'a Path),
}

/// The range of bytes for requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Sends the requests of a workload and counts completions.
pub(crate) fn generate(
    target: RequestTarget<'_>,
    load: &BlockLoad,
    workload: &Workload,
    range: Range,
    seed: u64,
    cancel: &Cancel,
) -> Result<GeneratorResult, Error> {
    let block =
        usize::try_from(load.block_bytes).map_err(|_| refused("the block size is too large"))?;
    if block == 0 || block % 512 != 0 || load.block_bytes > range.length {
        return Err(refused(
            "the block size must be a multiple of 512 bytes and fit the disk",
        ));
    }
    let depth = if load.is_blocking {
        1
    } else {
        load.depth.max(1) as usize
    };
    let jobs = load.jobs.max(1) as usize;
    let pool = if load.access.writes() {
        POOL_BYTES.max(4 * block)
    } else {
        0
    };
    let bytes = Needed {
        jobs,
        depth,
        buffers: jobs * depth * block + pool,
    };
    let disk = open(target, bytes, load.access.writes())?;
    if range.offset.saturating_add(range.length) > disk.capacity {
        return Err(refused(&format!(
            "the range of {} bytes from {} exceeds the disk of {} bytes",
            range.length, range.offset, disk.capacity
        )));
    }
    let buffers = Buffers::new(&disk.memory, disk.buffers, jobs * depth * block, seed);
    let plan = RequestPlan {
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
        let threads: Vec<_> = disk
            .queues
            .into_iter()
            .enumerate()
            .map(|(job, queue)| {
                let (plan, buffers) = (&plan, &buffers);
                let noise = Noise::new(seed.wrapping_add(job as u64 + 1));
                scope.spawn(move || {
                    GeneratorJob::new(plan, buffers, job, queue, noise).run(began, cancel)
                })
            })
            .collect();
        for thread in threads {
            tallies.push(
                thread
                    .join()
                    .unwrap_or_else(|_| Err(Error::program("the generator", "a job panicked"))),
            );
        }
    });
    let mut total = Tally::new();
    for tally in tallies {
        total.add_all(&tally?);
    }
    cancel.check()?;
    Ok(total.generated(load))
}

fn failed(error: io::Error) -> Error {
    Error::program("the generator", error.to_string())
}

fn refused(why: &str) -> Error {
    Error::Refused {
        what: "to generate requests".to_owned(),
        why: why.to_owned(),
    }
}

/// What the jobs of a run need.
#[derive(Clone, Copy, Debug)]
struct Needed {
    jobs: usize,
    depth: usize,
    /// Bytes of all buffers.
    buffers: usize,
}

/// A disk that is ready for requests.
struct OpenDisk {
    capacity: u64,
    memory: Arc<SharedMemory>,
    /// Offset of the buffers in the memory.
    buffers: usize,
    /// One for each job.
    queues: Vec<Box<dyn RequestQueue>>,
    /// The device ends its work when the connection ends.
    _connection: Option<socket::Connection>,
}

/// Opens the disk with a queue for each job.
fn open(target: RequestTarget<'_>, needed: Needed, is_written: bool) -> Result<OpenDisk, Error> {
    let Needed { jobs, depth, .. } = needed;
    match target {
        RequestTarget::VhostUser(path) => {
            let (mut connection, disk) = socket::connect(path)?;
            if jobs > disk.queues as usize {
                return Err(refused(&format!(
                    "{jobs} jobs need {jobs} queues, but the disk has {}",
                    disk.queues
                )));
            }
            if is_written && disk.is_read_only {
                return Err(refused("the disk is read-only"));
            }
            let mut layouts: Vec<Layout> = Vec::new();
            for _ in 0..jobs {
                let start = layouts.last().map_or(0, Layout::end);
                let layout = Layout::at(start, depth);
                layouts.push(layout.ok_or_else(|| {
                    refused(&format!("{depth} requests at once do not fit a queue"))
                })?);
            }
            let buffers = layouts.last().map_or(0, Layout::end);
            let memory = shared(buffers + needed.buffers)?;
            let queues = connection
                .start(&memory, &layouts, depth)
                .map_err(failed)?
                .into_iter()
                .map(|queue| Box::new(queue) as Box<dyn RequestQueue>);
            Ok(OpenDisk {
                capacity: disk.capacity,
                queues: queues.collect(),
                memory,
                buffers,
                _connection: Some(connection),
            })
        }
        RequestTarget::Direct(path) => {
            let (file, capacity) = direct::open(path, is_written).map_err(failed)?;
            let memory = shared(needed.buffers)?;
            let mut queues: Vec<Box<dyn RequestQueue>> = Vec::new();
            for _ in 0..jobs {
                let queue = DirectQueue::new(file.clone(), memory.clone(), depth);
                queues.push(Box::new(queue.map_err(failed)?));
            }
            Ok(OpenDisk {
                capacity,
                memory,
                buffers: 0,
                queues,
                _connection: None,
            })
        }
    }
}

fn shared(bytes: usize) -> Result<Arc<SharedMemory>, Error> {
    let memory = SharedMemory::new(bytes.next_multiple_of(1 << 16)).map_err(failed)?;
    Ok(Arc::new(memory))
}

/// The end of a job.
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
struct RequestPlan<'a> {
    load: &'a BlockLoad,
    range: Range,
    depth: usize,
    block: usize,
    ramp: Duration,
    limit: Limit,
}

impl RequestPlan<'_> {
    /// Returns when a job's next request is due, after `sent` requests: at once without a rate.
    fn due(&self, began: Instant, sent: u64) -> Instant {
        let Some(rate) = self.load.rate else {
            return Instant::now();
        };
        let of_job = f64::from(rate) / f64::from(self.load.jobs.max(1));
        began + Duration::from_secs_f64(sent as f64 / of_job.max(f64::MIN_POSITIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Load, Metric};
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
            rate: None,
        }
    }

    fn on_file(
        load: &BlockLoad,
        amount: Amount,
        range: Range,
    ) -> Result<(GeneratorResult, Vec<u8>), Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(SIZE).unwrap();
        let generated = generate(
            RequestTarget::Direct(file.path()),
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

    /// Skips if io_uring is not available, as in many containers.
    fn ran(
        result: Result<(GeneratorResult, Vec<u8>), Error>,
    ) -> Option<(GeneratorResult, Vec<u8>)> {
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
    fn exactly_the_bytes_of_the_range_are_written() {
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
        // The last flush is the one at the end.
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
    fn a_duration_is_respected_and_jobs_add_up() {
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
    fn a_rate_is_respected_on_a_faster_disk() {
        let load = BlockLoad {
            rate: Some(200),
            ..load(Access::RandomRead)
        };
        let range = Range {
            offset: 0,
            length: SIZE,
        };
        let Some((generated, _)) = ran(on_file(&load, Amount::Seconds(1.0), range)) else {
            return;
        };
        let iops = generated.read.unwrap().iops;
        assert!((150.0..=215.0).contains(&iops), "{iops}");
    }

    #[test]
    fn a_range_beyond_the_disk_is_refused_before_writing() {
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
