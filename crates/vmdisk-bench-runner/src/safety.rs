//! Write protection: which files and devices may be written, and how that is enforced.
//!
//! By default a run only writes new files in a fresh directory ([`Scratch`]). A block device is written
//! only if [`prepare`] marked it, after every check and the typed confirmation of its serial number, and
//! only while it is held by a [`ClaimedDevice`]. Every check fails closed: a check that could not run is a [`Refusal`].

mod claim;
mod configured;
mod family;
mod loop_file;
mod marker;
mod node;
mod prepare;
mod refusal;
mod scratch;
mod signature;
mod users;

pub use claim::ClaimedDevice;
pub use marker::Marker;
pub use node::Identity;
pub use prepare::{Preparation, prepare};
pub use refusal::{Check, Refusal, Refused};
pub use scratch::{Scratch, ScratchError, check_room, clear_left_over};

pub(crate) use loop_file::is_buffered;
