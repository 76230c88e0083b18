//! `unknown-attribute`

use vmdisk_rule::{Evidence, Group, Severity};

use super::xml::xml_rule;

xml_rule! {
    /// An attribute is unknown to libvirt, which drops it.
    ///
    /// ## What it reports
    /// Reports attributes of a disk and of its controllers that no libvirt up to 12.5 knows. They are kept in the file
    /// and not checked. If a similar name exists, the fix uses it.
    ///
    /// ## Why it matters
    /// libvirt defines the guest without an error and drops the attribute. The guest starts without the setting, and
    /// `virsh dumpxml` no longer shows it. Only schema validation refuses it, and its message points at `<devices>`.
    ///
    /// ## Use instead
    /// Correct the name or remove the attribute. `virsh define --validate FILE` refuses unknown attributes.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' discrad='unmap'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' discard='unmap'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' discard='unmap'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// oVirt adds `type='none'` to the labels of its sources. libvirt drops it, and `relabel='no'` says the same:
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'>
    ///     <seclabel model='dac' type='none' relabel='no'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "unknown-attribute",
    group: Group::Clarity,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("define succeeds and the attribute is gone from dumpxml", "virsh of libvirt 9.0 with its QEMU driver"),
    ],
    check: Text,
}
