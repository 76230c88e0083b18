//! Asks the running host for facts.
//!
//! [`collect`] needs no root privileges and writes nothing; what it may not see becomes unknown with a reason.
//! It reads procfs, sysfs, statx(2) and image headers, and starts no program unless another group than
//! [`Group::Core`] is asked for. Given another root than `/` it reads a system that was recorded into a directory;
//! what only a kernel can answer comes from [`Request::record`]'s answers beside it, or is not collected.
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
mod header;
mod host;
mod image_file;
mod io_uring;
mod kvm;
mod libvirt;
mod libvirt_conf;
mod locks;
mod lvm;
mod lvm_config;
mod mapper;
mod memory;
mod mountinfo;
mod obstacle;
mod paths;
mod patience;
mod process;
mod programs;
mod record;
mod request;
mod root;
mod secrets;
mod sysfs;
mod tiny_guest;
mod trial;
mod write;
mod zfs;

pub use collect::collect;
pub use image_file::{FileIdentity, ImageFile, ImageFileError, read_image};
pub use record::RECORDING;
pub use request::{Group, Request};
pub use secrets::without_secrets;

/// What the fuzz targets reach; no part of the interface.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod for_fuzzing {
    /// Reads any bytes as a table of mounts, and panics where something does not hold.
    pub fn mountinfo(bytes: &[u8]) {
        crate::mountinfo::hold(bytes);
    }
}
