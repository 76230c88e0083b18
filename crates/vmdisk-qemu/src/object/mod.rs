//! `-object`: things that belong to no bus.

pub(crate) mod helper;
pub(crate) mod iothread;
pub(crate) mod memory;
pub(crate) mod read;
pub(crate) mod secret;
pub(crate) mod throttle_group;
