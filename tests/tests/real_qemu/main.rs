//! Starts each QEMU at hand with our command lines and asks it what it understood.

// A helper of a test fails like the test itself.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod agree;
mod crowd;
mod effect;
mod hostile;
mod matrix;
mod qemu;
mod storage;
