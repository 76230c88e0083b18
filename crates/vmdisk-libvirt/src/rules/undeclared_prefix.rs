//! `undeclared-prefix`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// An element has a name space prefix that nobody declared.
    ///
    /// ## What it does
    /// Reports elements such as `<qemu:commandline>` in a document that does not declare the prefix.
    ///
    /// ## Why it matters
    /// libvirt accepts the document and throws the element away, with everything in it: the options that
    /// somebody wrote never reach QEMU.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-snapshot'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>a</name>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-snapshot'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    pub(crate) static RULE = {
        name: "undeclared-prefix",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "define returns 0 and the element is gone from dumpxml",
                how: "virsh of libvirt 9.0 with its QEMU driver",
            },
        ],
        supersedes: &[],
        check: Text,
    }
}
