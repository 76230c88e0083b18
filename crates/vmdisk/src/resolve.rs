//! Defaults that libvirt fills in when a guest is defined.

use vmdisk_libvirt::Unmodeled;

pub use vmdisk_libvirt::{Conflict, ConflictKind, Decision, Resolved};

use crate::{Document, Source};

/// Fills in what libvirt fills in when the guest of a document is defined: drivers, buses, controllers, and
/// the places of disks on them, each with its reason.
///
/// ```
/// let document = vmdisk::read("<domain type='kvm'><devices><disk type='file'>
///   <source file='/srv/web1.img'/><target dev='sda'/></disk></devices></domain>")?;
/// let resolved = vmdisk::resolve(&document);
/// let reasons: Vec<String> = resolved
///     .decisions
///     .iter()
///     .map(|decision| format!("{}={}", vmdisk::breadcrumb(&resolved.domain, decision.at), decision.value))
///     .collect();
/// assert!(reasons.contains(&"disk sda › target/@bus=scsi".to_owned()));
/// # Ok::<(), vmdisk::ReadFailure>(())
/// ```
pub fn resolve(document: &Document) -> Resolved {
    match &document.source {
        Source::LibvirtXml(source) => vmdisk_libvirt::resolve(&source.domain, &source.kept),
        Source::QemuCommandLine(source) => {
            vmdisk_libvirt::resolve(&source.domain, &Unmodeled::default())
        }
        Source::Spec(_) => vmdisk_libvirt::resolve(document.domain(), &Unmodeled::default()),
    }
}
