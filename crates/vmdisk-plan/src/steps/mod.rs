//! What has to be run to make the storage that a plan names, as data.

mod create;
mod quote;
mod room;
mod script;

use vmdisk_model::{Bytes, LogicalVolumeName};
use vmdisk_source::words;

pub use quote::quote as shell_word;
pub use room::{SpaceShortage, shortages};
pub use script::script;

pub(crate) use create::{Storage, backing_image};

/// The option of `qemu-img create` that turns copy-on-write off.
const NOCOW: &str = "nocow=on";

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
    }
}

/// Something that holds of an image or volume, or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Equality {
    /// A command succeeds, and its output has this text.
    Says {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The text, which can begin and end with a line feed.
        text: String,
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

impl Step {
    /// The path or the volume that it makes.
    pub fn makes(&self) -> String {
        let made = self
            .conditions
            .iter()
            .find_map(|condition| match condition {
                Condition::NothingAt(path) => Some(path.clone()),
                Condition::NoVolume(name) => Some(name.to_string()),
                _ => None,
            });
        made.expect("each step makes something, which is not there before")
    }

    /// True if it makes a file, of which a failed command leaves a part.
    pub fn makes_file(&self) -> bool {
        matches!(self.kind, StepKind::RawFile | StepKind::Qcow2Image)
    }

    /// The command that removes what the step made. A pool is removed only while it has no volumes.
    pub fn undo(&self) -> Vec<String> {
        let command: &[&str] = if self.makes_file() {
            &["rm", "-f", "--"]
        } else {
            &["lvremove", "--yes", "--"]
        };
        let mut argv: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        argv.push(self.makes());
        argv
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
    /// There is a volume group of this name.
    VolumeGroup(String),
    /// No logical volume has this name.
    NoVolume(LogicalVolumeName),
    /// There is a logical volume of this name.
    Volume(LogicalVolumeName),
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
