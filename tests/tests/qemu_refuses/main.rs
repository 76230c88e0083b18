//! What QEMU refuses or aborts on, row by row: every QEMU at hand is started on it and refuses, the linter reports it
//! for that QEMU, and what is to be written instead starts and is not reported.

// A helper of a test fails like the test itself.
#![allow(clippy::unwrap_used)]

mod creation;
mod denied;
mod devices;
mod host_io;
mod images;
mod places;
mod row;
mod served;
mod setting;
mod sharing;
mod silence;
mod silent;
mod values;
