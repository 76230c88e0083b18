//! Filesystems: what kind, how full, and what decides over O_DIRECT.

use std::borrow::Cow;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Reason};
use crate::record::facts;
use crate::version::Version;

facts! {
    /// One filesystem; several mounts may show it.
    pub struct Filesystem {
        /// Its local id (`f1`).
        pub id: String,
        /// Which filesystem it is.
        pub kind: FsKind,
        /// The number statfs(2) gives, in hexadecimal (`0x9123683e`).
        pub magic: Fact<String>,
        /// Bytes an unprivileged writer may still use.
        pub free_bytes: Fact<u64>,
        /// Its whole size in bytes.
        pub total_bytes: Fact<u64>,
        /// The ids of the block devices it is on.
        pub devices: Fact<Vec<String>>,
        /// Facts of btrfs only.
        pub btrfs: Fact<Btrfs>,
        /// Facts of ext3 and ext4 only.
        pub ext4: Fact<Ext4>,
        /// Facts of ZFS only.
        pub zfs: Fact<Zfs>,
        /// Facts of overlay mounts only.
        pub overlay: Fact<Overlay>,
    }
}

facts! {
    /// btrfs: profiles and checksums.
    pub struct Btrfs {
        /// The profiles data is stored with (`single`, `raid1`); two during a balance.
        pub data_profile: Fact<Vec<String>>,
        /// The checksum algorithm (`crc32c`).
        pub checksum: Fact<String>,
        /// The smallest block in bytes.
        pub sectorsize: Fact<u64>,
    }
}

impl Btrfs {
    /// Whether data is kept in more than one copy or with parity, so that checksums can repair it.
    ///
    /// During a balance there are two profiles. The kernel uses the profile of new data, which is not visible: one
    /// profile with several copies is enough for an answer.
    pub fn keeps_several_copies(&self) -> Fact<bool> {
        self.data_profile.as_ref().and_then(|profiles| {
            if profiles.is_empty() {
                return Fact::unknown(Reason::Parse, "no btrfs data profile was found");
            }
            let has_copies = |profile: &String| !matches!(profile.as_str(), "single" | "raid0");
            Fact::Known(profiles.iter().any(has_copies))
        })
    }
}

/// ext3 and ext4: the data mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Ext4 {
    /// `ordered`, `writeback` or `journal`; absent without a journal. With `journal` O_DIRECT is accepted and
    /// ignored.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub data_mode: Fact<String>,
}

facts! {
    /// ZFS: the properties that decide about O_DIRECT and write sizes.
    pub struct Zfs {
        /// The dataset (`tank/images`).
        pub dataset: Fact<String>,
        /// The version of OpenZFS.
        pub version: Fact<Version>,
        /// The `direct` property: `standard`, `always`, `disabled`; absent before 2.3.
        pub direct: Fact<String>,
        /// The `sync` property.
        pub sync: Fact<String>,
        /// The `recordsize` property in bytes.
        pub recordsize: Fact<u64>,
        /// The `compression` property.
        pub compression: Fact<String>,
    }
}

facts! {
    /// An overlay mount.
    pub struct Overlay {
        /// The directory that takes the writes; absent on a read-only overlay.
        pub upper: Fact<String>,
        /// The directories below, topmost first.
        pub lower: Fact<Vec<String>>,
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Which filesystem it is, by the kernel's name.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum FsKind {
            $($(#[$doc])* $name,)*
            /// A FUSE filesystem and its subtype (`sshfs`), empty when it has none.
            Fuse(String),
            /// A filesystem this version has no word for.
            Other(String),
        }

        impl FsKind {
            /// Every filesystem that has its own variant.
            pub const NAMED: &[Self] = &[$(Self::$name,)*];

            /// The kernel's name (`ext4`, `fuse.sshfs`).
            pub fn name(&self) -> Cow<'_, str> {
                match self {
                    $(Self::$name => $word.into(),)*
                    Self::Fuse(subtype) if subtype.is_empty() => "fuse".into(),
                    Self::Fuse(subtype) => format!("fuse.{subtype}").into(),
                    Self::Other(name) => name.into(),
                }
            }
        }

        impl From<&str> for FsKind {
            fn from(name: &str) -> Self {
                match name {
                    $($word => Self::$name,)*
                    "fuse" | "fuseblk" => Self::Fuse(String::new()),
                    _ => match name.strip_prefix("fuse.") {
                        Some(subtype) => Self::Fuse(subtype.to_owned()),
                        None => Self::Other(name.to_owned()),
                    },
                }
            }
        }
    };
}

