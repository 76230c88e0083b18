//! Workloads: loads on a disk.

use std::time::Duration;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::Phase;

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

    /// Returns the load before a sample on steady storage. It is a job of its own: fio reports nothing about a ramp of the
    /// job that it measures, and the counters of a device have no such boundary.
    pub(crate) fn ramp(&self, phase: Phase) -> Option<Workload> {
        (phase == Phase::Steady && self.ramp_seconds > 0.0).then(|| Workload {
            amount: Amount::Seconds(self.ramp_seconds),
            ramp_seconds: 0.0,
            ..self.clone()
        })
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

    /// Returns the fewest flushes that arrive unless more than one in ten is lost: kernels merge those in flight together.
    pub(crate) fn least_flushes(&self, asked: u64) -> u64 {
        let together = match self {
            Load::Blocks(load) => {
                load.jobs * load.depth.div_ceil(load.sync_every.unwrap_or(1).max(1))
            }
            Load::InstallReplay(_) => 1,
        };
        (asked - asked / 10) / u64::from(together.max(1))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lost_flush_in_ten_is_noticed_unless_flushes_may_be_merged() {
        let least = |name: &str| {
            let load = Workload::by_name(name, 1.0, 0.0).unwrap().load;
            load.least_flushes(1000)
        };
        for name in [
            "4k-random-write-qd1-sync",
            "64k-sequential-write-qd4-sync256",
        ] {
            assert_eq!(least(name), 900, "{name}");
        }
        assert_eq!(least("4k-random-write-qd2-sync"), 450);
    }
}
