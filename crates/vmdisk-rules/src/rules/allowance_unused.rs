//! `allowance-unused`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// An allowance is not needed.
    ///
    /// ## What it reports
    /// Reports an allowance that matches no finding, and each rule in an allowance that does not: the problem was fixed,
    /// or the comment is in the wrong place. The fix removes it.
    ///
    /// ## Why it matters
    /// An allowance that is left behind hides the same problem when it returns later for a different reason.
    ///
    /// ## Use instead
    /// Remove the comment, or move it directly before the element that it is meant for.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <!-- vmdisk: allow(cache-unsafe) this guest is built anew each night -->
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    ///
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <!-- vmdisk: allow(cache-unsafe) this guest is built anew each night -->
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='unsafe'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "allowance-unused",
    group: Group::Clarity,
    severity: Severity::Advice,
    applies_to_foreign_guests: true,
    evidence: &[Evidence::Source("the allowance itself")],
    check: Allowances,
}
