//! One change to the host: applying and reverting it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use vmdisk_facts::DeviceNumber;

use crate::Error;
use crate::programs::run;

/// Prefix of every name that a run creates on a host outside its own directory.
pub const PREFIX: &str = "vmdisk-bench-";

/// One change to the host that must be reverted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "change", deny_unknown_fields)]
pub enum HostChange {
    /// A setting of a block device's request queue.
    #[serde(rename_all = "snake_case")]
    Queue {
        /// The device.
        device: DeviceNumber,
        /// The kernel's sequence number, which distinguishes it from a later device with the same number.
        sequence: Option<u64>,
        /// The setting.
        setting: QueueSetting,
        /// The old value.
        before: String,
        /// The new value.
        after: String,
        /// Old values of settings that the kernel changes along with it.
        along: BTreeMap<QueueSetting, String>,
    },
    /// A pool of thin volumes with one volume in it.
    #[serde(rename_all = "snake_case")]
    ThinPool {
        /// The volume group named by the user.
        group: String,
        /// Name of the pool; the volume has the same name followed by `-volume`.
        pool: String,
        /// Bytes of the volume.
        volume_bytes: u64,
        /// Bytes of the pool.
        pool_bytes: u64,
        /// Unit of allocation in bytes.
        chunk_bytes: u64,
        /// True if chunks are zeroed before use.
        zero: bool,
    },
}

/// A setting of a block device's request queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSetting {
    /// The I/O scheduler.
    Scheduler,
    /// The number of requests that the scheduler holds.
    NrRequests,
    /// Readahead in KiB.
    ReadAheadKb,
    /// The target latency of writeback throttling in µs.
    WbtLatUsec,
}

impl QueueSetting {
    /// Returns the name of its file in sysfs.
    pub const fn file(self) -> &'static str {
        match self {
            QueueSetting::Scheduler => "scheduler",
            QueueSetting::NrRequests => "nr_requests",
            QueueSetting::ReadAheadKb => "read_ahead_kb",
            QueueSetting::WbtLatUsec => "wbt_lat_usec",
        }
    }

    /// Returns the settings that the kernel resets when this one is set: a scheduler has its own number of requests, and
    /// bfq disables the throttle.
    const fn along(self) -> &'static [QueueSetting] {
        match self {
            QueueSetting::Scheduler => &[QueueSetting::NrRequests, QueueSetting::WbtLatUsec],
            QueueSetting::NrRequests | QueueSetting::ReadAheadKb | QueueSetting::WbtLatUsec => &[],
        }
    }

    fn path(self, device: DeviceNumber) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{device}/queue")).join(self.file())
    }

    /// Returns the current value.
    fn read(self, device: DeviceNumber) -> std::io::Result<String> {
        let text = fs::read_to_string(self.path(device))?;
        let text = text.trim();
        let chosen = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
            .map_or(text, |(chosen, _)| chosen);
        Ok(chosen.to_owned())
    }

    fn write(self, device: DeviceNumber, value: &str) -> Result<(), Error> {
        let path = self.path(device);
        fs::write(&path, value).map_err(|error| Error::io("set", &path, error))
    }
}

impl HostChange {
    /// Creates a change of a queue setting, recording its current value.
    ///
    /// # Errors
    /// If the device has no such setting.
    pub fn queue(
        device: DeviceNumber,
        setting: QueueSetting,
        after: impl Into<String>,
    ) -> Result<Self, Error> {
        let before = setting
            .read(device)
            .map_err(|error| Error::io("read", setting.path(device), error))?;
        let along = setting
            .along()
            .iter()
            .filter_map(|along| Some((*along, along.read(device).ok()?)))
            .collect();
        Ok(HostChange::Queue {
            device,
            sequence: sequence(device),
            setting,
            before,
            after: after.into(),
            along,
        })
    }

