//! What a VM disk is: typed, without syntax, positions or IO.
//!
//! A [`Disk`] is a [`Frontend`] (what the guest sees) on a [`Backend`] (what the host opens). A
//! [`Domain`] is the part of a guest that its disks depend on. Layers carry QEMU's names, one-word
//! modes libvirt's; each type's documentation gives both.
//!
//! The values are *as written*: an option nobody set is `None`, never its default, and combinations
//! that no hypervisor accepts can be expressed, because saying what is wrong with them is what this
//! project is for. What an unset option comes to is asked of methods: [`Frontend::effective_bus`],
//! [`Domain::frontend_kind`].
//!
//! ```
//! use vmdisk_model::{CacheMode, Disk, Domain, Format, Frontend, FrontendKind, Image, TargetBus};
//!
//! let mut disk = Disk::new(
//!     Frontend::new("vda", TargetBus::Virtio),
//!     Image::file("/srv/web1.qcow2", Format::Qcow2),
//! );
//! disk.backend.cache = Some(CacheMode::None);
//! assert!(CacheMode::None.switches().direct);
//!
//! let mut domain = Domain::default();
//! domain.disks.push(disk);
//! assert_eq!(domain.frontend_kind(&domain.disks[0]), FrontendKind::VirtioBlk);
//! ```

mod wire_enum;

mod address;
mod backend;
mod cache;
mod change;
mod controller;
mod creation;
mod device_path;
mod disk;
mod domain;
mod field;
mod frontend;
mod host_io;
mod iothread;
mod iotune;
mod machine;
mod memory;
mod size;

pub use address::{Address, DriveAddress, PciAddress};
pub use backend::{
    Backend, BackendSource, Backing, Format, Image, OtherSource, Protocol, VhostUserSocket,
};
pub use cache::{CacheMode, CacheSwitches};
pub use change::Change;
pub use controller::{Controller, ControllerType, ScsiControllerModel};
pub use creation::{
    Creation, LogicalVolumeName, Preallocation, Qcow2Creation, Qcow2Preallocation, ThinCreation,
};
pub use device_path::{DevicePath, DevicePathKind};
pub use disk::Disk;
pub use domain::{Domain, Scope};
pub use field::{ControllerField, DiskField, DomainField, FieldPath, ImageField, IoThreadField};
pub use frontend::{Device, Frontend, FrontendKind, TargetBus, VirtioModel};
pub use host_io::{AioMode, DetectZeroes, Discard, ErrorPolicy, ReadErrorPolicy, Switch};
pub use iothread::{IoThread, IoThreadId, IoThreadQueues};
pub use iotune::{Iotune, IotuneLimits};
pub use machine::{Architecture, DomainType, MachineType};
pub use memory::{HugePages, MemoryAccess, MemoryBacking, MemorySource};
pub use size::{Bytes, SizeError};
