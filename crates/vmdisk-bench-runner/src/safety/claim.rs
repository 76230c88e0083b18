//! A device claimed for a whole run.

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};

use vmdisk_collect::{DeviceCheck, DeviceRefusal, END_BYTES, HeldDevice, Refused};
use vmdisk_facts::DeviceNumber;

use super::marker::Marker;
use super::pinned::path_of;

/// A prepared device that passed every check and is open exclusively.
///
/// While it is claimed, mounting it, creating a volume or a file system on it, and a second run fail with `EBUSY`. QEMU
/// and fio open it again by the descriptor that they inherit, and without `O_EXCL`.
#[derive(Debug)]
pub struct ClaimedDevice {
    device: HeldDevice,
    marker: Marker,
    _held: File,
    path: PathBuf,
}

impl ClaimedDevice {
    /// Checks a device and claims it.
    ///
    /// # Errors
    /// Every failed check; nothing was written.
    pub fn claim(path: &Path) -> Result<Self, Refused> {
        let device = HeldDevice::open(path)?;
        let mut refusals = checked(&device);
        let marker = Marker::of(&device).map_err(|more| refusals.extend(more));
        let held = device.hold(true).map_err(|refusal| refusals.push(refusal));
        if let (Ok(marker), Ok(held), true) = (marker, held, refusals.is_empty()) {
            let path = path_of(&held);
            let claimed = Self {
                device,
                marker,
                _held: held,
                path,
            };
            // Catches changes between the first checks and the claim.
            refusals = checked(&claimed.device);
            refusals.extend(claimed.device.is_still_named().err());
            if refusals.is_empty() {
                return Ok(claimed);
            }
        }
        Err(Refused::new(path.display(), refusals))
    }

    /// Checks again that the given path names this device, its marker, and its users; to be called before and after each
    /// sample.
    ///
    /// # Errors
    /// Every failed check.
    pub fn verify(&self) -> Result<(), Refused> {
        let mut refusals = self.device.other_users();
        refusals.extend(self.device.is_still_named().err());
        match Marker::of(&self.device) {
            Ok(marker) if marker == self.marker => {}
            Ok(_) => {
                let found = "the marker changed since the run began";
                refusals.push(DeviceRefusal::new(DeviceCheck::Marker, found));
            }
            Err(more) => refusals.extend(more),
        }
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(Refused::new(self.device.given().display(), refusals)),
        }
    }

    /// The path of the claimed descriptor, the same in this process and in every program that it starts. The given path
    /// may name another device at any time.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its number.
    pub fn number(&self) -> DeviceNumber {
        self.device.number()
    }

    /// Its marker.
    pub fn marker(&self) -> &Marker {
        &self.marker
    }

    /// Returns the writable range: all but the first and the last MiB.
    pub fn usable(&self) -> Range<u64> {
        END_BYTES..self.device.size_bytes() - END_BYTES
    }
}

/// Runs every check except those of the device's contents, which differ between preparing and using it.
pub(super) fn checked(device: &HeldDevice) -> Vec<DeviceRefusal> {
    let mut refusals: Vec<DeviceRefusal> = stable_name(device).into_iter().collect();
    refusals.extend(device.users());
    refusals.extend(device.signatures());
    refusals
}

/// Refuses unstable names such as `/dev/sdb` if the device has a name that survives a reboot.
fn stable_name(device: &HeldDevice) -> Option<DeviceRefusal> {
    let given = device.given();
    if given != Path::new("/dev").join(device.kernel_name()) {
        return None;
    }
    let names = fs::read_dir("/dev/disk/by-id")
        .into_iter()
        .flatten()
        .flatten();
    let names = names.map(|entry| entry.path());
    let name = names
        .filter(|path| fs::canonicalize(path).is_ok_and(|real| real == device.real()))
        .min()?;
    let found = format!(
        "{} may be another device after the next boot; use {}",
        given.display(),
        name.display()
    );
    Some(DeviceRefusal::new(DeviceCheck::StableName, found))
}
