//! What is asked of a new disk, and the forms that it can have.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_facts::verdict::file_system::FsAbilities;
use vmdisk_model::Bytes;
use vmdisk_plan::GuestOs;

vmdisk_source::words! {
    /// Something that a disk should have.
    pub enum Want as word {
        /// States of the disk that are kept.
        Snapshots = "snapshots",
        /// Space that is used as the guest writes.
        Thin = "thin",
        /// Other disks that share the data of this one.
        Clones = "clones",
        /// Live migration to another host without a copy of the disk.
        Migration = "migration",
        /// The guest's discards free space.
        Trim = "trim",
        /// Checksums of the data.
        Checksums = "checksums",
        /// The data survives the failure of a drive.
        Redundancy = "redundancy",
    }
}

vmdisk_source::words! {
    /// The load that a guest puts on a disk.
    pub enum DiskLoad as word {
        /// Small random requests, with flushes.
        Database = "database",
        /// Large requests in order.
        Sequential = "sequential",
        /// Anything.
        Mixed = "mixed",
        /// A system that is read at start, and written little.
        Boot = "boot",
        /// Copies of other data: large, written in order, and seldom read.
        Backup = "backup",
        /// Systems that are made from one image, and thrown away.
        Ci = "ci",
    }
}

vmdisk_source::words! {
    /// The form of a disk's storage.
    pub enum StorageForm as word {
        /// A sparse raw file.
        Raw = "raw",
        /// A raw file with reserved space.
        RawFalloc = "raw, preallocation falloc",
        /// A raw file that is written once.
        RawFull = "raw, preallocation full",
        /// A sparse qcow2 image.
        Qcow2 = "qcow2",
        /// A sparse qcow2 image with its tables.
        Qcow2Metadata = "qcow2, preallocation metadata",
        /// A qcow2 image with reserved space.
        Qcow2Falloc = "qcow2, preallocation falloc",
        /// A qcow2 image that is written once.
        Qcow2Full = "qcow2, preallocation full",
        /// A sparse raw file on btrfs with copy-on-write and checksums.
        RawCopied = "raw, copy-on-write",
        /// A sparse qcow2 image on btrfs with copy-on-write and checksums.
        Qcow2Copied = "qcow2, copy-on-write",
        /// A thick logical volume.
        Volume = "logical volume",
        /// A thin logical volume.
        ThinVolume = "thin volume",
        /// A ZFS volume.
        ZfsVolume = "ZFS volume",
        /// A whole disk.
        WholeDisk = "whole disk",
    }
}

/// What is asked of a new disk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StorageIntent {
    /// The name of the image or volume, without a directory and an ending.
    pub name: String,
    /// Size that the guest sees.
    pub size: Bytes,
    /// The number of guests that get such a disk each.
    pub guests: u32,
    /// What the disk must have.
    pub wants: BTreeSet<Want>,
    /// True if the data may be lost when the host stops.
    pub is_scratch: bool,
    /// The expected load.
    pub load: DiskLoad,
    /// The operating system of the guest, as far as its disks depend on it.
    pub os: Option<GuestOs>,
    /// Directories, volume groups, thin pools (`group/pool`), datasets of ZFS and devices; empty for all that the facts name.
    pub places: Vec<String>,
    /// The whole disks that were looked at, by their name in the advice: what is in the way of using them, if anything
    /// is. Facts do not show whether a disk holds data.
    pub looked_at: BTreeMap<String, Option<String>>,
}

impl StorageIntent {
    /// A durable disk of this size for any load, without further wishes.
    pub fn new(size: Bytes) -> Self {
        Self {
            name: "disk".to_owned(),
            size,
            guests: 1,
            wants: BTreeSet::new(),
            is_scratch: false,
            load: DiskLoad::Mixed,
            os: None,
            places: Vec::new(),
            looked_at: BTreeMap::new(),
        }
    }

    /// With wishes.
    #[must_use]
    pub fn with_wants(mut self, wants: impl IntoIterator<Item = Want>) -> Self {
        self.wants.extend(wants);
        self
    }

    /// The bytes of all guests' disks, each of which takes so many.
    pub(super) fn of_all(&self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0.saturating_mul(self.guests.max(1).into()))
    }

    /// For a load.
    #[must_use]
    pub const fn with_load(mut self, load: DiskLoad) -> Self {
        self.load = load;
        self
    }
}

impl StorageForm {
    /// Bytes that a disk of this form takes when it is made.
    pub(super) fn taken(self, size: Bytes, abilities: Option<&FsAbilities>) -> Bytes {
        let is_filled = abilities.is_some_and(|it| it.has_holes == Some(false));
        match self {
            StorageForm::Raw | StorageForm::Qcow2Metadata if is_filled => size,
            StorageForm::RawFalloc
            | StorageForm::RawFull
            | StorageForm::Qcow2Falloc
            | StorageForm::Qcow2Full
            | StorageForm::Volume
            | StorageForm::ZfsVolume
            | StorageForm::WholeDisk => size,
            StorageForm::Raw
            | StorageForm::RawCopied
            | StorageForm::Qcow2
            | StorageForm::Qcow2Metadata
            | StorageForm::Qcow2Copied
            | StorageForm::ThinVolume => Bytes(0),
        }
    }

    /// True for a file that is written once when it is made.
    pub(super) const fn is_written(self) -> bool {
        matches!(self, StorageForm::RawFull | StorageForm::Qcow2Full)
    }

    /// True for a file whose space is reserved when it is made.
    pub(super) const fn is_reserved(self) -> bool {
        matches!(self, StorageForm::RawFalloc | StorageForm::Qcow2Falloc)
    }

    /// True for an image in the format qcow2.
    pub(super) const fn is_qcow2(self) -> bool {
        matches!(
            self,
            StorageForm::Qcow2
                | StorageForm::Qcow2Metadata
                | StorageForm::Qcow2Falloc
                | StorageForm::Qcow2Full
                | StorageForm::Qcow2Copied
        )
    }
}
