//! libvirt's changes to a guest when it is defined: unset options are filled in, each with its reason.
//!
//! Covers the options that disks depend on: driver, bus, address on a controller, and the controllers. PCI slots and
//! USB ports, which libvirt also chooses, are not assigned.

mod address;
mod controller;
mod disk;
mod resolved;

use vmdisk_model::Domain;

use crate::unmodeled::Unmodeled;

pub use resolved::{Conflict, ConflictKind, Decision, Resolved};

/// Fills in the options that libvirt fills in when it defines a guest.
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
pub fn resolve(domain: &Domain, kept: &Unmodeled) -> Resolved {
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
