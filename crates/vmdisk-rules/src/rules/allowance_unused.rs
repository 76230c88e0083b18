//! `allowance-unused`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// An allowance allows nothing.
    ///
    /// ## What it does
    /// Reports an allowance that no finding needs: the mistake was mended, or the comment stands in the wrong
    /// place. The fix removes it.
    ///
    /// ## Why it matters
    /// What was allowed once would be allowed again when the mistake comes back for another reason.
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
        name: "allowance-unused",
        group: Group::Clarity,
        severity: Severity::Advice,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[Evidence::Source("the allowance itself")],
        supersedes: &[],
        check: Allowances,
    }
}
