//! A guest without an operating system: a kernel, drivers, and this program as the only process.
//!
//! The archive that its kernel unpacks is built in this process, without root privileges or a disk image. A second
//! archive after it holds the job. Results are returned as lines on a virtio serial port.

mod archive;
pub(crate) mod fill;
mod kernel;
pub(crate) mod libraries;
pub(crate) mod message;
pub(crate) mod program;

pub use archive::Archive;
pub use kernel::Kernel;
pub use program::{is_first_program, run_as_first_program};
