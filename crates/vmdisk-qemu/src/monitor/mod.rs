//! Commands for the monitor (QMP) of a QEMU that runs: disks that are plugged into a guest.

pub(crate) mod read;
mod write;

pub use write::{MonitorScript, write_monitor_script};
