//! `spec-refused`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// A spec asks for something that `vmdisk generate` refuses.
    ///
    /// ## What it does
    /// Reports every unknown key, every value that is not one of the known words or out of range, and everything that no
    /// choice of the options left open can make work, each at its place. The other disks of the spec are planned and
    /// checked all the same.
    ///
    /// ## Why it matters
    /// No configuration is generated from the spec until it is corrected.
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
    pub(super) static RULE = {
        name: "spec-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[Evidence::Source("the planner of `vmdisk generate`")],
        supersedes: &[],
        check: Text,
    }
}
