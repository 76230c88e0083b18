//! `-object`: objects that are not on a bus.

pub(crate) mod helper;
pub(crate) mod iothread;
pub(crate) mod memory;
pub(crate) mod read_iothread;
pub(crate) mod read_memory;
pub(crate) mod read_throttle;
pub(crate) mod secret;
pub(crate) mod throttle_group;

/// The directory of files for guest memory that needs no huge pages.
const SHARED_MEMORY: &str = "/dev/shm";
