//! A guest as libvirt would define it.

use vmdisk_model::{ControllerType, Domain, FieldPath};

use crate::unmodeled::{Unmodeled, UnmodeledParts, UnmodeledPath};
use crate::writer::Unwritable;

/// An unset option, and libvirt's value for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The field, in the resolved guest.
    pub at: FieldPath,
    /// The value, in libvirt's words.
    pub value: String,
    /// The reason for this value.
    pub reason: &'static str,
}

/// An option that cannot be resolved, for which libvirt refuses the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The field, in the resolved guest; it may be one that libvirt would fill in.
    pub at: FieldPath,
    /// The conflicting field.
    pub with: Option<FieldPath>,
    /// The mistake.
    pub kind: ConflictKind,
}

/// The reason why libvirt finds no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// A disk has no address, and its target's name has no number to derive one from; libvirt: `Unknown disk name '…'
    /// and no address specified`.
    NameWithoutNumber,
    /// Two disks of a bus have the same address; libvirt: `Found duplicate drive address for disk with target name
    /// '…'`.
    SameAddress,
    /// Two controllers of a type have the same index; libvirt: `Multiple '…' controllers with index '…'`.
    SameController {
        /// The type.
        controller_type: ControllerType,
        /// The index.
        index: u32,
    },
}

/// A guest as libvirt would define it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The guest, with all resolvable options filled in.
    pub domain: Domain,
    /// The unmodeled parts, for writing the guest.
    pub kept: Unmodeled,
    /// The filled-in options, with reasons.
    pub decisions: Vec<Decision>,
    /// The unresolvable options.
    pub conflicts: Vec<Conflict>,
}

impl Resolved {
    /// Writes the guest; see [`write_domain`](crate::write_domain).
    ///
    /// # Errors
    /// Fails if a text contains a character that XML cannot represent.
    pub fn write(&self) -> Result<String, Unwritable> {
        crate::write_domain(&self.domain, &self.kept)
    }

    pub(super) fn decide(&mut self, at: FieldPath, value: impl ToString, reason: &'static str) {
        self.decisions.push(Decision {
            at,
            value: value.to_string(),
            reason,
        });
    }

    /// Adds an attribute to the kept parts of a disk, if the model has no field for it.
    pub(super) fn keep_attribute(
        &mut self,
        disk: usize,
        at: UnmodeledPath,
        name: &str,
        value: &str,
    ) {
        if self.kept.disks.len() <= disk {
            self.kept.disks.resize_with(disk + 1, Default::default);
        }
        let mut parts: UnmodeledParts = self.kept.disks[disk].at(at).clone();
        parts
            .attributes
            .push((name.to_owned(), format!("{name}='{value}'")));
        self.kept.disks[disk].note(at, parts);
    }
}
