//! `template`

use vmdisk_model::{DomainField, FieldPath};
use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::xml::{Xml, xml_rule};

xml_rule! {
    /// REPLACE: the mistake in one sentence, as a user would search for it.
    ///
    /// ## What it reports
    /// REPLACE: the settings that are reported, and the similar ones that are not.
    ///
    /// ## Why it matters
    /// REPLACE: how libvirt, QEMU or the host reacts, and since which version.
    ///
    /// ## Use instead
    /// REPLACE: the setting to use, or the command to run.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "template",
    group: Group::Clarity,
    severity: Severity::Warning,
    since: "0.1.0",
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::Source("REPLACE: file and function in the source of QEMU or libvirt, or a document"),
    ],
    check: Text(check),
}

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    for element in xml.tree.elements() {
        if element.name() != "REPLACE: the condition" {
            continue;
        }
        let at = FieldPath::Domain(DomainField::Devices);
        let message = "REPLACE: the mistake";
        report
            .finding(at, message)
            .span(element.tag())
            .help("REPLACE: the remedy");
    }
}
