//! What single drivers say of their devices: dm-crypt, NVMe, SCSI, bcache, ZFS volumes.

use crate::fact::Fact;
use crate::record::facts;

facts! {
    /// The settings of an encrypted device in dm-crypt.
    pub struct Crypt {
        /// Whether it passes discards on (`allow_discards`; `--allow-discards`, `discard` in crypttab). Without the table, which
        /// only root may read, it follows from the queues of this device and the one below.
        pub allow_discards: Fact<bool>,
        /// The cipher (`aes-xts-plain64`).
        pub cipher: Fact<String>,
        /// Every option of the table (`no_read_workqueue`, `sector_size:4096`).
        pub options: Fact<Vec<String>>,
    }
}

facts! {
    /// The state of a namespace in the NVMe driver.
    pub struct Nvme {
        /// How it is reached: `pcie`, `tcp`, `rdma`, `fc`.
        pub transport: Fact<String>,
        /// Its number within the drive.
        pub namespace: Fact<u32>,
        /// The formats that it supports, in the drive's order; only root may read them.
        pub formats: Fact<Vec<LbaFormat>>,
    }
}

facts! {
    /// One format of an NVMe namespace.
    pub struct LbaFormat {
        /// Bytes in a block.
        pub block: Fact<u64>,
        /// Bytes of metadata with each block.
        pub metadata: Fact<u64>,
        /// Its relative speed, as the drive reports it: 0 is best, 3 is worst.
        pub performance: Fact<u32>,
        /// Whether it is the one in use.
        pub in_use: Fact<bool>,
    }
}

facts! {
    /// The state of a disk in the SCSI disk driver.
    pub struct Scsi {
        /// Whether the device answers: `running`, `offline`, `blocked`.
        pub state: Fact<String>,
        /// The driver of its host adapter (`ahci`, `mpt3sas`, `iscsi_tcp`, `qla2xxx`).
        pub host: Fact<String>,
        /// `write back` or `write through`, as the disk says; the queue's may be set to something else.
        pub cache_type: Fact<String>,
        /// Whether it allocates blocks when they are written.
        pub thin_provisioning: Fact<bool>,
        /// How discards are sent: `unmap`, `writesame_16`, `disabled`, `full` for not at all.
        pub provisioning_mode: Fact<String>,
    }
}

facts! {
    /// The state of a cached device in bcache.
    pub struct Bcache {
        /// `writethrough`, `writeback`, `writearound` or `none`.
        pub mode: Fact<String>,
        /// `no cache`, `clean`, `dirty` or `inconsistent`: dirty means that the disk below alone is not whole.
        pub state: Fact<String>,
    }
}

facts! {
    /// What ZFS's own tools say of a volume.
    pub struct Zvol {
        /// The dataset (`tank/vm1`).
        pub dataset: Fact<String>,
        /// The `volblocksize` property in bytes.
        pub volblocksize: Fact<u64>,
        /// The `sync` property.
        pub sync: Fact<String>,
        /// The `compression` property.
        pub compression: Fact<String>,
    }
}
