//! A device claimed for a whole run.

use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::configured::not_configured;
use super::family::Family;
use super::loop_file::no_file_users;
use super::marker::Marker;
use super::node::Node;
use super::refusal::{Check, Refusal, Refusals, Refused, plain};
use super::signature::{END_BYTES, no_signature};
use super::users::{no_btrfs, no_locks, no_mounts, no_swap, not_open};

/// A prepared device that passed every check and is open exclusively.
///
/// While it is claimed, mounting it, creating a volume or a file system on it, and a second run fail with `EBUSY`. QEMU
/// and fio open devices without `O_EXCL`, so they can open it.
#[derive(Debug)]
pub struct ClaimedDevice {
    node: Node,
    marker: Marker,
    _held: File,
}

impl ClaimedDevice {
    /// Checks a device and claims it.
    ///
    /// # Errors
    /// Every failed check; nothing was written.
    pub fn claim(path: &Path) -> Result<Self, Refused> {
        let node = Node::open(path)?;
        let mut refusals = checked(&node);
        let marker = Marker::of(&node, &mut refusals);
        let held = exclusive(&node, &mut refusals);
        match (marker, held) {
            (Some(marker), Some(held)) if refusals.is_empty() => {
                // Catches changes between the first checks and the claim.
                let refusals = checked(&node);
                let claimed = Self {
                    node,
                    marker,
                    _held: held,
                };
                if refusals.is_empty() {
                    Ok(claimed)
                } else {
                    Err(claimed.refused(refusals))
                }
            }
            _ => Err(Refused {
                device: path.display().to_string(),
                refusals,
            }),
        }
    }

    /// Repeats the checks of marker and users; to be called before each phase that writes.
    ///
    /// # Errors
    /// Every failed check.
    pub fn verify(&self) -> Result<(), Refused> {
        let mut refusals = Vec::new();
        let marker = Marker::of(&self.node, &mut refusals);
        if marker.is_some_and(|marker| marker != self.marker) {
            refusals.refuse(Check::Marker, "the marker changed since the run began");
        }
        let family = Family::of(&self.node, &mut refusals);
        no_mounts(&family, &mut refusals);
        no_file_users(&self.node, &mut refusals);
        if refusals.is_empty() {
            Ok(())
        } else {
            Err(self.refused(refusals))
        }
    }

    fn refused(&self, refusals: Vec<Refusal>) -> Refused {
        Refused {
            device: self.node.given.display().to_string(),
            refusals,
        }
    }

    /// The given path.
    pub fn path(&self) -> &Path {
        &self.node.given
    }

    /// Returns the kernel's name, such as `nvme1n1`.
    pub fn kernel_name(&self) -> String {
        self.node.kernel_name()
    }

    /// Its directory in sysfs.
    pub fn sysfs(&self) -> &Path {
        &self.node.sysfs
    }

    /// Its marker.
    pub fn marker(&self) -> &Marker {
        &self.marker
    }

    /// Returns the writable range: all but the first and the last MiB.
    pub fn usable(&self) -> Range<u64> {
        END_BYTES..self.node.size_bytes - END_BYTES
    }
}

/// Runs every check except those of the device's contents, which differ between preparing and using it.
pub(crate) fn checked(node: &Node) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    stable_name(node, &mut refusals);
    let family = Family::of(node, &mut refusals);
    no_mounts(&family, &mut refusals);
    no_btrfs(&family, &mut refusals);
    no_swap(&family, &mut refusals);
    not_open(&family, &mut refusals);
    no_locks(node, &mut refusals);
    no_file_users(node, &mut refusals);
    not_configured(&family, &mut refusals);
    no_signature(node, &mut refusals);
    refusals
}

/// Opens a device exclusively, without writing.
pub(crate) fn exclusive(node: &Node, refusals: &mut Vec<Refusal>) -> Option<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(OFlags::EXCL.bits().cast_signed());
    match node.again(&options) {
        Ok(file) => Some(file),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
            refusals.refuse(
                Check::Exclusive,
                "the kernel says that it is in use (EBUSY)",
            );
            None
        }
        Err(error) => {
            refusals.refuse(Check::Exclusive, plain(&error));
            None
        }
    }
}

/// Refuses unstable names such as `/dev/sdb` if the device has a name that survives a reboot.
fn stable_name(node: &Node, refusals: &mut Vec<Refusal>) {
    if node.given != Path::new("/dev").join(node.kernel_name()) {
        return;
    }
    let names: Vec<PathBuf> = fs::read_dir("/dev/disk/by-id")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| fs::canonicalize(path).is_ok_and(|real| real == node.real))
        .collect();
    if let Some(name) = names.iter().min() {
        refusals.refuse(
            Check::StableName,
            format!(
                "{} may be another device after the next boot; use {}",
                node.given.display(),
                name.display()
            ),
        );
    }
}
