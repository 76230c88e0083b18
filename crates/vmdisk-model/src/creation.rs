//! Creation of storage: options that exist only at creation and not in a running VM.

use crate::{Bytes, Format};
use vmdisk_source::words;

words! {
    /// Preallocation of a raw file; `qemu-img create -f raw -o preallocation=`. Default: `off`.
    pub enum Preallocation as as_str {
        /// A sparse file.
        Off = "off",
        /// Blocks are reserved by `fallocate`, not written.
        Falloc = "falloc",
        /// Blocks are written with zeroes.
        Full = "full",
    }
}

words! {
    /// Preallocation of a qcow2 image; `qemu-img create -f qcow2 -o preallocation=`. Default: `off`.
    pub enum Qcow2Preallocation as as_str {
        /// Metadata and data grow as the guest writes.
        Off = "off",
        /// All metadata is written; data stays sparse.
        Metadata = "metadata",
        /// Metadata is written, data blocks are reserved by `fallocate`.
        Falloc = "falloc",
        /// Metadata and data are written.
        Full = "full",
    }
}

/// Options of `qemu-img create -f qcow2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qcow2Creation {
    /// Size that the guest sees; may be left to the backing image.
    pub size: Option<Bytes>,
    /// Preallocation.
    pub preallocation: Option<Qcow2Preallocation>,
    /// Cluster size, a power of two from 512 bytes to 2 MiB; default 64 KiB.
    pub cluster_size: Option<Bytes>,
    /// Subclusters, 32 per cluster; needs clusters of 16 KiB or more, QEMU 5.2.
    pub extended_l2: Option<bool>,
    /// Postponed reference counts: a crash then needs a repair.
    pub lazy_refcounts: Option<bool>,
    /// Image below this one, with its format; both are recorded in the header.
    pub backing: Option<(String, Format)>,
}

/// Name of a logical volume: group and volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalVolumeName {
    /// Volume group.
    pub group: String,
    /// Logical volume.
    pub volume: String,
}

impl LogicalVolumeName {
    /// `/dev/GROUP/VOLUME`, the path LVM makes for it.
    pub fn device_path(&self) -> String {
        format!("/dev/{}/{}", self.group, self.volume)
    }
}

impl std::fmt::Display for LogicalVolumeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.group, self.volume)
    }
}

/// Options of a thin volume and, if the pool must be created too, of its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinCreation {
    /// The volume.
    pub name: LogicalVolumeName,
    /// Size that the guest sees.
    pub size: Option<Bytes>,
    /// Name of the pool, in the same group.
    pub pool: String,
    /// Size of the pool, if the pool must be created too.
    pub pool_size: Option<Bytes>,
    /// Unit of allocation in the pool, a multiple of 64 KiB up to 1 GiB; LVM's default is 64 KiB or more.
    pub chunk_size: Option<Bytes>,
    /// Whether a chunk is zeroed before it is handed out. Off, a new volume reads what a deleted one left.
    pub zero: Option<bool>,
}

/// Creation options of one image's storage; written to the creation script, never to a running VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Creation {
    /// A raw file.
    RawFile {
        /// Size that the guest sees.
        size: Option<Bytes>,
        /// Preallocation.
        preallocation: Option<Preallocation>,
    },
    /// A qcow2 image.
    Qcow2(Qcow2Creation),
    /// A thick logical volume.
    LogicalVolume {
        /// The volume.
        name: LogicalVolumeName,
        /// Size that the guest sees.
        size: Option<Bytes>,
    },
    /// A thin logical volume.
    ThinVolume(ThinCreation),
    /// A seed image, a ZFS volume or a volume of a storage pool.
    Other {
        /// Size that the guest sees; none for a seed image.
        size: Option<Bytes>,
    },
}