    /// Refuses changes outside our namespace, even if they are in a journal.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refused = |what: &str| {
            Err(Error::refused(
                format!("to change {what}"),
                format!("its name does not begin with `{PREFIX}`"),
            ))
        };
        let is_name = |name: &str| {
            name.strip_prefix(PREFIX).is_some_and(|rest| {
                !rest.is_empty()
                    && rest
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            })
        };
        match self {
            HostChange::Queue { before, after, .. } => {
                if [before, after]
                    .iter()
                    .any(|value| value.contains(['\n', '\0']))
                {
                    return refused("a setting");
                }
                Ok(())
            }
            HostChange::ThinPool { group, pool, .. } => {
                // LVM's rule for names, which excludes options.
                let is_group = !group.starts_with('-')
                    && !group.is_empty()
                    && group
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"+_.-".contains(&byte));
                if is_name(pool) && is_group {
                    Ok(())
                } else {
                    refused(&format!("{group}/{pool}"))
                }
            }
        }
    }

    pub(crate) fn make(&self) -> Result<(), Error> {
        match self {
            HostChange::Queue {
                device,
                setting,
                after,
                ..
            } => setting.write(*device, after),
            HostChange::ThinPool {
                group,
                pool,
                volume_bytes,
                pool_bytes,
                chunk_bytes,
                zero,
            } => {
                run(
                    "lvcreate",
                    &[
                        "--yes",
                        "--quiet",
                        "--type",
                        "thin-pool",
                        "--size",
                        &format!("{pool_bytes}b"),
                        "--chunksize",
                        &format!("{chunk_bytes}b"),
                        "--zero",
                        if *zero { "y" } else { "n" },
                        "--addtag",
                        TAG,
                        "--name",
                        pool,
                        group,
                    ],
                )?;
                run(
                    "lvcreate",
                    &[
                        "--yes",
                        "--quiet",
                        "--type",
                        "thin",
                        "--virtualsize",
                        &format!("{volume_bytes}b"),
                        "--thinpool",
                        pool,
                        "--addtag",
                        TAG,
                        "--name",
                        &volume(pool),
                        group,
                    ],
                )?;
                Ok(())
            }
        }
    }

    /// Reverts the change; `false` if there was nothing to revert.
    pub(crate) fn revert(&self) -> Result<bool, Error> {
        match self {
            HostChange::Queue {
                device,
                sequence: counted,
                setting,
                before,
                after,
                along,
            } => {
                if sequence(*device) != *counted {
                    // The device is gone; its number may be reused.
                    return Ok(false);
                }
                let Ok(now) = setting.read(*device) else {
                    return Ok(false);
                };
                if now != *after && now != *before {
                    // Another program has changed it since; keep that value.
                    return Ok(false);
                }
                let mut is_set = false;
                if now != *before {
                    setting.write(*device, before)?;
                    is_set = true;
                }
                // Even if the setting is unchanged: a run may have been killed in between.
                for (along, before) in along {
                    if along.read(*device).is_ok_and(|now| now != *before) {
                        along.write(*device, before)?;
                        is_set = true;
                    }
                }
                Ok(is_set)
            }
            HostChange::ThinPool { group, pool, .. } => {
                let path = format!("{group}/{pool}");
                let Ok(tags) = run("lvs", &["--noheadings", "--options", "lv_tags", &path]) else {
                    return Ok(false);
                };
                if !tags.trim().split(',').any(|tag| tag == TAG) {
                    return Ok(false);
                }
                run("lvremove", &["--yes", "--quiet", "--force", &path])?;
                Ok(true)
            }
        }
    }
}

impl fmt::Display for HostChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostChange::Queue {
                device,
                setting,
                before,
                after,
                ..
            } => write!(f, "{} of {device}: {before} (was {after})", setting.file()),
            HostChange::ThinPool { group, pool, .. } => write!(f, "thin pool {group}/{pool}"),
        }
    }
}

/// The tag of every volume created by a run.
const TAG: &str = "vmdisk-bench";

/// Returns the name of the volume in a pool.
pub(crate) fn volume(pool: &str) -> String {
    format!("{pool}-volume")
}

fn sequence(device: DeviceNumber) -> Option<u64> {
    // Kernels before 5.15 have no sequence number.
    fs::read_to_string(format!("/sys/dev/block/{device}/diskseq"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_in_our_namespace_are_accepted() {
        let pool = |group: &str, pool: &str| HostChange::ThinPool {
            group: group.to_owned(),
            pool: pool.to_owned(),
            volume_bytes: 0,
            pool_bytes: 0,
            chunk_bytes: 0,
            zero: true,
        };
        assert!(pool("vg0", "vmdisk-bench-1-a").check().is_ok());
        for name in [
            "root",
            "vmdisk-bench-",
            "vmdisk-bench-../x",
            "vmdisk-bench-a b",
            "-f",
        ] {
            assert!(pool("vg0", name).check().is_err(), "{name}");
        }
        assert!(pool("--all", "vmdisk-bench-p").check().is_err());
    }

    #[test]
    fn a_change_round_trips() {
        let change = HostChange::Queue {
            device: DeviceNumber { major: 7, minor: 1 },
            sequence: Some(9),
            setting: QueueSetting::Scheduler,
            before: "none".to_owned(),
            after: "bfq".to_owned(),
            along: BTreeMap::from([(QueueSetting::NrRequests, "128".to_owned())]),
        };
        let text = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<HostChange>(&text).unwrap(), change);
    }
}
