//! All tests of the crate, in one program.

mod devices;
mod engines;
mod host_changes;
mod renamed;
mod sockets;
