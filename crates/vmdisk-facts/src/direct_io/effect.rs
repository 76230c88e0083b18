//! The effect of O_DIRECT, and what it is concluded from.

use std::fmt;

use crate::fact::{Fact, Reason};
use crate::filesystem::Filesystem;
use crate::host::Kernel;
use crate::mount::Mount;
use crate::path::Dio;

/// The effect of O_DIRECT on one path, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectIo {
    /// The effect.
    pub verdict: DirectIoEffect,
    /// The basis of the verdict.
    pub confidence: DirectIoBasis,
    /// The alignment that requests need, if statx(2) returned it.
    pub alignment: Option<Alignment>,
    /// The facts that decided, as a clause for a message (`statx gives alignment 0 on ext4 with data=journal`).
    pub because: String,
}

/// The effect of O_DIRECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DirectIoEffect {
    /// open(2) refuses it, and QEMU does not start.
    Unsupported,
    /// open(2) accepts it, and writes still use the page cache.
    AcceptedButBuffered(Buffered),
    /// Writes bypass the page cache.
    Direct,
    /// Writes bypass the page cache, and a buffer the guest changes in flight leaves a wrong checksum: later reads fail.
    DirectUnstableChecksums,
    /// Writes bypass the page cache, and a buffer the guest changes in flight leaves mirrors that differ, without a
    /// checksum to decide which is right.
    DirectUnstableMirrors,
}

/// The reason why writes use the page cache although O_DIRECT was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buffered {
    /// ext3 or ext4 mounted with data=journal.
    Ext4DataJournal,
    /// The filesystem reports through statx(2) that it does not support it for this file.
    SaysNo,
    /// tmpfs is the page cache.
    Tmpfs,
    /// btrfs falls back for files with checksums, so that the checksum is right.
    BtrfsChecksums,
    /// btrfs falls back for files without checksums on a redundant data profile, so that the mirrors agree.
    BtrfsRedundant,
    /// ZFS 0.8 to 2.2 accepts the flag and ignores it.
    ZfsIgnored,
    /// ZFS with direct=disabled.
    ZfsDisabled,
    /// A person declared it so.
    Declared,
}

/// The basis of a verdict, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DirectIoBasis {
    /// It was tried there.
    Probed,
    /// The kernel or the mount says so.
    Observed,
    /// The filesystem and the kernel's version imply it.
    FromVersionTable,
    /// A person wrote it into the facts.
    Declared,
}

impl fmt::Display for DirectIoBasis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Probed => "probed",
            Self::Observed => "observed",
            Self::FromVersionTable => "from the kernel's version",
            Self::Declared => "declared",
        })
    }
}

/// The alignment of direct I/O, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alignment {
    /// Of memory.
    pub memory: u64,
    /// Of offsets and lengths.
    pub offset: u64,
}

/// Everything that the conclusion may use, for one path.
#[derive(Clone, Copy, Debug)]
pub struct DirectIoInputs<'a> {
    /// Observations of direct I/O on the path.
    pub dio: &'a Dio,
    /// Its mount, when that is collected.
    pub mount: Option<&'a Mount>,
    /// Its filesystem.
    pub filesystem: &'a Filesystem,
    /// Whether copy-on-write is off for it.
    pub nocow: &'a Fact<bool>,
    /// Whether the file exists; if not, the directory predicts it.
    pub exists: bool,
    /// The kernel.
    pub kernel: &'a Kernel,
}

pub(super) fn concluded(
    verdict: DirectIoEffect,
    confidence: DirectIoBasis,
    because: String,
) -> Fact<DirectIo> {
    Fact::Known(DirectIo {
        verdict,
        confidence,
        alignment: None,
        because,
    })
}

impl DirectIoEffect {
    /// The conclusion from a version.
    pub(super) fn by_table(self, because: impl Into<String>) -> Fact<DirectIo> {
        concluded(self, DirectIoBasis::FromVersionTable, because.into())
    }

    /// The conclusion from what the host shows.
    pub(super) fn observed(self, because: impl Into<String>) -> Fact<DirectIo> {
        concluded(self, DirectIoBasis::Observed, because.into())
    }

    /// The conclusion from a trial.
    pub(super) fn probed(self, because: impl Into<String>) -> Fact<DirectIo> {
        concluded(self, DirectIoBasis::Probed, because.into())
    }
}

pub(super) fn undecided(why: impl Into<String>) -> Fact<DirectIo> {
    Fact::unknown(Reason::Undecided, why)
}
