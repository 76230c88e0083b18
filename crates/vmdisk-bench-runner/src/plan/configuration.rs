//! The disk that a cell measures.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmdisk_model::{Bytes, Disk, Domain};

/// One disk of the model, in the guest around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Its name, unique in the plan, such as `qcow2-falloc`.
    pub name: String,
    /// Its factors, each with its value as written in plans.
    pub factors: BTreeMap<String, String>,
    /// The guest, whose only disk is measured. The disk's image has a placeholder for
    /// a path, and in [`vmdisk_model::Image::creation`] how it is made; engines put in their own path.
    pub guest: Domain,
    /// Where the storage comes from.
    pub storage: Storage,
    /// Size that the guest sees.
    pub size: Bytes,
    /// True if QEMU hands the disk to a qemu-storage-daemon as a vhost-user-blk device; the disk's
    /// backend then says how the daemon opens it.
    pub is_served_by_daemon: bool,
    /// True if requests of the host go through its page cache; guests and daemons follow the cache mode instead.
    pub is_buffered: bool,
    /// The linter's findings, provided by the caller.
    pub findings: Vec<Finding>,
}

impl Configuration {
    /// The disk that is measured.
    pub fn disk(&self) -> &Disk {
        &self.guest.disks[0]
    }
}

/// Where the storage of a configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Storage {
    /// A new file in a fresh directory.
    #[serde(rename_all = "snake_case")]
    File {
        /// Where the fresh directory is made; unset is where the run has it.
        directory: Option<PathBuf>,
        /// True if the file is made with `chattr +C`, which on btrfs means no copies and no checksums.
        no_cow: bool,
    },
    /// A whole block device that was prepared for this.
    #[serde(rename_all = "snake_case")]
    Device {
        /// A path that stays the same, under `/dev/disk/by-id`.
        path: PathBuf,
        /// The serial number that was confirmed.
        serial: String,
        /// I/O scheduler that is set for the run, and set back after it; unset leaves it alone.
        #[serde(default)]
        scheduler: Option<String>,
    },
    /// A new thin volume in a new pool of a volume group that the user named.
    #[serde(rename_all = "snake_case")]
    ThinVolume {
        /// Volume group.
        group: String,
        /// Unit of allocation in the pool, in bytes.
        chunk_bytes: u64,
        /// Whether a chunk is zeroed before it is handed out.
        zero: bool,
    },
}

/// A finding of the linter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Name of the rule.
    pub rule: String,
    /// How bad it is.
    pub severity: FindingSeverity,
    /// The mistake, in one line.
    pub title: String,
}

/// How bad a finding is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FindingSeverity {
    /// It will not start, or loses data.
    Error,
    /// Probably not what was meant.
    Warning,
    /// Could be better.
    Advice,
}
