//! Reasons not to write to a device.

use std::fmt;

/// The check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The path is a block device.
    BlockDevice,
    /// The path names the same device after the next boot.
    StableName,
    /// The device is writable.
    Writable,
    /// The device has no partitions.
    Partitions,
    /// Nothing is built on the device: no volume, array, mapping or cache.
    Holders,
    /// No file system on it is mounted, compared by device number instead of name.
    Mounts,
    /// It is not a member of a mounted btrfs, which names only one of its members.
    Btrfs,
    /// It is not swap space in use.
    Swap,
    /// No process has it open; a running QEMU opens devices without claiming them.
    OpenElsewhere,
    /// No process and no other loop device uses the file of a loop device.
    LoopFile,
    /// No process holds a lock on it, as QEMU and libvirt do.
    Locks,
    /// No guest, mount table or encrypted device of this host is configured to use it.
    Configured,
    /// No signature of a file system, volume, array, partition table or anything else is on it.
    Signature,
    /// Its first and last MiB are zero.
    Blank,
    /// It has a serial number or an equivalent, which the user typed.
    Serial,
    /// It carries the marker of `vmdisk bench prepare-device`.
    Marker,
    /// The kernel grants exclusive access (`O_EXCL`).
    Exclusive,
}

impl Check {
    /// Returns the name used in reports, which is stable across versions.
    pub const fn word(self) -> &'static str {
        match self {
            Check::BlockDevice => "block-device",
            Check::StableName => "stable-name",
            Check::Writable => "writable",
            Check::Partitions => "partitions",
            Check::Holders => "holders",
            Check::Mounts => "mounts",
            Check::Btrfs => "btrfs",
            Check::Swap => "swap",
            Check::OpenElsewhere => "open-elsewhere",
            Check::LoopFile => "loop-file",
            Check::Locks => "locks",
            Check::Configured => "configured",
            Check::Signature => "signature",
            Check::Blank => "blank",
            Check::Serial => "serial",
            Check::Marker => "marker",
            Check::Exclusive => "exclusive",
        }
    }
}

/// One failed check, with its finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The check.
    pub check: Check,
    /// The finding, or the reason why the check could not run.
    pub found: String,
}

impl Refusal {
    pub(crate) fn new(check: Check, found: impl Into<String>) -> Self {
        Self {
            check,
            found: found.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check.word(), self.found)
    }
}

/// A device that must not be written, with every failed check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The given path.
    pub device: String,
    /// The refusals, at least one.
    pub refusals: Vec<Refusal>,
}

impl Refused {
    pub(crate) fn one(device: impl fmt::Display, check: Check, found: impl Into<String>) -> Self {
        Self {
            device: device.to_string(),
            refusals: vec![Refusal::new(check, found)],
        }
    }

    /// Returns true if this check failed.
    pub fn names(&self, check: Check) -> bool {
        self.refusals.iter().any(|refusal| refusal.check == check)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused to write to {}", self.device)?;
        for refusal in &self.refusals {
            write!(f, "\n  {refusal}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}
