//! libvirt's changes to a guest when it is defined: open options are filled in, each with its reason.
//!
//! It covers what disks depend on: their driver, bus, place on a controller, and the controllers. PCI slots
//! and USB ports, which libvirt chooses too, are not chosen here.

mod address;
mod controller;
mod disk;

use vmdisk_model::{ControllerType, Domain, FieldPath};

use crate::kept::{Kept, KeptAt, KeptParts};
use crate::writer::Unwritable;

/// Something that was left open, and what libvirt puts there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The field, in the resolved guest.
    pub at: FieldPath,
    /// The value, in libvirt's words.
    pub value: String,
    /// Why libvirt takes this one.
    pub reason: &'static str,
}

/// Something that cannot be resolved, and for which libvirt refuses the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The field, in the resolved guest; it may be one that libvirt was to fill in.
    pub at: FieldPath,
    /// The other side.
    pub with: Option<FieldPath>,
    /// The mistake.
    pub kind: ConflictKind,
}

/// What keeps libvirt from finding a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// A disk has no address, and its target's name has no number to make one of; libvirt: `Unknown disk
    /// name '…' and no address specified`.
    NameWithoutNumber,
    /// Two disks of a bus have the same place; libvirt: `Found duplicate drive address for disk with target
    /// name '…'`.
    SameAddress,
    /// Two controllers of a kind have the same number; libvirt: `Multiple '…' controllers with index '…'`.
    SameController {
        /// The kind.
        controller_type: ControllerType,
        /// The number.
        index: u32,
    },
}

/// A guest as libvirt would define it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The guest, with everything filled in that could be.
    pub domain: Domain,
    /// What stays beyond the model, for writing the guest.
    pub kept: Kept,
    /// The filled-in options, with reasons.
    pub decisions: Vec<Decision>,
    /// What could not be.
    pub conflicts: Vec<Conflict>,
}

impl Resolved {
    /// Writes the guest; see [`write_domain`](crate::write_domain).
    ///
    /// # Errors
    /// If a text holds a character that XML cannot carry.
    pub fn write(&self) -> Result<String, Unwritable> {
        crate::write_domain(&self.domain, &self.kept)
    }

    fn decide(&mut self, at: FieldPath, value: impl ToString, reason: &'static str) {
        self.decisions.push(Decision {
            at,
            value: value.to_string(),
            reason,
        });
    }

    /// Adds an attribute to what is kept of a disk, where the model has no place for it.
    fn keep_attribute(&mut self, disk: usize, at: KeptAt, name: &str, value: &str) {
        if self.kept.disks.len() <= disk {
            self.kept.disks.resize_with(disk + 1, Default::default);
        }
        let mut parts: KeptParts = self.kept.disks[disk].at(at).clone();
        parts
            .attributes
            .push((name.to_owned(), format!("{name}='{value}'")));
        self.kept.disks[disk].note(at, parts);
    }
}

/// Fills in what libvirt fills in when it defines a guest.
///
/// ```
/// use vmdisk_libvirt::{read, resolve};
///
/// let document = read("<domain type='kvm'>
///   <os><type arch='x86_64' machine='pc'>hvm</type></os>
///   <devices>
///     <disk type='file'>
///       <source file='/srv/web1.img'/>
///       <target dev='sdi'/>
///     </disk>
///   </devices>
/// </domain>")?;
/// let resolved = resolve(&document.domain, &document.kept);
/// let text = resolved.write()?;
/// // Seven disks to a controller, and all up to that one are there.
/// assert!(text.contains("<address type='drive' controller='1' bus='0' target='0' unit='1'/>"));
/// assert!(text.contains("<controller type='scsi' index='0' model='lsilogic'/>"));
/// assert!(resolved.decisions.iter().any(|decision| decision.value == "scsi"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Resolving is idempotent: a resolved guest does not change.
pub fn resolve(domain: &Domain, kept: &Kept) -> Resolved {
    let mut resolved = Resolved {
        domain: domain.clone(),
        kept: kept.clone(),
        decisions: Vec::new(),
        conflicts: Vec::new(),
    };
    disk::resolve(&mut resolved);
    address::resolve(&mut resolved);
    controller::resolve(&mut resolved);
    resolved
}
