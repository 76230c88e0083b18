//! Reasons not to write to a device.

use std::{fmt, io};

pub(crate) use vmdisk_source::sanitize::system_message as plain;

vmdisk_source::words! {
    /// The check.
    pub enum Check as word {
        /// The path is a block device.
        BlockDevice = "block-device",
        /// The path names the same device after the next boot.
        StableName = "stable-name",
        /// The device is writable.
        Writable = "writable",
        /// The device has no partitions.
        Partitions = "partitions",
        /// Nothing is built on the device: no volume, array, mapping or cache.
        Holders = "holders",
        /// No file system on it is mounted, compared by device number instead of name.
        Mounts = "mounts",
        /// It is not a member of a mounted btrfs, which names only one of its members.
        Btrfs = "btrfs",
        /// It is not swap space in use.
        Swap = "swap",
        /// No process has it open; a running QEMU opens devices without claiming them.
        OpenElsewhere = "open-elsewhere",
        /// No process and no other loop device uses the file of a loop device.
        LoopFile = "loop-file",
        /// No process holds a lock on it, as QEMU and libvirt do.
        Locks = "locks",
        /// No guest, mount table or encrypted device of this host is configured to use it.
        Configured = "configured",
        /// No signature of a file system, volume, array, partition table or anything else is on it.
        Signature = "signature",
        /// Its first and last MiB are zero.
        Blank = "blank",
        /// It has a serial number or an equivalent, which the user typed.
        Serial = "serial",
        /// It carries the marker of `vmdisk bench prepare-device`.
        Marker = "marker",
        /// The kernel grants exclusive access (`O_EXCL`).
        Exclusive = "exclusive",
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

/// The failed checks of a device.
pub(crate) trait Refusals {
    /// Adds a failed check.
    fn refuse(&mut self, check: Check, found: impl Into<String>);

    /// Adds a check for which something could not be read.
    fn not_checked(&mut self, check: Check, what: impl fmt::Display, error: &io::Error) {
        self.refuse(check, format!("not checked: {what}: {}", plain(error)));
    }
}

impl Refusals for Vec<Refusal> {
    fn refuse(&mut self, check: Check, found: impl Into<String>) {
        self.push(Refusal::new(check, found));
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
