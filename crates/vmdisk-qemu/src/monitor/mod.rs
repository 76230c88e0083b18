//! Commands for the monitor (QMP) of a running QEMU: disks that are attached to a guest.

pub(crate) mod read;
mod write;

pub use write::{MonitorScript, write_monitor_script};
