//! Internal to vmdisk: the model of a VM disk: typed, without syntax, positions or IO.
//!
//! A [`Disk`] is a [`Frontend`] (what the guest sees) on a [`Backend`] (what the host opens). A
//! [`Domain`] is the part of a guest that its disks depend on. Layers carry QEMU's names, one-word
//! modes libvirt's; each type's documentation gives both.
//!
//! The values are *as written*: an option nobody set is `None`, never its default, and combinations
//! that no hypervisor accepts can be expressed, because saying what is wrong with them is what this
//! project is for. Methods return the effective value of an unset option: [`Frontend::effective_bus`],
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

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod value;

mod address;
mod backend;
mod blkiotune;
mod board;
mod boot;
mod bus;
mod cache;
mod change;
mod controller;
mod creation;
mod device_path;
mod disk;
mod domain;
mod encryption;
mod field;
mod format;
mod format_conflict;
mod frontend;
mod geometry;
mod host_io;
mod image;
mod iothread;
mod iotune;
mod machine;
mod memory;
mod network;
mod pool;
mod size;
mod statistics;
mod typed;
mod virtio;

pub use address::{Address, CcwAddress, DriveAddress, PciAddress, UsbAddress, target_number};
pub use backend::{Backend, BackendSource, Snapshot, StartupPolicy, VhostUserSocket};
pub use blkiotune::{BlkioDevice, Blkiotune};
pub use board::Board;
pub use boot::libvirt_order;
pub use bus::{Device, TargetBus};
pub use cache::{CacheMode, CacheSwitches};
pub use change::Change;
pub use controller::{Controller, ControllerType, ScsiControllerModel};
pub use creation::{
    Creation, LogicalVolumeName, Preallocation, Qcow2Creation, Qcow2Preallocation, ThinCreation,
};
pub use device_path::{DevicePath, DevicePathKind};
pub use disk::Disk;
pub use domain::{Domain, GuestSystem, Manager, Scope};
pub use encryption::{
    Authentication, Encryption, EncryptionCipher, EncryptionEngine, EncryptionFormat,
    EncryptionVector, Secret, SecretReference,
};
pub use field::{
    ControllerField, DiskField, DomainField, FieldPath, ImageField, IoThreadField, LimitField,
};
pub use format::Format;
pub use format_conflict::{FormatConflict, is_container};
pub use frontend::{Frontend, FrontendKind, Sgio, Tray, VirtioModel};
pub use geometry::{Geometry, GeometryTranslation};
pub use host_io::{AioMode, DetectZeroes, Discard, ErrorPolicy, ReadErrorPolicy, Switch};
pub use image::{
    Backing, HostStorage, Image, MadeAs, NvmeSource, Protocol, Reservations, Slice, VolumeMode,
    VolumeSource,
};
pub use iothread::{DefaultIoThread, IoThread, IoThreadId, IoThreadQueues, Polling};
pub use iotune::{Iotune, IotuneLimits};
pub use machine::{Architecture, BootDevice, CpuMode, DomainType, Firmware, MachineType};
pub use memory::{HugePages, MemoryAccess, MemoryBacking, MemorySource};
pub use network::{Cookie, NetworkHost, NetworkProtocol, NetworkSource, NetworkTransport};
pub use pool::{LocatedVolume, PoolType, StoragePool, StorageVolume, VolumeNotLocated, VolumeType};
pub use size::{Bytes, SizeError};
pub use statistics::{LatencyHistogram, Statistics};
pub use value::{FieldKind, FieldType, FieldValue, Fields, TypedField, kind_of};
pub use virtio::VirtioOptions;
