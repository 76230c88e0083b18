//! `unknown-element`

use vmdisk_rule::{Evidence, Group, Severity};

use super::xml::xml_rule;

xml_rule! {
    /// An element inside a disk is unknown to libvirt, which drops it.
    ///
    /// ## What it reports
    /// Reports child elements of a disk and of its controllers that no libvirt up to 12.5 knows. They are kept in the
    /// file and not checked.
    ///
    /// ## Why it matters
    /// libvirt defines the guest without an error and drops the element. The guest starts without it, and
    /// `virsh dumpxml` no longer shows it.
    ///
    /// ## Use instead
    /// Correct the name or remove the element. `virsh define --validate FILE` refuses unknown elements.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <reedonly/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    name: "unknown-element",
    group: Group::Clarity,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("define succeeds and the element is gone from dumpxml", "virsh of libvirt 9.0 with its QEMU driver"),
    ],
    check: Text,
}
