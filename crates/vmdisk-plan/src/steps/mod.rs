//! What has to be run to make the storage that a plan names, as data.

mod comment;
mod copy;
mod create;
mod guest;
mod room;
mod script;

use vmdisk_model::{Bytes, LogicalVolumeName};
use vmdisk_source::words;

pub use guest::{ScriptDefinition, ScriptWork};
pub use room::{SpaceShortage, shortages};
pub use script::{change_script, script};
pub use vmdisk_fields::shell_word;

pub(crate) use copy::{CopySource, copied};
pub(crate) use create::{Storage, backing_image};

/// The option of `qemu-img create` that turns copy-on-write off.
const NOCOW: &str = "nocow=on";

/// The beginning of the line of `qemu-img info` about an image that was not closed cleanly, or is open.
const DIRTY: &str = "    \"dirty-flag\": true";

/// One command that makes something, and what must hold before it.
///
/// A program that runs steps itself hands `argv` to the operating system as it stands, without a
/// shell: every value is one argument. It checks the conditions of **all** steps before it runs the
/// first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The disk that needs it, from 0.
    pub disk: usize,
    /// What it makes.
    pub kind: StepKind,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Why it is run, for a person.
    pub why: String,
    /// The trade-off of the command, for a person.
    pub notes: Vec<String>,
    /// What must hold before any step is run.
    pub conditions: Vec<Condition>,
    /// What holds of the thing that the step makes. If it is there and all of this holds, the step is done already.
    pub equality: Vec<Equality>,
    /// How what it makes gets its size if it is there and smaller; none if it has no size of its own.
    pub resize: Option<Resize>,
}

/// How something that is there gets a larger size. Nothing that it holds changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resize {
    /// The size.
    pub size: Bytes,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Each of them must hold, and why the size is not changed otherwise.
    pub needs: Vec<(Equality, String)>,
}

words! {
    /// What a step makes.
    pub enum StepKind as word {
        /// A raw file.
        RawFile = "raw-file",
        /// A qcow2 image.
        Qcow2Image = "qcow2-image",
        /// A thick logical volume.
        Volume = "volume",
        /// A thin pool.
        ThinPool = "thin-pool",
        /// A thin volume.
        ThinVolume = "thin-volume",
        /// An image with the configuration for cloud-init.
        Seed = "seed-image",
        /// A ZFS volume.
        Zvol = "zvol",
        /// A volume of a storage pool.
        PoolVolume = "pool-volume",
        /// The contents of a new image.
        Copy = "copy",
        /// The comparison of a copy with what it is a copy of.
        Compare = "compare",
        /// The name of an image that is complete.
        Rename = "rename",
        /// The owner or the group of a new file.
        Owner = "owner",
        /// The permissions of a new file.
        Mode = "mode",
    }
}

/// Something that holds of an image or volume, or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Equality {
    /// The output of a command has this text; a comma at the end of a line does not count.
    Says {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The text, which can begin and end with a line feed.
        text: String,
    },
    /// The command succeeds, and its output does not have this text.
    Lacks {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The text, which begins with a line feed.
        text: String,
    },
    /// The output of a command has this number.
    Size {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The text before the number, which can begin with a line feed.
        before: String,
        /// Bytes.
        size: Bytes,
        /// The text after the number.
        after: String,
    },
    /// The command, which opens an encrypted image, succeeds; or its key file is gone, so that there is no key to compare.
    Unlocks {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The file with the key.
        key_file: String,
    },
    /// A file takes at least this many bytes on its file system.
    Allocated {
        /// The file.
        path: String,
        /// Bytes.
        size: Bytes,
    },
    /// A volume is as large as LVM makes one of this size: rounded up to whole extents.
    VolumeSize {
        /// The volume.
        name: LogicalVolumeName,
        /// Bytes.
        size: Bytes,
    },
}

impl Equality {
    /// True if libvirt or QEMU changes it while the guest runs, and changes it back: the owner, and the mark of an open
    /// image.
    pub fn is_suspended_by_a_running_guest(&self) -> bool {
        match self {
            Equality::Says { argv, .. } => {
                argv[0] == "stat" && argv.get(3).is_some_and(|field| field != "%a")
            }
            Equality::Lacks { text, .. } => text.trim_start_matches('\n') == DIRTY,
            _ => false,
        }
    }
}

/// A command with another name for a file, as a word or at the end of the options of an image.
pub fn renamed(argv: &[String], from: &str, to: &str) -> Vec<String> {
    let option = format!(".filename={}", from.replace(',', ",,"));
    let renamed = |word: &String| match word.strip_suffix(&option) {
        _ if word == from => to.to_owned(),
        Some(before) => format!("{before}.filename={}", to.replace(',', ",,")),
        None => word.clone(),
    };
    argv.iter().map(renamed).collect()
}

impl Step {
    /// The command with another name for the file that is made: one that nobody else can take.
    pub fn argv_at(&self, name: &str) -> Vec<String> {
        let files = self.files();
        files.fold(self.argv.clone(), |argv, file| renamed(&argv, file, name))
    }

    /// The path or the volume that it makes.
    pub fn makes(&self) -> String {
        let made = self
            .conditions
            .iter()
            .find_map(|condition| match condition {
                Condition::NothingAt(path) => Some(path.clone()),
                Condition::Missing(thing) => Some(thing.name()),
                _ => None,
            });
        made.expect("each step makes something, which is not there before")
    }

