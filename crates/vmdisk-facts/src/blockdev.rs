//! Block devices: the graph from a disk's source down to the drives.

use std::borrow::Cow;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use crate::drivers::{Bcache, Crypt, LbaFormat, Nvme, Scsi, Zvol};
use crate::fact::Fact;
pub use crate::number::{DeviceNumber, Percent};
use crate::record::facts;

facts! {
    /// One block device.
    pub struct BlockDevice {
        /// Its local id (`b1`).
        pub id: String,
        /// Its number.
        pub dev: Fact<DeviceNumber>,
        /// Its kind.
        pub kind: BlockKind,
        /// Every path it is known by: `/dev/dm-5`, `/dev/vg/lv`, `/dev/mapper/vg-lv`, `/dev/disk/by-id/…`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub paths: Vec<String>,
        /// Its paths under `/dev/disk/by-id`; absent when udev made none.
        pub by_id: Fact<Vec<String>>,
        /// Its size in bytes.
        pub size: Fact<u64>,
        /// Whether the host refuses writes to it.
        pub read_only: Fact<bool>,
        /// Whether its medium can be taken out.
        pub removable: Fact<bool>,
        /// Mount points on the host; empty if it is not mounted.
        pub mounted_at: Fact<Vec<String>>,
        /// Whether the host swaps to it.
        pub swap: Fact<bool>,
        /// The ids of the devices on top of it; empty when nothing holds it.
        pub holders: Fact<Vec<String>>,
        /// The ids of its partitions; empty when it has none.
        pub partitions: Fact<Vec<String>>,
        /// The ids of the devices below it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub slaves: Vec<String>,
        /// Its place on the disk it is a part of; absent when it is not a partition.
        pub partition: Fact<Partition>,
        /// Its settings in the block layer; of a partition, the queue of its disk.
        #[serde(default, skip_serializing_if = "Queue::is_empty")]
        pub queue: Queue,
        /// The device mapper's names for it; absent when it is not such a device.
        pub dm: Fact<Dm>,
        /// Its state in LVM; absent when it is not a logical volume.
        pub lvm: Fact<Lvm>,
        /// Its state in the software RAID driver; absent when it is not an array.
        pub md: Fact<Md>,
        /// The file below it; absent when it is not a loop device.
        #[serde(rename = "loop")]
        pub loop_file: Fact<LoopFile>,
        /// Its settings in dm-crypt; absent when it is not encrypted.
        pub crypt: Fact<Crypt>,
        /// Its state in the NVMe driver; absent when it is not a namespace.
        pub nvme: Fact<Nvme>,
        /// Its state in the SCSI driver; absent when it is not a SCSI disk.
        pub scsi: Fact<Scsi>,
        /// Its state in bcache; absent when it is not a cached device.
        pub bcache: Fact<Bcache>,
        /// Its properties in ZFS; absent when it is not a ZFS volume.
        pub zvol: Fact<Zvol>,
        /// The drive's vendor and model.
        pub model: Fact<String>,
        /// Paths of a multipath device that are in use, of all it has (`slaves`).
        pub paths_up: Fact<u32>,
    }
}

impl BlockDevice {
    /// A name for messages: its first path, or its number, or its id.
    pub fn name(&self) -> Cow<'_, str> {
        match (self.paths.first(), &self.dev) {
            (Some(path), _) => path.into(),
            (None, Fact::Known(dev)) => dev.to_string().into(),
            (None, Fact::Absent | Fact::Unknown(_) | Fact::NotCollected) => self.id.as_str().into(),
        }
    }
}

facts! {
    /// The settings of a device in the block layer, from `/sys/block/*/queue`.
    pub struct Queue {
        /// The smallest addressable block in bytes.
        pub logical: Fact<u64>,
        /// The smallest block written without reading first, in bytes.
        pub physical: Fact<u64>,
        /// The preferred request in bytes; 0 is none. A thin volume shows its chunk here.
        pub io_opt: Fact<u64>,
        /// The smallest range a discard frees, in bytes; 0 when it discards nothing.
        pub discard_granularity: Fact<u64>,
        /// The largest discard in bytes; 0 means discards do not get through.
        pub discard_max: Fact<u64>,
        /// Whether it reports to be a rotating disk. Virtual and loop devices report this regardless of their medium.
        pub rotational: Fact<bool>,
        /// The I/O scheduler in use; absent for devices that have none.
        pub scheduler: Fact<String>,
        /// Read-ahead in KiB.
        pub read_ahead_kb: Fact<u64>,
        /// `write back` or `write through`.
        pub write_cache: Fact<String>,
        /// `none`, `host-aware` or `host-managed`.
        pub zoned: Fact<String>,
        /// Requests that may wait.
        pub nr_requests: Fact<u64>,
        /// The latency goal of the writeback throttle in microseconds; 0 is off.
        pub wbt_lat_usec: Fact<u64>,
    }
}

