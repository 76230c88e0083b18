//! Internal to vmdisk: libvirt domain XML, read with spans and written back.
//!
//! [`read`] accepts a `<domain>`, a `<disk>` or `<devices>` and returns a [`Document`]: the model, the span of each
//! field, every mistake, the allowances, and the parts outside the model.
//!
//! ```
//! use vmdisk_libvirt::{edits, read};
//! use vmdisk_model::{CacheMode, Change, DiskField, FieldPath};
//! use vmdisk_source::apply_edits;
//!
//! let text = "<domain type='kvm'>
//!   <devices>
//!     <disk type='block'>
//!       <driver name='qemu' type='raw' cache='unsafe' discrad='unmap'/>
//!       <source dev='/dev/vg0/web1'/>
//!       <target dev='vda' bus='virtio'/>
//!     </disk>
//!   </devices>
//! </domain>
//! ";
//! let document = read(text)?;
//! assert_eq!(document.domain.disks[0].backend.cache, Some(CacheMode::Unsafe));
//!
//! // Rules refer to fields; the source map has their places.
//! let cache = FieldPath::Disk(0, DiskField::Cache);
//! let place = document.source_map.place(cache).expect("it was written");
//! assert_eq!(place.span.slice(text), Some("unsafe"));
//!
//! // A mistake has a place, and a fix if only one meaning is possible.
//! let problem = &document.problems[0];
//! assert_eq!(problem.message, "unknown attribute `discrad` of `<driver>`");
//! let corrected = apply_edits(text, &problem.fix)?;
//! assert_eq!(corrected, text.replace("discrad", "discard"));
//!
//! // A change of the model becomes edits that change nothing else.
//! let change = Change::set(cache, "none");
//! let fixed = apply_edits(text, &edits(text, &document, &change)?)?;
//! assert_eq!(fixed, text.replace("unsafe", "none"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`write_domain`] and [`write_disk`] write XML in libvirt's formatting. `read(write(model))` returns the same model;
//! unknown parts, and known parts outside the model, are written back unchanged.
//!
//! The [`vocabulary`] is data: the elements and attributes of disks, with the first libvirt release of each.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod address;
mod allowance;
mod backing_store;
mod blkiotune;
mod check;
mod controller;
mod device_address;
mod disk;
mod document;
mod documents;
mod domain;
mod driver;
mod edits;
mod element;
mod encoding;
mod failure;
mod filling;
mod firmware;
mod geometry;
mod iothread_mapping;
mod iothreads;
mod iotune;
mod loader;
mod memory_backing;
mod metadata_cache;
mod moment;
mod os;
mod passthrough;
mod pci_room;
mod plain;
mod polling;
mod read;
mod reader;
mod resolve;
mod root;
mod rules;
mod scaled;
mod seclabel;
mod source;
mod speller;
mod statistics;
mod storage;
mod surroundings;
mod throttle_filters;
mod throttle_groups;
mod unmodeled;
mod value;
pub mod vocabulary;
mod writer;
mod xml;

pub use allowance::{ALLOWANCE_NAMESPACE, elements_around};
pub use check::check;
pub use controller::write_controller;
pub use disk::write_disk;
pub use document::Document;
pub use documents::documents;
pub use domain::write_domain;
pub use edits::{CannotAdd, CannotEdit, add_devices, check_changes, edits, edits_of_all};
pub use encoding::{MAX_BYTES, decode};
pub use failure::{ReadFailure, ReadFailureKind};
pub use filling::{fillings, numbers};
pub use firmware::FlashFile;
pub use passthrough::Passthrough;
pub use read::{read, read_bytes, read_only};
pub use resolve::{Conflict, ConflictKind, Decision, Resolved, resolve};
pub use root::{RootKind, sniff};
pub use rules::RULES;
pub use speller::XmlSpeller;
pub use storage::{Storage, StorageItem, Unlocated};
pub use surroundings::write_surroundings;
pub use unmodeled::{ElementWithData, Unmodeled, UnmodeledContent};
pub use writer::Unwritable;
pub use xml::MAX_DEPTH;
