//! Marking a device that may be overwritten.

use std::path::Path;

use vmdisk_collect::{DeviceCheck, DeviceIdentity, DeviceRefusal, HeldDevice, Refused};

use super::claim::checked;
use super::marker::Marker;

/// A claimed device that passed every check; not written yet.
#[derive(Debug)]
pub struct Preparation {
    device: HeldDevice,
    identity: DeviceIdentity,
    held: std::fs::File,
}

/// Checks a device before it is marked, and claims it without writing.
///
/// # Errors
/// Every failed check.
pub fn prepare(path: &Path) -> Result<Preparation, Refused> {
    let device = HeldDevice::open(path)?;
    let mut refusals = checked(&device);
    match Marker::of(&device) {
        Ok(_) => refusals.push(DeviceRefusal::new(
            DeviceCheck::Marker,
            "it is already marked",
        )),
        Err(_) => refusals.extend(device.blank()),
    }
    let identity = device.identity();
    if identity.is_none() {
        let found = "it has no serial number to confirm";
        refusals.push(DeviceRefusal::new(DeviceCheck::Serial, found));
    }
    // The device may not even be writable; still check whether the kernel would grant it exclusively.
    let held = device.hold(true).map_err(|refusal| refusals.push(refusal));
    match (identity, held) {
        (Some(identity), Ok(held)) if refusals.is_empty() => Ok(Preparation {
            device,
            identity,
            held,
        }),
        _ => Err(Refused::new(path.display(), refusals)),
    }
}

impl Preparation {
    /// Returns the identity that the user has to type.
    pub fn identity(&self) -> &DeviceIdentity {
        &self.identity
    }

    /// Returns the size of the device in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.device.size_bytes()
    }

    /// Repeats every check, and writes the marker if the typed text is the serial number.
    ///
    /// # Errors
    /// Every failed check, or that the marker could not be written.
    pub fn confirm(self, typed: &str, now: &str) -> Result<Marker, Refused> {
        let Self {
            device,
            identity,
            held,
        } = self;
        let refused = |refusals| Refused::new(device.given().display(), refusals);
        let one = |check, found: String| refused(vec![DeviceRefusal::new(check, found)]);
        if typed.trim() != identity.value {
            let found = format!("`{}` is not its {}", typed.trim(), identity.kind);
            return Err(one(DeviceCheck::Serial, found));
        }
        // Typing may have taken an hour, and a QEMU may have opened the device meanwhile.
        let mut refusals = checked(&device);
        refusals.extend(device.blank());
        refusals.extend(device.is_still_named().err());
        if !refusals.is_empty() {
            return Err(refused(refusals));
        }
        let failed = |error: std::io::Error| one(DeviceCheck::Marker, error.to_string());
        let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid").map_err(failed)?;
        let marker = Marker {
            uuid: uuid.trim().to_owned(),
            identity_kind: identity.kind,
            identity: identity.value,
            size_bytes: device.size_bytes(),
            prepared_at: now.to_owned(),
        };
        marker.write(&held).map_err(failed)?;
        Ok(marker)
    }
}
