//! Changes as values.

use std::collections::BTreeMap;

use vmdisk_model::{Backend, Bytes, Change, Controller, Disk, Domain, Frontend};
use vmdisk_source::words;

use crate::spec::{Difference, GuestOs};
use crate::steps::{Condition, Equality, Step};

/// What is there of a plan.
#[derive(Clone, Debug, Default)]
pub struct PresentState<'a> {
    /// The guest as it is defined; none if there is none, or if only its storage is compared.
    pub guest: Option<&'a Domain>,
    /// True if the guest runs, and has its images open.
    pub is_running: bool,
    /// The operating system that the definition notes, if the spec does not name it.
    pub os: Option<GuestOs>,
    /// The sizes of things that are there and as planned but for their size, by the numbers of the steps that would make
    /// them.
    pub sizes: BTreeMap<usize, Bytes>,
    /// The images of the guest's disks that a copy can replace, by the numbers of the disks.
    pub images: BTreeMap<usize, PresentImage>,
    /// True if the guest gives back the space of its images: a guest that runs discards what it does not use, and the copies of
    /// images of a guest that is off, which the plan makes, take their names.
    pub is_reclaiming: bool,
}

/// An image of a guest as programs see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresentImage {
    /// The path by which programs open it.
    pub path: String,
    /// The size that the guest sees; none if it is not known.
    pub size: Option<Bytes>,
    /// Bytes that it takes on its file system; none if that is not known.
    pub allocated: Option<Bytes>,
    /// Bytes of it that may be data; none if that is not known. The others are holes and zeroes.
    pub data: Option<Bytes>,
    /// Why it keeps what the guest discards; none if it does not, or that is not known.
    pub keeps_discards: Option<String>,
    /// Clusters of the image, if the guest is not told to discard whole ones: smaller discards free nothing.
    pub cluster: Option<Bytes>,
    /// The images below it, whose data a copy contains.
    pub below: Vec<String>,
    /// Why it is not copied.
    pub obstacles: Vec<String>,
}

words! {
    /// What a change does.
    pub enum ChangeKind as word {
        /// Storage gets larger.
        Grow = "grow",
        /// Storage would get smaller, which is always refused.
        Shrink = "shrink",
        /// The guest gets a disk.
        Add = "add",
        /// The guest loses a disk; its storage stays.
        Remove = "remove",
        /// Options of a disk get other values.
        Options = "options",
        /// A disk gets another bus, and the name that goes with it.
        Bus = "bus",
        /// The data of a disk is copied to other storage; the old one stays.
        Move = "move",
        /// Space that the guest does not use is given back.
        Reclaim = "reclaim",
    }
}

words! {
    /// How long the guest is not available for a change.
    pub enum DownTime as word {
        /// Not at all.
        None = "none",
        /// The guest keeps what it has until it is shut off and started again.
        Restart = "restart",
        /// The guest must be off.
        Off = "off",
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedChange {
    /// What it does.
    pub kind: ChangeKind,
    /// The target of the disk.
    pub disk: String,
    /// What it does, for a person.
    pub what: String,
    /// The keys of the guest that it makes equal.
    pub differences: Vec<Difference>,
    /// Bytes by which the storage grows at most.
    pub bytes: Option<Bytes>,
    /// How long the guest is not available.
    pub down_time: DownTime,
    /// Why it is refused, and what to do instead.
    pub refusal: Option<String>,
    /// Why it cannot be undone.
    pub is_final: Option<&'static str>,
    /// The steps in the guest.
    pub afterwards: Option<String>,
    /// The command that changes storage; none if only the definition of the guest changes.
    pub command: Option<StorageChange>,
    /// The steps that fill new storage with the data of the old one.
    pub copy: Option<StorageCopy>,
    /// The command that a running guest gets it by at once; none if it has to start again, or is off.
    pub live: Option<LiveChange>,
    /// What changes in the definition.
    pub definition: DefinitionChange,
}

/// A command that changes a running guest, after its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveChange {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The program whose output it reads, and its arguments; none if it reads nothing.
    pub input: Option<Vec<String>>,
    /// The copy of a disk that it makes.
    pub copy: Option<LiveCopy>,
}

/// A copy of a disk of a running guest, which the guest uses in the end. libvirt changes the definition, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCopy {
    /// The number of the disk in the guest.
    pub disk: usize,
    /// The number of the step that makes the new storage.
    pub step: usize,
    /// The path of the new storage.
    pub path: String,
    /// The space that must be free.
    pub room: Option<Condition>,
    /// The program that ends a copy that is not complete, and its arguments.
    pub stop: Vec<String>,
}

