//! Workloads: loads on a disk.

use std::time::Duration;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A load on a disk, and the compared figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name, unique in the plan, such as `4k-random-write-qd32`.
    pub name: String,
    /// The load.
    pub load: Load,
    /// The duration or amount of the load.
    pub amount: Amount,
    /// Seconds for which the load runs before timing begins; 0 to measure the first touch.
    pub ramp_seconds: f64,
    /// The figure that is compared.
    pub metric: Metric,
}

impl Workload {
    /// Returns the approximate duration of one sample, without setup.
    pub fn duration(&self) -> Duration {
        let timed = match self.amount {
            Amount::Seconds(seconds) => seconds,
            // Unknown in advance; fixed amounts are chosen to take a few seconds.
            Amount::Operations(_) | Amount::Bytes(_) => 4.0,
        };
        Duration::from_secs_f64(timed + self.ramp_seconds)
    }

    /// True if fio sends no request after the ramp: with a rate, version 3.33 ends a job after the timed seconds, ramp
    /// included, if they are not longer than the ramp (measured: 21 requests instead of 70, without latencies).
    pub(crate) fn ends_in_its_ramp(&self) -> bool {
        let has_rate = matches!(&self.load, Load::Blocks(load) if load.rate.is_some());
        let is_short = matches!(self.amount, Amount::Seconds(timed) if timed <= self.ramp_seconds);
        has_rate && is_short
    }
}

/// Loads on a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Load {
    /// Requests of one size, bypassing the page cache of their sender.
    Blocks(BlockLoad),
    /// An installer: many small files, each synced, on a file system on the disk.
    InstallReplay(InstallReplay),
}

impl Load {
    /// Returns true if the load writes.
    pub const fn writes(&self) -> bool {
        match self {
            Load::Blocks(blocks) => blocks.access.writes(),
            Load::InstallReplay(_) => true,
        }
    }
}

/// Requests of one size, bypassing the page cache of their sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BlockLoad {
    /// The order and direction of requests.
    pub access: Access,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests in flight in each job; 1 is a blocking call, as in `dd`, if
    /// [`BlockLoad::is_blocking`] is set.
    pub depth: u32,
    /// Jobs at once.
    pub jobs: u32,
    /// Number of writes between flushes; unset never flushes.
    pub sync_every: Option<u32>,
    /// True if the timed seconds include a flush at the end.
    pub ends_with_sync: bool,
    /// True if each request is a blocking call (`pread`, `pwrite`) instead of an asynchronous one.
    pub is_blocking: bool,
    /// Requests per second of all jobs together; unset sends the next request as soon as one completes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

impl BlockLoad {
    /// Returns the largest number of bytes that fio counts in one pass over a disk: also those of requests that were in
    /// flight at the end.
    pub(crate) fn bytes_of_pass(&self, length: u64) -> u64 {
        length + self.block_bytes * u64::from(self.depth * self.jobs)
    }
}

/// The order and direction of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Sequential reads.
    SequentialRead,
    /// Sequential writes.
    SequentialWrite,
    /// Random reads.
    RandomRead,
    /// Random writes.
    RandomWrite,
    /// Random, seven of ten requests are reads.
    RandomMixed,
}

impl Access {
    /// Returns true if the access writes.
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Access::SequentialWrite | Access::RandomWrite | Access::RandomMixed
        )
    }

    /// Returns true if the access reads.
    pub const fn reads(self) -> bool {
        matches!(
            self,
            Access::SequentialRead | Access::RandomRead | Access::RandomMixed
        )
    }
}

/// Many small files, each written and synced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InstallReplay {
    /// Number of files.
    pub files: u32,
    /// Bytes of the smallest file.
    pub smallest_bytes: u64,
    /// Bytes of the largest file.
    pub largest_bytes: u64,
    /// Bytes of one write.
    pub block_bytes: u64,
}

/// The duration or amount of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// For this many seconds.
    Seconds(f64),
    /// For this many requests.
    Operations(u64),
    /// For this many bytes.
    Bytes(u64),
}

/// The compared figure; larger is always better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    Throughput,
    /// Mean latency at a fixed rate, as its reciprocal, so that larger is better.
    Latency,
}
