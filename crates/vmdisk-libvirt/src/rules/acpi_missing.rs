//! `acpi-missing`

use vmdisk_model::{DomainField, FieldPath, MachineType};
use vmdisk_rule::{Applicability, Evidence, Fix, Group, Report, Severity};
use vmdisk_source::Edit;

use super::xml::{Xml, xml_rule};
use crate::RootKind;
use crate::xml::Node;

xml_rule! {
    /// The guest has no ACPI, so it can lose its disks when another one is attached.
    ///
    /// ## What it reports
    /// Reports an x86 guest with disks on the machine `pc` or `q35` whose `<features>` have no `<acpi/>`. Other machines,
    /// such as `microvm` and `isapc`, are not reported. Command lines are not reported either: QEMU gives ACPI to a PC,
    /// and `-no-acpi` or `acpi=off` is a decision of its author.
    ///
    /// ## Why it matters
    /// Without `<acpi/>` libvirt starts QEMU with `-no-acpi`, newer releases with `acpi=off`. If a device is then attached
    /// to a running q35 guest, all of its disks disappear, and the writes in flight are lost. On `pc` QEMU refuses to
    /// attach the device, and keeps running when the guest powers off. A guest with UEFI is not defined without it, which is
    /// an error.
    ///
    /// ## Use instead
    /// Write `<features><acpi/></features>` after `<os>`, as `virt-install` and `vmdisk generate` do. The guest sees other
    /// hardware after its next start; Windows may install drivers again.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features>
    ///     <acpi/>
    ///   </features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features>
    ///     <acpi/>
    ///   </features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A machine without a PCI bus:
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='isapc'>hvm</type>
    ///   </os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/web1.img'/>
    ///       <target dev='hda' bus='ide'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "acpi-missing",
    group: Group::DataSafety,
    severity: Severity::Warning,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("after device_add of a virtio-blk-pci into a root port of q35, /proc/partitions has no disk, and with ACPI it has both; pc: \
                      `Bus 'pci.0' does not support hotplugging`, and no SHUTDOWN event after poweroff", "Linux 6.1 in QEMU 7.2 and 10.0, with the arguments of `virsh domxml-to-native` of libvirt 9.0"),
        Evidence::Source("libvirt src/qemu/qemu_validate.c, qemuValidateDomainDefBoot: `UEFI requires ACPI on this architecture`"),
        Evidence::Source("libvirt src/qemu/qemu_command.c: -no-acpi or acpi=off unless the feature is on"),
    ],
    check: Text(check),
}

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    let root = xml.tree.root();
    let os = root.child("os").filter(|_| xml.root == RootKind::Domain);
    let Some((os, os_type)) = os.and_then(|os| Some((os, os.child("type")?))) else {
        return;
    };
    // libvirt reads the features of each such element.
    let mut features = root.children().filter(|node| node.is_named("features"));
    let has_acpi = features.any(|features| features.child("acpi").is_some());
    if has_acpi || !xml.context.domain.is_pc() || xml.disks().next().is_none() {
        return;
    }
    let is_q35 = xml
        .context
        .domain
        .machine
        .as_ref()
        .is_some_and(MachineType::is_q35);
    let (message, note) = if is_q35 {
        (
            "the guest has no ACPI and loses its disks when a disk is attached while it runs",
            "seen with Linux: every PCI device of the guest disappears",
        )
    } else {
        (
            "the guest has no ACPI, so no PCI disk can be attached while it runs",
            "QEMU also keeps running after the guest powers off",
        )
    };
    let at = FieldPath::Domain(DomainField::Machine);
    let loader = os.child("loader").and_then(|it| it.attribute("type"));
    let is_uefi = os.attribute("firmware") == Some("efi") || loader == Some("pflash");
    let finding = match is_uefi {
        true => report
            .finding(at, "the guest has no ACPI, which its UEFI needs")
            .severity(Severity::Error)
            .label("libvirt refuses to start it: `UEFI requires ACPI on this architecture`"),
        false => report
            .finding(at, message)
            .label("libvirt starts this machine without ACPI")
            .note(note),
    };
    finding
        .span(os_type.tag())
        .help("write `<features><acpi/></features>` after `<os>`")
        .fix(Fix {
            changes: Vec::new(),
            edits: vec![insertion(xml.text, os, root.child("features"))],
            // The guest sees other hardware.
            applicability: Applicability::Unsafe,
        });
}

/// Inserts the element into the features, or both after the operating system part.
fn insertion(text: &str, os: Node<'_>, features: Option<Node<'_>>) -> Edit {
    let Some(features) = features else {
        let line = indentation(text, os);
        let inner = if line.is_empty() { "" } else { "  " };
        let new = format!("{line}<features>{line}{inner}<acpi/>{line}</features>");
        return Edit::insert(os.span().end, new);
    };
    if features.is_empty_element() {
        return Edit::replace(features.span(), "<features><acpi/></features>");
    }
    let first = features.children().next();
    let line = first.map_or("", |first| indentation(text, first));
    Edit::insert(features.tag().end, format!("{line}<acpi/>"))
}

/// The line end and spaces before an element, if it is the first of its line.
fn indentation<'t>(text: &'t str, node: Node<'_>) -> &'t str {
    let before = &text[..node.span().start];
    let blank = &before[before.trim_end_matches([' ', '\t']).len()..];
    match before[..before.len() - blank.len()].ends_with('\n') {
        true => &before[before.len() - blank.len() - 1..],
        false => "",
    }
}
