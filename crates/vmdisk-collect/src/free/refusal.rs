//! What keeps a device from being overwritten.

use std::{fmt, io};

use vmdisk_source::sanitize::system_message;

vmdisk_source::words! {
    /// The check.
    pub enum DeviceCheck as word {
        /// The path is a block device.
        BlockDevice = "block-device",
        /// The path names the same device after the next boot.
        StableName = "stable-name",
        /// The path still names the device that was checked.
        SameDevice = "same-device",
        /// The device is writable.
        Writable = "writable",
        /// The device has no partitions.
        Partitions = "partitions",
        /// Nothing is built on the device or on its whole disk: no volume, array, mapping, cache or other loop device.
        Holders = "holders",
        /// No file system on it is mounted, compared by device number instead of name.
        Mounts = "mounts",
        /// It is not a member of a mounted btrfs, which names only one of its members.
        Btrfs = "btrfs",
        /// It is not swap space in use.
        Swap = "swap",
        /// No process has it open; a running QEMU opens devices without claiming them.
        OpenElsewhere = "open-elsewhere",
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
pub struct DeviceRefusal {
    /// The check.
    pub check: DeviceCheck,
    /// The finding, or the reason why the check could not run.
    pub found: String,
    /// False if the check could not run.
    pub is_known: bool,
}

impl DeviceRefusal {
    /// A check that found something.
    pub fn new(check: DeviceCheck, found: impl Into<String>) -> Self {
        Self {
            check,
            found: found.into(),
            is_known: true,
        }
    }

    /// A check that could not run.
    pub fn not_checked(check: DeviceCheck, why: impl Into<String>) -> Self {
        Self {
            check,
            found: why.into(),
            is_known: false,
        }
    }

    /// A check for which something could not be read.
    pub fn unread(check: DeviceCheck, what: impl fmt::Display, error: &io::Error) -> Self {
        Self::not_checked(check, format!("{what}: {}", system_message(error)))
    }
}

impl fmt::Display for DeviceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not_checked = if self.is_known { "" } else { "not checked: " };
        write!(f, "{}: {not_checked}{}", self.check.word(), self.found)
    }
}

/// A device that must not be written, with every failed check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The given path.
    pub device: String,
    /// The refusals, at least one.
    pub refusals: Vec<DeviceRefusal>,
}

impl Refused {
    /// A device with its failed checks.
    pub fn new(device: impl fmt::Display, refusals: Vec<DeviceRefusal>) -> Self {
        Self {
            device: device.to_string(),
            refusals,
        }
    }

    /// A device with one failed check.
    pub fn one(device: impl fmt::Display, refusal: DeviceRefusal) -> Self {
        Self::new(device, vec![refusal])
    }

    /// Returns true if this check failed.
    pub fn names(&self, check: DeviceCheck) -> bool {
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