kinds! {
    /// ext2, which today's kernels serve with the ext4 driver.
    Ext2 = "ext2",
    /// ext3, which today's kernels serve with the ext4 driver.
    Ext3 = "ext3",
    /// ext4.
    Ext4 = "ext4",
    /// XFS.
    Xfs = "xfs",
    /// btrfs.
    Btrfs = "btrfs",
    /// bcachefs.
    Bcachefs = "bcachefs",
    /// F2FS.
    F2fs = "f2fs",
    /// OpenZFS.
    Zfs = "zfs",
    /// Memory that can be swapped.
    Tmpfs = "tmpfs",
    /// Memory that cannot be swapped.
    Ramfs = "ramfs",
    /// Huge pages shown as files.
    Hugetlbfs = "hugetlbfs",
    /// The file system of device nodes.
    Devtmpfs = "devtmpfs",
    /// Compressed and read-only.
    Squashfs = "squashfs",
    /// Read-only, compressed or not.
    Erofs = "erofs",
    /// CDs and their images.
    Iso9660 = "iso9660",
    /// FAT.
    Vfat = "vfat",
    /// One tree laid over others.
    Overlay = "overlay",
    /// Encryption stacked on another filesystem.
    Ecryptfs = "ecryptfs",
    /// NFS up to version 3.
    Nfs = "nfs",
    /// NFS version 4.
    Nfs4 = "nfs4",
    /// SMB.
    Cifs = "cifs",
    /// Plan 9, as between host and guest.
    Plan9 = "9p",
    /// virtio-fs, as between host and guest.
    Virtiofs = "virtiofs",
    /// CephFS.
    Ceph = "ceph",
    /// GFS2.
    Gfs2 = "gfs2",
    /// OCFS2.
    Ocfs2 = "ocfs2",
}

impl FsKind {
    /// Whether its files vanish when the host stops.
    pub fn is_volatile(&self) -> bool {
        matches!(
            self,
            Self::Tmpfs | Self::Ramfs | Self::Hugetlbfs | Self::Devtmpfs
        )
    }

    /// True if a server, a program or the host above has the data.
    pub const fn is_elsewhere(&self) -> bool {
        matches!(
            self,
            Self::Nfs
                | Self::Nfs4
                | Self::Cifs
                | Self::Ceph
                | Self::Plan9
                | Self::Virtiofs
                | Self::Fuse(_)
        )
    }

    /// True if requests reach the devices as they are; other file systems split them into blocks.
    pub const fn passes_requests_on(&self) -> bool {
        matches!(self, Self::Xfs | Self::Ext2 | Self::Ext3 | Self::Ext4)
    }
}

impl Default for FsKind {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl From<String> for FsKind {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<FsKind> for String {
    fn from(kind: FsKind) -> Self {
        kind.name().into_owned()
    }
}

impl fmt::Display for FsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for FsKind {
    fn schema_name() -> Cow<'static, str> {
        "FsKind".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let names: Vec<String> = Self::NAMED
            .iter()
            .map(|kind| kind.name().into_owned())
            .collect();
        json_schema!({ "description": "the kernel's name of the filesystem", "type": "string", "examples": names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_reads_back_from_its_own_name() {
        for kind in FsKind::NAMED {
            assert_eq!(FsKind::from(&*kind.name()), *kind);
        }
        assert_eq!(FsKind::from("fuse.sshfs"), FsKind::Fuse("sshfs".to_owned()));
        assert_eq!(FsKind::from("fuse").name(), "fuse");
        assert_eq!(FsKind::from("nilfs2"), FsKind::Other("nilfs2".to_owned()));
    }
}
