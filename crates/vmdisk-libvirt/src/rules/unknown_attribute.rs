//! `unknown-attribute`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// An attribute is not one that libvirt knows there.
    ///
    /// ## What it does
    /// Reports attributes of a disk and of its controllers that no libvirt up to 12.5 knows. They are kept in
    /// the file and not checked. Where only one name can have been meant, the fix writes it.
    ///
    /// ## Why it matters
    /// libvirt drops an attribute it does not know without a word, so the guest starts without the setting that
    /// somebody wrote. Only schema validation refuses it, and it points at `<devices>`.
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
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' discard='unmap'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(crate) static RULE = {
        name: "unknown-attribute",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "define succeeds and the attribute is gone from dumpxml",
                how: "virsh of libvirt 9.0 with its QEMU driver",
            },
        ],
        supersedes: &[],
        check: Text,
    }
}
