//! Loads on a disk.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A load on a disk, and the figure of it that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name, unique in the plan, such as `4k-random-write-qd32`.
    pub name: String,
    /// The load.
    pub load: Load,
    /// How long it is done.
    pub amount: Amount,
    /// Seconds before timing begins, in which the load runs already; 0 where the first touch is the subject.
    pub ramp_seconds: f64,
    /// The figure that is compared.
    pub metric: Metric,
}

impl Workload {
    /// About how long one sample takes, without what surrounds it.
    pub fn duration(&self) -> Duration {
        let timed = match self.amount {
            Amount::Seconds(seconds) => seconds,
            // Nobody knows before; a fixed amount is made to take a few seconds.
            Amount::Operations(_) | Amount::Bytes(_) => 4.0,
        };
        Duration::from_secs_f64(timed + self.ramp_seconds)
    }
}

/// Loads on a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Load {
    /// Requests of one size, past the page cache of whoever sends them.
    Blocks(BlockLoad),
    /// An installer: many small files, each synced, on a file system on the disk.
    InstallReplay(InstallReplay),
}

impl Load {
    /// True if something is written.
    pub const fn writes(&self) -> bool {
        match self {
            Load::Blocks(blocks) => blocks.access.writes(),
            Load::InstallReplay(_) => true,
        }
    }
}

/// Requests of one size, past the page cache of whoever sends them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockLoad {
    /// Which blocks, in which direction.
    pub access: Access,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests under way at once, in each job; 1 is issued with a blocking call, as `dd` does, if
    /// [`BlockLoad::is_blocking`] says so.
    pub depth: u32,
    /// Jobs at once.
    pub jobs: u32,
    /// A flush after this many writes; unset never flushes.
    pub sync_every: Option<u32>,
    /// True if a flush at the end belongs to what is timed.
    pub ends_with_sync: bool,
    /// True if each request is a blocking call (`pread`, `pwrite`) instead of an asynchronous one.
    pub is_blocking: bool,
    /// Requests per second of all jobs together; unset sends the next request as soon as one is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

/// Which blocks, in which direction.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// One after the other, read.
    SequentialRead,
    /// One after the other, written.
    SequentialWrite,
    /// Any, read.
    RandomRead,
    /// Any, written.
    RandomWrite,
    /// Any, seven of ten requests read.
    RandomMixed,
}

impl Access {
    /// True if something is written.
    pub const fn writes(self) -> bool {
        match self {
            Access::SequentialWrite | Access::RandomWrite | Access::RandomMixed => true,
            Access::SequentialRead | Access::RandomRead => false,
        }
    }

    /// True if something is read.
    pub const fn reads(self) -> bool {
        match self {
            Access::SequentialRead | Access::RandomRead | Access::RandomMixed => true,
            Access::SequentialWrite | Access::RandomWrite => false,
        }
    }
}

/// Many small files, each written and synced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstallReplay {
    /// How many files.
    pub files: u32,
    /// Bytes of the smallest.
    pub smallest_bytes: u64,
    /// Bytes of the largest.
    pub largest_bytes: u64,
    /// Bytes of one write.
    pub block_bytes: u64,
}

/// Duration of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// For this many seconds.
    Seconds(f64),
    /// For this many requests.
    Operations(u64),
    /// For this many bytes.
    Bytes(u64),
}

/// The figure that is compared; larger is better for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    Throughput,
    /// Mean latency at a fixed rate: its reciprocal, so that more is better.
    Latency,
}
