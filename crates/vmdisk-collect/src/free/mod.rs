//! Whether a block device is free: nothing uses it, what is built on it or what is below it, and it holds no data.
//!
//! Everything is asked by device number, because a device has many paths. A question without an answer keeps a device
//! from being free.

mod configured;
mod contents;
mod held;
mod open_file;
mod refusal;
mod stack;
mod users;

use std::path::Path;

pub use contents::END_BYTES;
pub use held::{DeviceIdentity, HeldDevice};
pub use refusal::{DeviceCheck, DeviceRefusal, Refused};

/// What is known about the use of a block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// Every check ran, and found nothing.
    Free,
    /// These are in the way; other checks may not have run.
    Used(Refused),
    /// Nothing was found, and these checks could not run.
    NotKnown(Refused),
}

impl DeviceState {
    /// The obstacles; `None` for a free device.
    pub fn refused(self) -> Option<Refused> {
        match self {
            DeviceState::Free => None,
            DeviceState::Used(refused) | DeviceState::NotKnown(refused) => Some(refused),
        }
    }
}

/// Checks whether a block device is free; writes nothing.
///
/// ```
/// use std::path::Path;
/// use vmdisk_collect::{DeviceState, device_state};
///
/// assert!(matches!(device_state(Path::new("/nonexistent/disk")), DeviceState::NotKnown(_)));
/// assert!(matches!(device_state(Path::new("/")), DeviceState::Used(_)));
/// ```
pub fn device_state(path: &Path) -> DeviceState {
    let refused = match HeldDevice::open(path) {
        Ok(device) => {
            let mut refusals = device.users();
            refusals.extend(device.contents());
            refusals.extend(device.hold(false).err());
            if refusals.is_empty() {
                return DeviceState::Free;
            }
            Refused::new(path.display(), refusals)
        }
        Err(refused) => refused,
    };
    match refused.refusals.iter().any(|refusal| refusal.is_known) {
        true => DeviceState::Used(refused),
        false => DeviceState::NotKnown(refused),
    }
}
