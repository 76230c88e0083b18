//! Directories and files in question: presence, flags, direct I/O, image header.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::access::{QemuAccess, Socket};
use crate::as_text::as_text;
use crate::blockdev::DeviceNumber;
use crate::fact::Fact;
use crate::record::facts;

facts! {
    /// A directory that holds images, or will: it predicts the properties of a new file in it.
    pub struct Directory {
        /// The requested path.
        pub path: String,
        /// Whether it exists.
        pub present: Fact<bool>,
        /// The path with every symbolic link followed.
        pub real_path: Fact<String>,
        /// The id of the mount it is on.
        pub mount: Fact<String>,
        /// Permission bits.
        pub mode: Fact<Mode>,
        /// Numeric owner.
        pub uid: Fact<u32>,
        /// Numeric group.
        pub gid: Fact<u32>,
        /// Whether copy-on-write is off (`chattr +C`), which new files inherit; absent on filesystems that have no such flag.
        pub nocow: Fact<bool>,
        /// Whether the compression flag is on (`chattr +c`), which new files inherit.
        pub compressed: Fact<bool>,
        /// The SELinux label; absent when it has none.
        pub label: Fact<String>,
        /// The rights of QEMU's user in it; absent when the user is unknown.
        pub qemu_access: Fact<QemuAccess>,
        /// Observations of direct I/O there.
        #[serde(default, skip_serializing_if = "Dio::is_empty")]
        pub dio: Dio,
    }
}

facts! {
    /// A file or device node that a disk names.
    pub struct File {
        /// The requested path.
        pub path: String,
        /// Whether it exists; false for a requested path that is missing.
        pub present: Fact<bool>,
        /// Its kind, with every symbolic link followed.
        pub kind: Fact<FileKind>,
        /// The path with every symbolic link followed.
        pub real_path: Fact<String>,
        /// The id of the mount it is on.
        pub mount: Fact<String>,
        /// Its identity on this host, whatever its name: equal values are the same file.
        pub inode: Fact<Inode>,
        /// The device that a device node refers to.
        pub device: Fact<DeviceNumber>,
        /// Permission bits.
        pub mode: Fact<Mode>,
        /// Numeric owner.
        pub uid: Fact<u32>,
        /// Numeric group.
        pub gid: Fact<u32>,
        /// Apparent size in bytes.
        pub size: Fact<u64>,
        /// Bytes allocated for it.
        pub alloc: Fact<u64>,
        /// Whether copy-on-write is off for it; absent on filesystems that have no such flag.
        pub nocow: Fact<bool>,
        /// Whether the compression flag is on for it.
        pub compressed: Fact<bool>,
        /// Whether nobody may write it (`chattr +i`); absent on filesystems that have no such flag.
        pub immutable: Fact<bool>,
        /// Whether it can only grow (`chattr +a`).
        pub append_only: Fact<bool>,
        /// Whether the host swaps to it.
        pub swap: Fact<bool>,
        /// The number of its extents: runs that do not follow each other on the device. Absent where the filesystem does
        /// not report it.
        pub extents: Fact<u64>,
        /// Whether counting extents stopped early, so that the values cover only the beginning of the file.
        pub extents_capped: Fact<bool>,
        /// Whether extents are shared with another file or a snapshot, so that the next write copies them.
        pub shared_extents: Fact<bool>,
        /// Bytes that fallocate(2) reserved and that were never written.
        pub unwritten: Fact<u64>,
        /// Observations of direct I/O on it.
        #[serde(default, skip_serializing_if = "Dio::is_empty")]
        pub dio: Dio,
        /// The SELinux label; absent when it has none.
        pub label: Fact<String>,
        /// The rights of QEMU's user; absent when the user is unknown.
        pub qemu_access: Fact<QemuAccess>,
        /// Whether it can be connected to; absent when it is not a socket.
        pub socket: Fact<Socket>,
        /// The processes that have it open.
        pub lock: Fact<Lock>,
        /// Its image header; absent when it does not hold an image.
        pub image: Fact<ImageHeader>,
    }
}

impl File {
    /// True if it was requested and is missing.
    pub fn is_missing(&self) -> bool {
        self.present.is_false()
    }
}

/// The kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A block device node.
    Block,
    /// A character device node.
    Character,
    /// A socket, as of a vhost-user daemon.
    Socket,
    /// A named pipe.
    Fifo,
    /// Something else.
    Other,
}

facts! {
    /// Observations of direct I/O on one path, from which [`crate::direct_io`] concludes.
    pub struct Dio {
        /// Whether statx(2) answered STATX_DIOALIGN: `set` or `unset`. Unset means unknown, not unsupported.
        pub dioalign: Fact<DioAlign>,
        /// Alignment of memory in bytes; 0 together with `off` 0 means direct I/O is not done.
        pub mem: Fact<u64>,
        /// Alignment of offsets and lengths in bytes.
        pub off: Fact<u64>,
        /// Whether open(2) accepted O_DIRECT.
        pub open: Fact<TrialOutcome>,
        /// The result of overwriting a written range with RWF_NOWAIT and O_DIRECT.
        pub nowait_overwrite: Fact<TrialOutcome>,
        /// The result of a 512-byte write with O_DIRECT.
        pub w512: Fact<TrialOutcome>,
        /// The conclusion that a person declares; it never overrides observations.
        pub verdict: Fact<DeclaredVerdict>,
    }
}

impl Dio {
    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether statx(2) answered STATX_DIOALIGN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DioAlign {
    /// It did: the alignments are meaningful.
    Set,
    /// It did not: nothing is known from it.
    Unset,
}

/// How a trial ended: `ok` or the error's name (`EINVAL`, `EAGAIN`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum TrialOutcome {
    /// It succeeded.
    Ok,
    /// The name of the error it failed with.
    Failed(String),
}

