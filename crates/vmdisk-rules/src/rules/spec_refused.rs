//! `spec-refused`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// A spec asks for something that `vmdisk generate` refuses.
    ///
    /// ## What it reports
    /// Reports every unknown key, every value that is not valid or out of range, and every combination of settings that
    /// no choice of the other options can satisfy, each at its place. The other disks of the spec are still planned and
    /// checked.
    ///
    /// ## Why it matters
    /// `vmdisk generate` writes no configuration from the spec until it is corrected.
    ///
    /// ## Use instead
    /// Correct the key or value as the finding says. For an unknown key, the finding names the nearest known key.
    ///
    /// ## Reported
    /// ```yaml
    /// version: 1
    /// disks:
    /// - qcow2: {path: /srv/web1.qcow2, size: 40G, clustersize: 128K}
    ///   cache: nnone
    /// ```
    ///
    /// ## Not reported
    /// ```yaml
    /// version: 1
    /// disks:
    /// - qcow2: {path: /srv/web1.qcow2, size: 40G, cluster-size: 128K}
    ///   cache: none
    /// ```
    name: "spec-refused",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[Evidence::Source("the planner of `vmdisk generate`")],
    check: Text,
}
