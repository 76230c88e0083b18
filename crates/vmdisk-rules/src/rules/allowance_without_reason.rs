//! `allowance-without-reason`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// An allowance does not say why.
    ///
    /// ## What it does
    /// Reports `vmdisk: allow(rule)` without a reason behind it. The finding is allowed all the same.
    ///
    /// ## Why it matters
    /// Whoever reads the file next cannot tell whether the reason still holds.
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
    pub(super) static RULE = {
        name: "allowance-without-reason",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[Evidence::Source("the allowance itself")],
        supersedes: &[],
        check: Allowances,
    }
}