    /// What it makes, if that is no file.
    pub fn makes_named(&self) -> Option<&Named> {
        let mut conditions = self.conditions.iter();
        conditions.find_map(|condition| match condition {
            Condition::Missing(thing) => Some(thing),
            _ => None,
        })
    }

    /// True if it makes a file, of which a failed command leaves a part.
    pub fn makes_file(&self) -> bool {
        self.makes_named().is_none() && !self.completes()
    }

    /// True if it completes what the step before it makes, and is done with it.
    pub fn completes(&self) -> bool {
        matches!(
            self.kind,
            StepKind::Copy
                | StepKind::Compare
                | StepKind::Rename
                | StepKind::Owner
                | StepKind::Mode
        )
    }

    /// The files that are not there before it: an image, and the name that it has while it is copied.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let conditions = self.conditions.iter();
        conditions.filter_map(|condition| match condition {
            Condition::NothingAt(path) => Some(path.as_str()),
            _ => None,
        })
    }

    /// The command that removes what the step made. A pool is removed only while it has no volumes.
    pub fn undo(&self) -> Vec<String> {
        match self.makes_named() {
            Some(thing) => thing.removal(),
            None => {
                let mut argv = words(&["rm", "-f", "--"]);
                argv.extend(self.files().map(str::to_owned));
                argv
            }
        }
    }

    /// True if it makes a file that btrfs writes in place.
    pub(crate) fn sets_nocow(&self) -> bool {
        let mut options = self.argv.iter().skip_while(|word| *word != "-o");
        let options = options.nth(1);
        options.is_some_and(|options| options.split(',').any(|option| option == NOCOW))
    }
}

/// Something that holds on the host, or does not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// There is nothing at this path, not even a link that leads nowhere.
    NothingAt(String),
    /// There is something at this path.
    SomethingAt(String),
    /// There is a directory at this path.
    DirectoryAt(String),
    /// There is a file at this path that only its owner can read.
    PrivateFile(String),
    /// There is this thing.
    Exists(Named),
    /// There is no such thing.
    Missing(Named),
    /// This many bytes are free in the file system of a directory, for this step alone.
    Room {
        /// The directory.
        directory: String,
        /// Bytes that the step allocates at least.
        size: Bytes,
    },
    /// This many bytes are free in a volume group, for this step alone.
    RoomInGroup {
        /// The volume group.
        group: String,
        /// Bytes that the step allocates at least.
        size: Bytes,
    },
}

impl Condition {
    /// Why steps are refused if it does not hold; none for space, and for what a step makes.
    pub fn refusal(&self) -> Option<String> {
        Some(match self {
            Condition::NothingAt(path) => {
                format!("{path} exists, perhaps of a run that was killed: remove it")
            }
            Condition::SomethingAt(path) => format!("{path} does not exist"),
            Condition::DirectoryAt(path) => format!("{path} is not a directory"),
            Condition::PrivateFile(path) => {
                format!("{path} is not a file that only its owner can read (chmod 600)")
            }
            Condition::Exists(thing) => format!("{thing} does not exist"),
            Condition::Missing(_) | Condition::Room { .. } | Condition::RoomInGroup { .. } => {
                return None;
            }
        })
    }
}

/// Something that a program finds by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Named {
    /// A volume group.
    Group(String),
    /// A logical volume.
    Volume(LogicalVolumeName),
    /// A dataset of ZFS.
    Dataset(String),
    /// A storage pool of libvirt.
    Pool(String),
    /// A volume in one.
    PoolVolume {
        /// The pool.
        pool: String,
        /// The volume.
        volume: String,
    },
}

impl Named {
    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Named::Group(name) | Named::Dataset(name) | Named::Pool(name) => name.clone(),
            Named::Volume(name) => name.to_string(),
            Named::PoolVolume { pool, volume } => format!("{pool}/{volume}"),
        }
    }

    /// The command that succeeds if it is there.
    pub fn listing(&self) -> Vec<String> {
        match self {
            Named::Group(name) => words(&["vgs", "--noheadings", "--", name]),
            Named::Volume(_) => words(&["lvs", "--noheadings", "--", &self.name()]),
            Named::Dataset(name) => words(&["zfs", "list", "-H", "--", name]),
            Named::Pool(name) => words(&["virsh", "pool-info", "--", name]),
            Named::PoolVolume { pool, volume } => {
                words(&["virsh", "vol-info", "--pool", pool, "--", volume])
            }
        }
    }

    /// The command that removes it; steps make neither groups nor pools.
    fn removal(&self) -> Vec<String> {
        match self {
            Named::Group(_) | Named::Pool(_) => Vec::new(),
            Named::Volume(_) => words(&["lvremove", "--yes", "--", &self.name()]),
            Named::Dataset(name) => words(&["zfs", "destroy", "--", name]),
            Named::PoolVolume { pool, volume } => {
                words(&["virsh", "vol-delete", "--pool", pool, "--", volume])
            }
        }
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noun = match self {
            Named::Group(_) => "volume group",
            Named::Volume(_) | Named::PoolVolume { .. } => "volume",
            Named::Dataset(_) => "ZFS dataset",
            Named::Pool(_) => "storage pool",
        };
        write!(f, "{noun} {}", self.name())
    }
}

/// The refusal of a program that is missing, with the package that has it where the names differ.
pub fn not_installed(program: &str) -> String {
    let package = match program {
        "virsh" => "; install libvirt-clients",
        "zfs" => "; install zfsutils-linux",
        "xorriso" => "; install the package xorriso",
        _ => "",
    };
    format!("{program} is not installed{package}")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
