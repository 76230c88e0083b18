//! Messages between host and guest: one job to the guest, lines of JSON from the guest, and one byte to the guest before
//! each task.

use serde::{Deserialize, Serialize};

use crate::{Measurement, Workload};

/// Path of the job in the guest.
pub(crate) const JOB_PATH: &str = "job.json";

/// Name of the virtio serial port.
pub(crate) const PORT: &str = "vmdisk.bench";

/// The placeholder for the disk, or for the directory on it, in a fio job.
pub(crate) const PLACEHOLDER: &str = "@DISK@";

/// All tasks of one boot, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GuestJob {
    pub(crate) tasks: Vec<Task>,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) disk: DiskName,
    pub(crate) workload: Workload,
    pub(crate) seed: u64,
    /// fio jobs that fill the disk first.
    pub(crate) fills: Vec<String>,
    /// The fio job of the load before the sample.
    pub(crate) ramp: Option<String>,
    /// The fio job; unset for an install replay.
    pub(crate) fio: Option<String>,
}

/// The name of a disk in the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DiskName {
    Serial(String),
    /// The disk without one of our serial numbers: a daemon's disk has the daemon's.
    TheOther,
}

/// A message of the guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "message")]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Message {
    /// The guest is up.
    Hello {
        /// The release of its kernel.
        release: String,
        /// Seconds since its kernel started.
        uptime_seconds: f64,
        /// Modules that failed to load, with the reason.
        not_loaded: Vec<String>,
        /// Reads per second without a disk, to compare boots.
        control_iops: f64,
    },
    /// The load before the sample of a task is done; the guest waits for the next byte.
    Ramped { task: usize },
    /// A task is done.
    Done { task: usize, outcome: Outcome },
    /// All tasks are done; the host may query QEMU before it ends the guest.
    End,
}

/// The outcome of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Outcome {
    Measured(Measurement),
    Failed(String),
}

/// Parses the complete lines received so far; an incomplete line is left for later.
pub(crate) fn messages(bytes: &[u8]) -> (Vec<Message>, Vec<String>) {
    let mut messages = Vec::new();
    let mut strange = Vec::new();
    let end = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    for line in bytes[..end].split(|byte| *byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(message) => messages.push(message),
            Err(_) => strange.push(String::from_utf8_lossy(line).chars().take(200).collect()),
        }
    }
    (messages, strange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_lines_are_messages() {
        let mut bytes = serde_json::to_vec(&Message::End).unwrap();
        bytes.extend_from_slice(b"\nnonsense\n{\"message\":\"en");
        let (read, strange) = messages(&bytes);
        assert_eq!(read, [Message::End]);
        assert_eq!(strange, ["nonsense"]);
        assert_eq!(messages(b""), (vec![], vec![]));
    }
}
