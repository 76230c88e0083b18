//! `allowance-without-reason`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// An allowance has no reason.
    ///
    /// ## What it reports
    /// Reports `vmdisk: allow(rule)` without a reason after it. The finding is allowed anyway.
    ///
    /// ## Why it matters
    /// Readers of the file do not know whether the reason still applies, so nobody dares to remove the allowance.
    ///
    /// ## Use instead
    /// Write the reason after the parenthesis: `vmdisk: allow(cache-unsafe) scratch disk, recreated at each boot`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <!-- vmdisk: allow(cache-unsafe) -->
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='unsafe'/>
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
    name: "allowance-without-reason",
    group: Group::Clarity,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[Evidence::Source("the allowance itself")],
    check: Allowances,
}