/// A command that changes storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageChange {
    /// The number of the step that would make the storage.
    pub step: usize,
    /// The size that the storage has.
    pub before: Bytes,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What must hold, and why the command is not run otherwise.
    pub needs: Vec<(Equality, String)>,
    /// The space that must be free.
    pub room: Option<Condition>,
}

impl PlannedChange {
    /// The copy that a running guest gets.
    pub fn live_copy(&self) -> Option<&LiveCopy> {
        self.live.as_ref()?.copy.as_ref()
    }
}

impl StorageChange {
    /// True if a running guest has the storage open meanwhile.
    pub(crate) fn is_live(&self) -> bool {
        self.argv.iter().any(|word| word == "blockresize")
    }
}

/// New storage that gets the data of other storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageCopy {
    /// The number of the step that makes the new storage.
    pub step: usize,
    /// The path of the old storage, which is only read.
    pub from: String,
    /// The copy, after that step.
    pub copy: Step,
    /// The comparison of both, after the copy, and before the new storage gets its name.
    pub comparison: Step,
    /// The other name that the old storage gets if the new one takes its name.
    pub kept: Option<KeptImage>,
}

/// An image that gives its name to its copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptImage {
    /// Its other path.
    pub path: String,
    /// The program that fails if a guest writes the image then, and its arguments.
    pub check: Vec<String>,
}

impl KeptImage {
    /// Why it does not get its other name if something has it.
    pub fn refusal(&self) -> String {
        format!(
            "{} exists, perhaps of an earlier run: remove it when the guest works without it",
            self.path
        )
    }
}

impl StorageCopy {
    /// The format of the old storage in the words of QEMU.
    pub(super) fn format(&self) -> &str {
        let mut words = self.comparison.argv.iter().skip_while(|it| *it != "-f");
        words.nth(1).map_or("raw", String::as_str)
    }
}

/// Changes of the definition of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionChange {
    /// Values that change.
    pub changes: Vec<Change>,
    /// New controllers.
    pub controllers: Vec<Controller>,
    /// New disks.
    pub disks: Vec<Disk>,
    /// The number of a disk that is removed.
    pub removed: Option<usize>,
    /// The number of a disk that gets another place in the guest, with its guest side.
    pub frontend: Option<(usize, Frontend)>,
    /// The number of a disk that gets other storage, with its host side.
    pub backend: Option<(usize, Backend)>,
}

/// All that differs, and the way from one to the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangePlan {
    /// The changes, in the order in which they are made: storage first.
    pub changes: Vec<PlannedChange>,
    /// What differs, and no change makes equal.
    pub unchanged: Vec<Difference>,
}

/// The steps in the guest after its disk got larger.
pub(super) const AFTER_GROWTH: &str = "in the guest, enlarge the partition and the file system: `growpart` and then `resize2fs`, \
                            `xfs_growfs` or `btrfs filesystem resize max`; on Windows, Disk Management";

/// A change of nothing.
pub(super) fn empty(kind: ChangeKind, disk: &str) -> PlannedChange {
    PlannedChange {
        kind,
        disk: disk.to_owned(),
        what: String::new(),
        differences: Vec::new(),
        bytes: None,
        down_time: DownTime::None,
        refusal: None,
        is_final: None,
        afterwards: None,
        command: None,
        copy: None,
        live: None,
        definition: DefinitionChange::default(),
    }
}
