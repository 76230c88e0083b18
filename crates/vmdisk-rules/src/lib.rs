//! Internal to vmdisk: rules about the model: disks, host facts and a target.
//!
//! Each rule is one file with its page, its evidence and a pure function of a [`Context`](vmdisk_rule::Context): the
//! model, the known facts of the host, and the target. This crate does not read files, parse text formats or query the
//! host. The facade runs these rules together with the rules about the text of a syntax.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod aio;
mod boot;
mod chain;
mod features;
mod flushes;
mod follow_up;
mod guests;
mod host;
mod hugepages;
mod io_uring;
mod iothreads;
mod remedy;
mod rules;
mod space;
mod target_names;
mod thin;
mod virtio;

pub use features::has_optional_driver;
pub use follow_up::{FOLLOW_UPS, FollowUp, may_follow};
pub use guests::{GuestNeeds, HostGuests};
pub use rules::RULES;
pub use space::growth;