impl TrialOutcome {
    /// Whether it failed with this error.
    pub fn failed_with(&self, name: &str) -> bool {
        matches!(self, Self::Failed(error) if error == name)
    }
}

impl From<String> for TrialOutcome {
    fn from(word: String) -> Self {
        if word == "ok" {
            Self::Ok
        } else {
            Self::Failed(word)
        }
    }
}

impl From<TrialOutcome> for String {
    fn from(outcome: TrialOutcome) -> Self {
        match outcome {
            TrialOutcome::Ok => "ok".to_owned(),
            TrialOutcome::Failed(name) => name,
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for TrialOutcome {
    fn schema_name() -> Cow<'static, str> {
        "Outcome".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "ok, or the name of the error (EINVAL)", "type": "string" })
    }
}

/// A verdict on direct I/O that a person wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DeclaredVerdict {
    /// open(2) refuses O_DIRECT.
    Unsupported,
    /// O_DIRECT is accepted and ignored.
    AcceptedButBuffered,
    /// O_DIRECT bypasses the page cache.
    Direct,
    /// O_DIRECT bypasses the page cache, and checksums may not match what was written.
    DirectUnstableChecksums,
    /// O_DIRECT bypasses the page cache, and mirrors may differ.
    DirectUnstableMirrors,
    /// A probe could not distinguish buffered from direct with copy-on-write; it decides nothing.
    DirectCowOrBuffered,
}

/// Users of a file, from its locks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Lock {
    /// Whether a process has it open for writing, according to QEMU's image locks.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub writer: Fact<bool>,
}

facts! {
    /// The header of an image. Files that it names were not opened.
    pub struct ImageHeader {
        /// The format (`qcow2`, `luks`, `vmdk`); `raw` when no known format was recognised.
        pub format: Fact<String>,
        /// The format that QEMU probes if none is given; it differs from `format` where QEMU checks less.
        pub probed: Fact<String>,
        /// The version of the format.
        pub version: Fact<u32>,
        /// The size the guest sees, in bytes.
        pub virtual_size: Fact<u64>,
        /// Cluster size in bytes.
        pub cluster: Fact<u64>,
        /// qcow2 with subclusters.
        pub ext_l2: Fact<bool>,
        /// Marked as not closed properly.
        pub dirty: Fact<bool>,
        /// Marked as corrupt.
        pub corrupt: Fact<bool>,
        /// qcow2 with lazy reference counts.
        pub lazy: Fact<bool>,
        /// How it is encrypted (`aes`, `luks`); absent when it is not.
        pub encryption: Fact<String>,
        /// How it is compressed (`zlib`, `zstd`).
        pub compression: Fact<String>,
        /// How many snapshots it holds inside.
        pub snapshots: Fact<u32>,
        /// Bits in one reference count.
        pub refcount_bits: Fact<u32>,
        /// The external file that holds the data, as the header names it without credentials; absent when there is none.
        pub data_file: Fact<String>,
        /// The backing image; absent if there is none.
        pub backing: Fact<BackingFact>,
    }
}

/// The image below another, as the upper one names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Backing"))]
pub struct BackingFact {
    /// The written name, without credentials: relative, absolute, or with a protocol.
    pub path: String,
    /// Its format; absent when the header has none, so that QEMU would have to probe it.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub format: Fact<String>,
}

/// Permission bits, written in octal (`"0600"`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mode(pub u32);

impl Mode {
    fn parse(text: &str) -> Option<Self> {
        // `from_str_radix` alone would let a sign through.
        let octal = text.bytes().all(|b| (b'0'..=b'7').contains(&b));
        if !octal {
            return None;
        }
        u32::from_str_radix(text, 8)
            .ok()
            .filter(|bits| *bits <= 0o7777)
            .map(Self)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

as_text!(Mode, "permission bits in octal", "0600");

/// Which file it is: the device of its filesystem (as stat(2) shows it) and its inode number, as `"0:45/257"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode {
    /// The device stat(2) shows; every btrfs subvolume has its own.
    pub device: DeviceNumber,
    /// The inode number.
    pub number: u64,
}

impl Inode {
    fn parse(text: &str) -> Option<Self> {
        let (device, number) = text.split_once('/')?;
        let digits = number.bytes().all(|b| b.is_ascii_digit());
        if !digits {
            return None;
        }
        Some(Self {
            device: DeviceNumber::parse(device)?,
            number: number.parse().ok()?,
        })
    }
}

impl fmt::Display for Inode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.device, self.number)
    }
}

as_text!(Inode, "a device and an inode number", "0:45/257");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_are_empty_until_something_was_collected() {
        let dio = Dio::default();
        assert!(dio.is_empty());
        let mem = Fact::Known(512);
        assert!(!Dio { mem, ..dio }.is_empty());
    }

    #[test]
    fn permission_bits_are_octal_text() {
        assert_eq!(Mode::parse("0600"), Some(Mode(0o600)));
        assert_eq!(Mode::parse("7777"), Some(Mode(0o7777)));
        assert_eq!(Mode(0o600).to_string(), "0600");
        for bad in ["", "+600", "0800", "10000", "77777", "rw"] {
            assert_eq!(Mode::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_inode_reads_back_from_its_own_text() {
        let inode = Inode {
            device: DeviceNumber {
                major: 0,
                minor: 45,
            },
            number: 257,
        };
        assert_eq!(inode.to_string(), "0:45/257");
        assert_eq!(Inode::parse("0:45/257"), Some(inode));
        for bad in ["0:45", "0:45/", "0:45/+1", "0:45/1x", "x/1"] {
            assert_eq!(Inode::parse(bad), None, "{bad}");
        }
    }
}
