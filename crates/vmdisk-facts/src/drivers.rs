//! What single drivers say of their devices: dm-crypt, NVMe, SCSI, bcache, ZFS volumes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;

/// The settings of an encrypted device in dm-crypt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Crypt {
    /// Whether it passes discards on (`allow_discards`; `--allow-discards`, `discard` in crypttab). Without the table, which
    /// only root may read, it follows from the queues of this device and the one below.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub allow_discards: Fact<bool>,
    /// The cipher (`aes-xts-plain64`).
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub cipher: Fact<String>,
    /// Every option of the table (`no_read_workqueue`, `sector_size:4096`).
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub options: Fact<Vec<String>>,
}

/// The state of a namespace in the NVMe driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nvme {
    /// How it is reached: `pcie`, `tcp`, `rdma`, `fc`.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub transport: Fact<String>,
    /// Its number within the drive.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub namespace: Fact<u32>,
    /// The formats that it supports, in the drive's order; only root may read them.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub formats: Fact<Vec<LbaFormat>>,
}

/// One format of an NVMe namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LbaFormat {
    /// Bytes in a block.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub block: Fact<u64>,
    /// Bytes of metadata with each block.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub metadata: Fact<u64>,
    /// Its relative speed, as the drive reports it: 0 is best, 3 is worst.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub performance: Fact<u32>,
    /// Whether it is the one in use.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub in_use: Fact<bool>,
}

/// The state of a disk in the SCSI disk driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scsi {
    /// Whether the device answers: `running`, `offline`, `blocked`.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub state: Fact<String>,
    /// The driver of its host adapter (`ahci`, `mpt3sas`, `iscsi_tcp`, `qla2xxx`).
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub host: Fact<String>,
    /// `write back` or `write through`, as the disk says; the queue's may be set to something else.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub cache_type: Fact<String>,
    /// Whether it allocates blocks when they are written.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub thin_provisioning: Fact<bool>,
    /// How discards are sent: `unmap`, `writesame_16`, `disabled`, `full` for not at all.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub provisioning_mode: Fact<String>,
}

/// The state of a cached device in bcache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bcache {
    /// `writethrough`, `writeback`, `writearound` or `none`.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub mode: Fact<String>,
    /// `no cache`, `clean`, `dirty` or `inconsistent`: dirty means that the disk below alone is not whole.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub state: Fact<String>,
}

/// What ZFS's own tools say of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Zvol {
    /// The dataset (`tank/vm1`).
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub dataset: Fact<String>,
    /// The `volblocksize` property in bytes.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub volblocksize: Fact<u64>,
    /// The `sync` property.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub sync: Fact<String>,
    /// The `primarycache` property.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub primarycache: Fact<String>,
    /// The `compression` property.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub compression: Fact<String>,
}
