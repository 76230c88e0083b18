//! Collects facts about the running host.
//!
//! [`collect`] needs no root privileges and writes nothing; inaccessible facts become unknown with a reason.
//! It reads procfs, sysfs, statx(2) and image headers, and starts no program unless a group other than
//! [`FactGroup::Core`] is requested. With a root other than `/` it reads a system recorded into a directory;
//! answers of the kernel come from the recording made with [`Request::record`], or are not collected.
//!
//! ```
//! use vmdisk_collect::{Request, collect};
//!
//! let mut request = Request::new("2026-11-20T05:00:00Z");
//! request.paths.push("/nonexistent/disk.img".into());
//! let facts = collect(&request);
//! assert!(facts.files[0].is_missing());
//! assert!(facts.dirs[0].path == "/", "the nearest directory that exists");
//! ```

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod access;
mod accounts;
mod aliases;
mod btrfs;
mod cgroups;
mod chains;
mod collect;
mod device_kind;
mod devices;
mod drivers;
mod extents;
mod filesystems;
mod firmware;
mod free;
mod header;
mod host;
mod inspection;
mod io_uring;
mod kvm;
mod libvirt;
mod libvirt_conf;
mod locks;
mod lvm;
mod lvm_config;
mod mapper;
mod memlock;
mod memory;
mod mountinfo;
mod obstacle;
mod paths;
mod places;
mod process;
mod programs;
mod record;
mod request;
mod root;
mod secrets;
mod sysfs;
mod timeout;
mod tiny_guest;
mod trial;
mod write;
mod zfs;

pub use collect::collect;
pub use free::{DeviceCheck, DeviceRefusal, DeviceState, Refused, device_state};
/// For programs of this repository that hold a device while they use it.
#[doc(hidden)]
pub use free::{DeviceIdentity, END_BYTES, HeldDevice};
pub use record::RECORDING;
pub use request::{FactGroup, Request};
pub use secrets::without_secrets;

/// Entry points of the fuzz targets; not part of the public interface.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod for_fuzzing {
    /// Parses any bytes as a mount table, and panics if an invariant is violated.
    pub fn mountinfo(bytes: &[u8]) {
        crate::mountinfo::check_invariants(bytes);
    }
}
