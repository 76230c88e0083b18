//! `allowance-unknown-rule`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// An allowance names a rule that does not exist.
    ///
    /// ## What it reports
    /// Reports a name in `vmdisk: allow(…)` that is not the name of a rule, and suggests the nearest one.
    ///
    /// ## Why it matters
    /// The allowance has no effect: the finding that it was written for is still reported. A misspelled name also hides
    /// that the finding was never accepted.
    ///
    /// ## Use instead
    /// Correct the name. `vmdisk explain --list` lists all names.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <!-- vmdisk: allow(cache-unsave) this guest is built anew each night -->
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
    name: "allowance-unknown-rule",
    group: Group::Clarity,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[Evidence::Source("the allowance itself")],
    check: Allowances,
}
