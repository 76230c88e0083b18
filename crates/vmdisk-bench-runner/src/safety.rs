//! Write protection: which files and devices may be written, and how that is enforced.
//!
//! By default a run only writes new files in a fresh directory ([`Scratch`]). A block device is written
//! only if [`prepare`] marked it, after every check of `vmdisk-collect` and the typed confirmation of its serial number,
//! and only while it is held by a [`ClaimedDevice`]. Every check fails closed: a check that could not run is a
//! [`DeviceRefusal`].

mod claim;
mod marker;
mod pinned;
mod prepare;
mod scratch;

pub use claim::ClaimedDevice;
pub use marker::Marker;
pub use prepare::{Preparation, prepare};
pub use scratch::{Scratch, ScratchError, check_room, clear_left_over};
pub use vmdisk_collect::{DeviceCheck, DeviceIdentity, DeviceRefusal, Refused};

pub(crate) use pinned::Pinned;
