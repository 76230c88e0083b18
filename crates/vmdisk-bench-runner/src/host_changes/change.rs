//! One change, how it is made, and how it is taken back.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use vmdisk_facts::DeviceNumber;

use super::PREFIX;
use crate::Error;
use crate::programs::run;

/// One change to the host that has to be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "change", deny_unknown_fields)]
pub enum Change {
    /// A setting of a block device's request queue.
    #[serde(rename_all = "snake_case")]
    Queue {
        /// The device.
        device: DeviceNumber,
        /// The kernel's count of devices, which distinguishes it from a later device with the same number.
        sequence: Option<u64>,
        /// Which setting.
        setting: QueueSetting,
        /// The old value.
        before: String,
        /// The new value.
        after: String,
        /// Settings that the kernel changes along with it, as they were.
        along: BTreeMap<QueueSetting, String>,
    },
    /// A pool of thin volumes with one volume in it.
    #[serde(rename_all = "snake_case")]
    ThinPool {
        /// Volume group, which the user named.
        group: String,
        /// Name of the pool; the volume has the same name followed by `-volume`.
        pool: String,
        /// Bytes of the volume.
        volume_bytes: u64,
        /// Bytes of the pool.
        pool_bytes: u64,
        /// Unit of allocation in bytes.
        chunk_bytes: u64,
        /// Whether chunks are zeroed before they are handed out.
        zero: bool,
    },
}

/// A setting of a block device's request queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSetting {
    /// The I/O scheduler.
    Scheduler,
    /// How many requests the scheduler holds.
    NrRequests,
    /// KiB that are read ahead.
    ReadAheadKb,
    /// The latency in µs that writeback is throttled for.
    WbtLatUsec,
}

impl QueueSetting {
    /// The name of its file in sysfs.
    pub const fn file(self) -> &'static str {
        match self {
            QueueSetting::Scheduler => "scheduler",
            QueueSetting::NrRequests => "nr_requests",
            QueueSetting::ReadAheadKb => "read_ahead_kb",
            QueueSetting::WbtLatUsec => "wbt_lat_usec",
        }
    }

    /// Those that the kernel sets anew when this one is set: a scheduler brings its own number of requests, and bfq
    /// switches the throttle off.
    const fn along(self) -> &'static [QueueSetting] {
        match self {
            QueueSetting::Scheduler => &[QueueSetting::NrRequests, QueueSetting::WbtLatUsec],
            QueueSetting::NrRequests | QueueSetting::ReadAheadKb | QueueSetting::WbtLatUsec => &[],
        }
    }

    fn path(self, device: DeviceNumber) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{device}/queue")).join(self.file())
    }

    /// The current value.
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

impl Change {
    /// A setting of a queue, with what it is now.
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
        Ok(Change::Queue {
            device,
            sequence: sequence(device),
            setting,
            before,
            after: after.into(),
            along,
        })
    }

    /// Refuses what is not ours to make or take back, whoever wrote the journal.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refused = |what: &str| {
            Err(Error::Refused {
                what: format!("to touch {what}"),
                why: format!("its name does not begin with {PREFIX}"),
            })
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
            Change::Queue { before, after, .. } => {
                if [before, after]
                    .iter()
                    .any(|value| value.contains(['\n', '\0']))
                {
                    return refused("a setting");
                }
                Ok(())
            }
            Change::ThinPool { group, pool, .. } => {
                // LVM's own rule for names, which keeps options away.
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
            Change::Queue {
                device,
                setting,
                after,
                ..
            } => setting.write(*device, after),
            Change::ThinPool {
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

    /// Takes it back; `false` if there was nothing to take back.
    pub(crate) fn take_back(&self) -> Result<bool, Error> {
        match self {
            Change::Queue {
                device,
                sequence: counted,
                setting,
                before,
                after,
                along,
            } => {
                if sequence(*device) != *counted {
                    // The device is gone, and another may have its number.
                    return Ok(false);
                }
                let Ok(now) = setting.read(*device) else {
                    return Ok(false);
                };
                if now != *after && now != *before {
                    // Another program has set it since; that value is kept.
                    return Ok(false);
                }
                let mut is_set = false;
                if now != *before {
                    setting.write(*device, before)?;
                    is_set = true;
                }
                // Also if the setting is unchanged: a run may have been killed between it and these.
                for (along, before) in along {
                    if along.read(*device).is_ok_and(|now| now != *before) {
                        along.write(*device, before)?;
                        is_set = true;
                    }
                }
                Ok(is_set)
            }
            Change::ThinPool { group, pool, .. } => {
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

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Queue {
                device,
                setting,
                before,
                after,
                ..
            } => write!(f, "{} of {device}: {before} (was {after})", setting.file()),
            Change::ThinPool { group, pool, .. } => write!(f, "thin pool {group}/{pool}"),
        }
    }
}

/// The tag on every volume of ours.
const TAG: &str = "vmdisk-bench";

/// Name of the volume in a pool of ours.
pub(crate) fn volume(pool: &str) -> String {
    format!("{pool}-volume")
}

fn sequence(device: DeviceNumber) -> Option<u64> {
    // Kernels before 5.15 do not count.
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
    fn what_is_not_ours_is_neither_made_nor_taken_back() {
        let pool = |group: &str, pool: &str| Change::ThinPool {
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
    fn a_change_is_read_as_it_was_written() {
        let change = Change::Queue {
            device: DeviceNumber { major: 7, minor: 1 },
            sequence: Some(9),
            setting: QueueSetting::Scheduler,
            before: "none".to_owned(),
            after: "bfq".to_owned(),
            along: BTreeMap::from([(QueueSetting::NrRequests, "128".to_owned())]),
        };
        let text = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), change);
    }
}
