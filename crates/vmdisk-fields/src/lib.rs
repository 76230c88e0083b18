//! Internal to vmdisk: names of each field of the model in the formats: one row per field.
//!
//! A row describes one field of the model: its place in libvirt XML and the first libvirt release with it, the
//! property of QEMU's devices, the key of a spec, and the buses on which libvirt accepts it. Readers,
//! writers, edits and rules walk the rows. To add a field, add it to its struct in vmdisk-model with a name in
//! `DiskField`, `ImageField` or `ControllerField`, and a row here: each of the three is a compile error without the
//! others. The row of a member of a network source lists the protocols that have it.
//!
//! A field with one value needs no more code. A field with several values (an address, a mapping of queues, the
//! servers of a source) and a computed one (`write-cache`) have a reader and a writer outside the table.
//!
//! ```
//! use vmdisk_fields::{DeviceModel, Spelling, disk};
//! use vmdisk_model::DiskField;
//!
//! let row = disk(DiskField::Queues);
//! assert_eq!((row.libvirt.element(), row.libvirt.name()), ("driver", "queues"));
//! assert_eq!(row.spelling(DeviceModel::VirtioBlk), Spelling::Named("num-queues"));
//! assert_eq!(row.spelling(DeviceModel::IdeHd), Spelling::Unknown);
//! ```

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod controller;
mod device_model;
mod disk;
mod image;
mod label;
mod limit;
mod limit_faults;
mod phrase;
mod release;
mod row;
mod setting;
mod shell;
mod since;
mod speller;
mod takers;
mod values;

pub use controller::{CONTROLLER_FIELDS, controller};
pub use device_model::DeviceModel;
pub use disk::{DISK_FIELDS, disk};
pub use image::{IMAGE_FIELDS, UnusedMember, image, remove_ignored_members, unused_members};
pub use label::Label;
pub use limit::{LIMIT_FIELDS, LimitRow, limit};
pub use limit_faults::{LARGEST_LIMIT, LimitFault, LimitFaultKind, has_limits, limit_faults};
pub use phrase::{
    ControllerName, DiskName, Phrase, Piece, all_of, apply, check_template, either, one_of, quoted,
};
pub use release::{FirstReleases, OLDEST_LIBVIRT, OLDEST_QEMU, OpenVersions};
pub use row::{FieldRow, Later, LibvirtPlace, Spelling, Unused, ValueForm};
pub use setting::{Setting, Settings, noun, setting};
pub use shell::{command, shell_word};
pub use since::Since;
pub use speller::{NeutralSpeller, Speller};
pub use takers::Takers;
pub use values::{Letters, ValueLimits, Zero};
