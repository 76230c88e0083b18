//! Counters of a generator run, and its result.

use std::time::Duration;

use crate::engines::latency::Latencies;
use crate::{BlockLoad, Direction, Latency, Measurement, Semantics, SeriesPoint};

/// Interval of the time series.
const INTERVAL: Duration = Duration::from_millis(500);

/// The result of a run.
#[derive(Debug)]
pub(crate) struct GeneratorResult {
    pub(crate) read: Option<Direction>,
    pub(crate) write: Option<Direction>,
    pub(crate) sync: Option<Latency>,
    pub(crate) flushes: u64,
    pub(crate) seconds: f64,
    pub(crate) series: Vec<SeriesPoint>,
}

impl GeneratorResult {
    /// Converts the result to a measurement of the requested load.
    pub(crate) fn measurement(self, blocks: &BlockLoad) -> Measurement {
        let GeneratorResult {
            read,
            write,
            sync,
            flushes,
            seconds,
            series,
        } = self;
        let asks = blocks.sync_every.is_some() || blocks.ends_with_sync;
        Measurement {
            read,
            write,
            sync,
            seconds,
            series,
            semantics: Semantics {
                flushes_asked: (asks && blocks.access.writes()).then_some(flushes),
                ..Semantics::default()
            },
            ..Measurement::default()
        }
    }
}

/// The counters of a job.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) read: Latencies,
    pub(super) write: Latencies,
    pub(super) sync: Latencies,
    pub(super) flushes: u64,
    pub(super) seconds: f64,
    /// Requests and bytes of each interval.
    intervals: Vec<(u64, u64)>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            read: Latencies::new(),
            write: Latencies::new(),
            sync: Latencies::new(),
            flushes: 0,
            seconds: 0.0,
            intervals: Vec::new(),
        }
    }

    pub(super) fn point(&mut self, at: Duration, bytes: u64) {
        let interval = (at.as_nanos() / INTERVAL.as_nanos()) as usize;
        if self.intervals.len() <= interval {
            self.intervals.resize(interval + 1, (0, 0));
        }
        self.intervals[interval].0 += 1;
        self.intervals[interval].1 += bytes;
    }

    pub(super) fn add_all(&mut self, other: &Self) {
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

    pub(super) fn generated(self, load: &BlockLoad) -> GeneratorResult {
        let seconds = self.seconds.max(1e-6);
        let direction = |latencies: &Latencies| {
            let count = latencies.count();
            (count > 0).then(|| Direction {
                latency: latencies.latency(),
                ..Direction::over(count * load.block_bytes, count, seconds)
            })
        };
        // The last interval is rarely complete and would look like a drop.
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
        GeneratorResult {
            read: direction(&self.read),
            write: direction(&self.write),
            sync: self.sync.latency(),
            flushes: self.flushes,
            seconds,
            series,
        }
    }
}
