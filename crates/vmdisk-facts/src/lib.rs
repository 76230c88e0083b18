//! Internal to vmdisk: facts of a host, and the target of a check, as data.
//!
//! [`Facts`] is the facts file; [`HostIndex`] answers questions about paths over it;
//! [`DirectIo`] is the conclusion about O_DIRECT; [`Target`] and [`Capability`] have the capabilities of
//! the QEMU, libvirt and kernel that will run a configuration. Nothing here inspects the machine it runs on.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

pub mod access;
mod as_text;
mod backing;
pub mod blockdev;
pub mod btrfs_regime;
pub mod capability;
pub mod cgroup;
mod check;
pub mod direct_io;
pub mod drivers;
mod fact;
mod facts;
pub mod filesystem;
pub mod firmware;
pub mod host;
mod index;
mod introspection;
pub mod known_bad;
mod least_qemu;
pub mod libvirt;
pub mod lvm_config;
pub mod machines;
mod measured;
mod members;
mod memo;
mod missing;
pub mod mount;
mod needed;
mod number;
pub mod path;
mod path_text;
mod read;
mod reason;
mod record;
pub mod removed;
pub mod stack;
mod target;
pub mod verdict;
mod version;
mod warning;

pub use backing::{NamedFile, named_file};
pub use blockdev::{BlockDevice, BlockKind, DeviceNumber};
pub use capability::{Answer, Basis, Capability, Component, Probe};
pub use direct_io::{Buffered, DirectIo, DirectIoBasis, DirectIoEffect};
pub use fact::{Fact, Reason, Unknown};
pub use facts::{CollectError, Collector, Facts, HostName, Redaction, SCHEMA, SCHEMA_VERSION};
pub use filesystem::{Btrfs, Filesystem, FsKind};
pub use index::{HostIndex, Identity, MAX_LEVELS};
pub use introspection::{INTROSPECTION_VERSION, Introspection, IntrospectionError};
pub use known_bad::Bug;
pub use least_qemu::LEAST_QEMU;
pub use measured::{MeasuredEffect, MeasuredFigure, MeasuredStorage, Quantity};
pub use members::{Member, MemberTable, Owner, ValueKind, is_unstable};
pub use missing::Missing;
pub use mount::{Mount, OptionValue};
pub use needed::FactsNeeded;
pub use path::{Directory, File, FileKind, ImageHeader};
pub use read::{FactsError, MAX_BYTES, Read};
pub use target::{Target, TargetError, machine_version};
pub use verdict::io_uring;
pub use version::{Version, VersionError};
pub use warning::Warning;
