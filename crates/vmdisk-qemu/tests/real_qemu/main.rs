//! Starts the installed QEMU with our command lines and asks it what it understood.

// The library itself is held to starting nothing and reading nothing; these tests are not.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
// A helper of a test fails like the test itself.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod agree;
mod crowd;
mod effect;
mod hostile;
mod matrix;
mod qemu;
mod storage;
