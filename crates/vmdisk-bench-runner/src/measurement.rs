//! Measurements: the results of workloads, common to all engines.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of running a workload once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Reads, if the workload reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Direction>,
    /// Writes, if the workload writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Direction>,
    /// Latency of flushes, if the workload syncs and the engine measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<Latency>,
    /// The timed seconds.
    pub seconds: f64,
    /// Share of the disk that a first-touch sample covered; it ends after one pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<f64>,
    /// Requests that reached the devices of the host below the disk during the sample, the uppermost device first, including
    /// those of other programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceUse>,
    /// The checks that the measurement is what the cell means.
    #[serde(default)]
    pub semantics: Semantics,
    /// The accelerator of the guest.
    #[serde(default)]
    pub accelerator: Accelerator,
    /// Requests per second of a workload without a disk in the same boot, if the engine runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_iops: Option<f64>,
    /// Processor time of fio in the timed seconds; in a guest, the guest's processor time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Processor time on the host of QEMU and its daemons in the timed seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qemu_cpu_seconds: Option<f64>,
    /// Every program that was started, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRecord>,
    /// Input files of programs, such as fio's job, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// The report of the program that sent the requests, unchanged; stored in a file next to the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub raw_report: Option<String>,
    /// Notes for readers of the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Measurement {
    /// Returns the processor time on the host of the program that processes requests: QEMU, or fio without QEMU.
    pub fn host_cpu_seconds(&self) -> Option<f64> {
        let without_qemu = self.cpu_seconds.filter(|_| {
            // The first program is fio only if no daemon was started before it.
            self.accelerator == Accelerator::NoGuest && self.commands.len() < 2
        });
        self.qemu_cpu_seconds
            .or(without_qemu)
            .filter(|seconds| *seconds > 0.0)
    }
}

/// Requests in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Bytes moved.
    pub bytes: u64,
    /// Requests done.
    pub operations: u64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Requests per second.
    pub iops: f64,
    /// Latency of requests, where the engine measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

impl Direction {
    /// Computes rates from totals over `seconds`.
    pub fn over(bytes: u64, operations: u64, seconds: f64) -> Self {
        Direction {
            bytes,
            operations,
            bytes_per_second: bytes as f64 / seconds,
            iops: operations as f64 / seconds,
            latency: None,
        }
    }
}

/// Requests that reached a device of the host during a sample, as counted by its kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DeviceUse {
    /// Its kernel name, such as `nvme0n1`.
    pub name: String,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes, where the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<u64>,
    /// Seconds with at least one request in flight.
    pub busy_seconds: f64,
}

/// Latency, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Mean.
    pub mean_ns: f64,
    /// Smallest, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<u64>,
    /// Largest, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<u64>,
    /// Percentiles by number, such as `50`, `99`, `99.9`.
    #[serde(default)]
    pub percentiles_ns: BTreeMap<String, u64>,
    /// Pairs of a latency in nanoseconds and the number of requests with about that latency, if the engine measures it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u64, u64)>,
}

/// The percentiles of latencies that engines measure and reports show.
pub const PERCENTILES: [&str; 4] = ["50", "90", "99", "99.9"];

/// The checks that a measurement is what its cell means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Semantics {
    /// The write cache as seen by the sender of requests, such as the guest's `queue/write_cache`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCache>,
    /// Flushes that the workload requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes_asked: Option<u64>,
    /// Flushes that arrived, if the engine could count them, such as the guest's `flush_ios`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes_seen: Option<u64>,
    /// Failed checks; empty if every check passed. A measurement
    /// with complaints is recorded but does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complaints: Vec<String>,
}

/// The write cache of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WriteCache {
    /// Written data is safe after a flush.
    WriteBack,
    /// Written data is safe immediately.
    WriteThrough,
}

/// The accelerator of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Accelerator {
    /// No guest ran.
    #[default]
    NoGuest,
    /// Hardware virtualization.
    Kvm,
    /// Emulation: computation costs many times as much as under KVM, so compare figures only with each other.
    Tcg,
}

/// One started program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CommandRecord {
    /// The program and its arguments.
    pub argv: Vec<String>,
}

impl CommandRecord {
    /// Records a program with its arguments.
    pub fn new<T: Into<String>>(argv: impl IntoIterator<Item = T>) -> Self {
        CommandRecord {
            argv: argv.into_iter().map(Into::into).collect(),
        }
    }
}
