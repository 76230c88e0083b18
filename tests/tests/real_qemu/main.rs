//! Starts each QEMU at hand with our command lines and asks it what it understood.

// A helper of a test fails like the test itself.
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout)]

mod agree;
mod capabilities;
mod crowd;
mod effect;
mod fixes;
mod guest;
mod help;
mod hostile;
mod hotplug;
mod injection;
mod interfaces;
mod limits;
mod matrix;
mod network;
mod options;
mod qemu;
mod removed;
mod sources;
mod storage;
mod trial;
