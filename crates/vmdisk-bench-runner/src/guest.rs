//! A guest without an operating system: a kernel, drivers, and this very program as the first and only process.
//!
//! The archive that its kernel unpacks is made in this process, and needs neither root nor an image of a disk. A second
//! archive after it carries the job. Results come back through a virtio serial port, a line for each.

mod archive;
mod kernel;
pub(crate) mod libraries;
pub(crate) mod message;
pub(crate) mod program;

pub use archive::Archive;
pub use kernel::Kernel;
pub use program::{is_first_program, run_as_first_program};
