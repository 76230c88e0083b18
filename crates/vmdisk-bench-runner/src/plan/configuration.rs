//! Configurations: the disks to measure.

use std::collections::BTreeMap;
use std::path::PathBuf;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmdisk_model::{Bytes, Disk, Domain};

/// One disk of the model, with its guest.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Its name, unique in the plan, such as `qcow2-falloc`.
    pub name: String,
    /// Its factors, with their values as written in plans.
    pub factors: BTreeMap<String, String>,
    /// The guest, whose only disk is measured. The disk's image has a placeholder path, and
    /// [`vmdisk_model::Image::creation`] says how to create it; engines set the real path.
    pub guest: Domain,
    /// The kind of storage.
    pub storage: Storage,
    /// Size that the guest sees.
    pub size: Bytes,
    /// Number of times that steady storage is written over its whole length before it is measured.
    pub fills: u32,
    /// True if QEMU uses the disk as a vhost-user-blk device: of the program behind a [`Storage::Socket`], or otherwise of a
    /// qemu-storage-daemon, which opens it as the disk's backend describes.
    pub is_served_by_daemon: bool,
    /// True if fio on the host uses the page cache; guests and daemons follow the cache mode instead.
    pub is_buffered: bool,
    /// The program that pins QEMU, its daemons, or fio without QEMU, with its arguments; empty if they are not pinned.
    pub launcher: Vec<String>,
    /// The linter's findings, provided by the caller.
    pub findings: Vec<LinterFinding>,
}

impl Configuration {
    /// Returns the measured disk.
    pub fn disk(&self) -> &Disk {
        &self.guest.disks[0]
    }
}

/// The kind of storage of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Storage {
    /// A new file in a fresh directory.
    #[serde(rename_all = "snake_case")]
    File {
        /// The parent of the fresh directory; unset uses the directory of the run.
        directory: Option<PathBuf>,
        /// True if the file is created with `chattr +C`, which on btrfs disables copy-on-write and checksums.
        no_cow: bool,
    },
    /// A whole block device prepared with `vmdisk bench prepare-device`.
    #[serde(rename_all = "snake_case")]
    Device {
        /// A stable path, under `/dev/disk/by-id`.
        path: PathBuf,
        /// The confirmed serial number.
        serial: String,
        /// I/O scheduler for the run, restored afterwards; unset leaves it unchanged.
        #[serde(default)]
        scheduler: Option<String>,
    },
    /// A new thin volume in a new pool of a volume group that the user named.
    #[serde(rename_all = "snake_case")]
    ThinVolume {
        /// The volume group.
        group: String,
        /// Unit of allocation in the pool, in bytes.
        chunk_bytes: u64,
        /// True if chunks are zeroed before use.
        zero: bool,
    },
    /// A file or block device that exists, and is only read.
    #[serde(rename_all = "snake_case")]
    Existing {
        /// Its path.
        path: PathBuf,
    },
    /// A vhost-user-blk device behind a socket that the user named, served by a program outside the run.
    #[serde(rename_all = "snake_case")]
    Socket {
        /// The socket.
        path: PathBuf,
    },
}

/// A finding of the linter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "Finding"))]
pub struct LinterFinding {
    /// Name of the rule.
    pub rule: String,
    /// Its severity.
    pub severity: FindingSeverity,
    /// The mistake, in one line.
    pub title: String,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FindingSeverity {
    /// The guest will not start, or loses data.
    Error,
    /// Probably not intended.
    Warning,
    /// Could be improved.
    Advice,
}