impl Queue {
    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

facts! {
    /// A partition's place on its disk.
    pub struct Partition {
        /// Its number.
        pub number: Fact<u32>,
        /// The id of the disk.
        pub parent: Fact<String>,
        /// Where it starts, in bytes.
        pub start: Fact<u64>,
        /// The distance of its start from the device's natural alignment, in bytes.
        pub alignment_offset: Fact<u64>,
    }
}

facts! {
    /// The device mapper's names.
    pub struct Dm {
        /// The name under `/dev/mapper`.
        pub name: Fact<String>,
    }
}

facts! {
    /// The state of a logical volume in LVM. A thin volume repeats the values of its pool.
    pub struct Lvm {
        /// The volume group.
        pub vg: Fact<String>,
        /// The logical volume.
        pub lv: Fact<String>,
        /// The segment type (`linear`, `striped`, `raid1`, `thin`, `thin-pool`, `snapshot`).
        pub segtype: Fact<String>,
        /// The thin pool it is in; absent when it is in none.
        pub pool: Fact<String>,
        /// The volume it is a snapshot of; absent when it is none.
        pub origin: Fact<String>,
        /// Chunk size in bytes, of a pool or a snapshot.
        pub chunk: Fact<u64>,
        /// Whether the pool zeroes a chunk before a new volume sees it. If not, deleted data can be read.
        pub zero: Fact<bool>,
        /// The pool's treatment of discards: `ignore`, `nopassdown`, `passdown`.
        pub discards: Fact<String>,
        /// How full the pool's data, or the snapshot, is.
        pub data_percent: Fact<Percent>,
        /// How full the pool's metadata is.
        pub metadata_percent: Fact<Percent>,
        /// The result of writes when the pool is full: `queue` or `error`.
        pub when_full: Fact<String>,
        /// Volumes in the pool.
        pub thin_count: Fact<u32>,
        /// Snapshots: of this volume, or of all volumes in this pool.
        pub snapshots: Fact<u32>,
        /// The sum of the sizes of all volumes in the pool, in bytes.
        pub virtual_bytes: Fact<u64>,
        /// The fullness in percent at which LVM extends the pool automatically; 100 is never.
        pub autoextend_threshold: Fact<u32>,
        /// Its defect (`partial`); absent when it has none.
        pub health: Fact<String>,
        /// Bytes of the volume group that no volume has.
        pub vg_free: Fact<u64>,
    }
}

facts! {
    /// The state of an array in the software RAID driver.
    pub struct Md {
        /// The level (`raid1`, `raid0`, `linear`).
        pub level: Fact<String>,
        /// The array's state (`clean`, `active`).
        pub state: Fact<String>,
        /// Missing members; absent for levels without redundancy.
        pub degraded: Fact<u32>,
        /// Members it should have.
        pub raid_disks: Fact<u32>,
        /// Chunk size in bytes; 0 for mirrors.
        pub chunk: Fact<u64>,
        /// Its current activity (`idle`, `resync`, `recover`, `check`); absent for levels without redundancy.
        pub sync: Fact<String>,
    }
}

facts! {
    /// The file below a loop device.
    pub struct LoopFile {
        /// The file's path, as the kernel gives it.
        pub backing_file: Fact<String>,
        /// Whether the file was deleted while in use.
        pub deleted: Fact<bool>,
        /// Whether the loop driver uses direct I/O on the file.
        pub dio: Fact<bool>,
        /// The offset of the device in the file, in bytes.
        pub offset: Fact<u64>,
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// The kind of a block device.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum BlockKind {
            $($(#[$doc])* $name,)*
            /// A kind that this version does not know.
            Other(String),
        }

        impl BlockKind {
            /// Every kind that has its own variant.
            pub const NAMED: &[Self] = &[$(Self::$name,)*];

            /// The word used in files and messages.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<String> for BlockKind {
            fn from(name: String) -> Self {
                match name.as_str() {
                    $($word => Self::$name,)*
                    _ => Self::Other(name),
                }
            }
        }
    };
}

kinds! {
    /// A disk, whole; SCSI, SATA, virtio and the like.
    Disk = "disk",
    /// An NVMe namespace, whole.
    Nvme = "nvme",
    /// A part of a disk.
    Partition = "partition",
    /// A logical volume that is neither thin nor a snapshot nor part of one.
    Lvm = "lvm",
    /// A thin logical volume.
    LvmThin = "lvm-thin",
    /// A thin pool, in any of its layers.
    LvmThinPool = "lvm-thin-pool",
    /// The data of a thin pool.
    LvmThinData = "lvm-thin-data",
    /// The metadata of a thin pool.
    LvmThinMetadata = "lvm-thin-metadata",
    /// A copy-on-write snapshot of a thick volume.
    LvmSnapshot = "lvm-snapshot",
    /// A thick volume that has copy-on-write snapshots.
    LvmOrigin = "lvm-origin",
    /// A part inside a logical volume (`-real`, `-cow`, a mirror's leg).
    LvmPart = "lvm-part",
    /// LUKS version 1.
    CryptLuks1 = "crypt-luks1",
    /// LUKS version 2.
    CryptLuks2 = "crypt-luks2",
    /// Encrypted without LUKS.
    Crypt = "crypt",
    /// Several paths to one drive.
    Multipath = "multipath",
    /// A part of a multipath device.
    MultipathPartition = "multipath-partition",
    /// A device mapper device of another maker.
    DeviceMapper = "device-mapper",
    /// Software RAID.
    Md = "md",
    /// A file shown as a device.
    Loop = "loop",
    /// A ZFS volume.
    Zvol = "zvol",
    /// A Ceph image.
    Rbd = "rbd",
    /// A network block device.
    Nbd = "nbd",
    /// A replicated device.
    Drbd = "drbd",
    /// A cache in front of a disk.
    Bcache = "bcache",
    /// Compressed memory.
    Zram = "zram",
    /// Memory.
    Ram = "ram",
    /// An optical drive.
    Cdrom = "cdrom",
}

impl BlockKind {
    /// Whether the device mapper made it.
    pub fn is_device_mapper(&self) -> bool {
        self.is_lvm()
            || matches!(
                self,
                Self::CryptLuks1
                    | Self::CryptLuks2
                    | Self::Crypt
                    | Self::Multipath
                    | Self::MultipathPartition
                    | Self::DeviceMapper
            )
    }

    /// Whether LVM made it.
    pub fn is_lvm(&self) -> bool {
        matches!(
            self,
            Self::Lvm
                | Self::LvmThin
                | Self::LvmThinPool
                | Self::LvmThinData
                | Self::LvmThinMetadata
                | Self::LvmSnapshot
                | Self::LvmOrigin
                | Self::LvmPart
        )
    }

    /// Whether what is written to it is encrypted.
    pub fn is_crypt(&self) -> bool {
        matches!(self, Self::CryptLuks1 | Self::CryptLuks2 | Self::Crypt)
    }
}

impl Default for BlockKind {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl From<BlockKind> for String {
    fn from(kind: BlockKind) -> Self {
        kind.as_str().to_owned()
    }
}

impl fmt::Display for BlockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for BlockKind {
    fn schema_name() -> Cow<'static, str> {
        "BlockKind".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Self::NAMED.iter().map(Self::as_str).collect();
        json_schema!({ "description": "the type of a block device", "type": "string", "examples": names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_mapper_makes_volumes_containers_and_paths() {
        use BlockKind as Kind;
        for kind in [Kind::Lvm, Kind::LvmThin, Kind::CryptLuks2, Kind::Multipath] {
            assert!(kind.is_device_mapper(), "{kind}");
        }
        for kind in [Kind::Disk, Kind::Md, Kind::Loop, Kind::Zram] {
            assert!(!kind.is_device_mapper(), "{kind}");
        }
    }

    #[test]
    fn a_queue_is_empty_until_something_of_it_was_collected() {
        let queue = Queue::default();
        assert!(queue.is_empty());
        let wbt_lat_usec = Fact::Absent;
        assert!(
            !Queue {
                wbt_lat_usec,
                ..queue
            }
            .is_empty()
        );
    }

    #[test]
    fn a_kind_reads_back_from_its_own_word() {
        for kind in BlockKind::NAMED {
            assert_eq!(BlockKind::from(kind.as_str().to_owned()), *kind);
        }
        assert_eq!(
            BlockKind::from("dasd".to_owned()),
            BlockKind::Other("dasd".to_owned())
        );
    }
}
