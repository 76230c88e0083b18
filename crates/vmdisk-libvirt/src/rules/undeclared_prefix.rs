//! `undeclared-prefix`

use vmdisk_model::{DiskField, DomainField, FieldPath};
use vmdisk_rule::{Applicability, Evidence, Fix, Group, Report, Severity};
use vmdisk_source::{Edit, Span};

use super::xml::{Xml, xml_rule};
use crate::RootKind;

xml_rule! {
    /// An element has an undeclared namespace prefix.
    ///
    /// ## What it reports
    /// Reports elements such as `<qemu:commandline>` in a document that does not declare the prefix.
    ///
    /// ## Why it matters
    /// libvirt defines the guest without an error and drops the element with everything in it. `virsh dumpxml` no
    /// longer shows it, and the options never reach QEMU. It often happens with snippets that are pasted from the web.
    ///
    /// ## Use instead
    /// Declare the prefix: `<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>`.
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
    /// ```xml,fixed
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
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
    name: "undeclared-prefix",
    group: Group::Clarity,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("define returns 0 and the element is gone from dumpxml", "virsh of libvirt 9.0 with its QEMU driver"),
    ],
    check: Text(check),
}

/// Name spaces with a well-known prefix.
const KNOWN_NAMESPACES: [(&str, &str); 4] = [
    ("qemu", "http://libvirt.org/schemas/domain/qemu/1.0"),
    ("xen", "http://libvirt.org/schemas/domain/xen/1.0"),
    ("lxc", "http://libvirt.org/schemas/domain/lxc/1.0"),
    ("bhyve", "http://libvirt.org/schemas/domain/bhyve/1.0"),
];

/// libvirt's parser accepts an undeclared prefix, but libvirt does not find the name.
pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    if xml.tree.undeclared.is_empty() {
        return;
    }
    // Disks are in order, so the disk around an offset is found by bisection.
    let mut disks: Vec<(Span, usize)> = xml
        .map
        .iter()
        .filter_map(|(path, place)| match path {
            FieldPath::Disk(nth, DiskField::Disk) => Some((place.whole, nth)),
            _ => None,
        })
        .collect();
    disks.sort_unstable();
    let top = FieldPath::Domain(DomainField::Domain);
    let declare_at = match xml.root {
        RootKind::Domain => xml.map.place(top).and_then(|place| place.attributes_end),
        _ => None,
    };
    for undeclared in xml.tree.undeclared {
        if undeclared.is_inner && !undeclared.is_attribute {
            continue;
        }
        let name = undeclared.name.slice(xml.text).unwrap_or_default();
        let Some((prefix, _)) = name.split_once(':') else {
            continue;
        };
        let before = disks.partition_point(|(span, _)| span.start <= undeclared.name.start);
        let at = before
            .checked_sub(1)
            .map(|nth| disks[nth])
            .filter(|(span, _)| undeclared.name.end <= span.end)
            .map_or(top, |(_, nth)| FieldPath::Disk(nth, DiskField::Disk));
        let what = if undeclared.is_attribute {
            format!("attribute `{name}`")
        } else {
            format!("element `<{name}>`")
        };
        let message = format!("prefix `{prefix}` is not declared: libvirt silently drops {what}");
        let finding = report.finding(at, message);
        finding.span(undeclared.name);
        let known = KNOWN_NAMESPACES.iter().find(|(known, _)| *known == prefix);
        match (known, declare_at) {
            (Some((_, uri)), Some(offset)) => {
                finding.help(format!("declare it: `xmlns:{prefix}='{uri}'`"));
                finding.fix(Fix {
                    changes: Vec::new(),
                    edits: vec![Edit::insert(offset, format!(" xmlns:{prefix}='{uri}'"))],
                    applicability: Applicability::Safe,
                });
            }
            (Some(_) | None, _) => {
                finding.help(format!("declare it with `xmlns:{prefix}='…'`"));
            }
        }
    }
}
