//! `disk-in-qemu-commandline`

use vmdisk_facts::{Answer, Capability};
use vmdisk_model::{DomainField, FieldPath};
use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::xml::{Xml, xml_rule};

xml_rule! {
    /// A disk is in `<qemu:commandline>`, where nothing checks it.
    ///
    /// ## What it reports
    /// Reports the options `-drive`, `-blockdev`, `-hda` and the like in `<qemu:commandline>`. The rules about disks do
    /// not see them. Reports as an error such an option, or `-device`, that is one argument with its value.
    ///
    /// ## Why it matters
    /// libvirt passes these options to QEMU unchanged. It does not know the image: it sets neither its owner nor its
    /// labels, does not lock it, and refuses to migrate or snapshot what it does not know. libvirt marks the guest as
    /// tainted (`custom-argv`).
    ///
    /// ## Use instead
    /// Write a `<disk>`, if libvirt has one: NVMe disks need libvirt 11.5. `vmdisk convert` turns a command line of QEMU into one. To check the options here, put them into
    /// a file of their own: `vmdisk lint` reads command lines.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-drive'/>
    ///     <qemu:arg value='file=/srv/a.img,format=raw,if=virtio'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    ///
    /// ```xml,reported,hidden
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-drive file=/srv/a.img,format=raw,if=virtio'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,libvirt-10.0
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-drive'/>
    ///     <qemu:arg value='file=/srv/a.img,format=raw,if=none,id=n'/>
    ///     <qemu:arg value='-device'/>
    ///     <qemu:arg value='nvme,drive=n,serial=n'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-cpu'/>
    ///     <qemu:arg value='host'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    name: "disk-in-qemu-commandline",
    group: Group::Clarity,
    severity: Severity::Advice,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_qemu("invalid option", "system/vl.c, lookup_opt"),
        Evidence::Source("libvirt docs/drvqemu.rst: arguments are passed through, without support, and the guest is tainted"),
    ],
    check: Text(check),
}

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    let at = FieldPath::Domain(DomainField::Domain);
    for (option, span) in &xml.passthrough.joined {
        let message = format!("`{option}` and its value are one argument, which QEMU refuses");
        report
            .finding(at, message)
            .span(*span)
            .severity(Severity::Error)
            .note("QEMU says `invalid option`, and the guest does not start")
            .help(format!(
                "write two elements: `<qemu:arg value='{option}'/>`, then one with the value"
            ));
    }
    for (option, value, span) in &xml.passthrough.disks {
        let message =
            format!("the disk of `{option}` is not checked, and libvirt does not know it");
        let device = xml.passthrough.device_of(value).unwrap_or_default();
        let needs_bus = matches!(device, "nvme" | "nvme-ns");
        let help = match xml.context.can(Capability::LibvirtNvmeBus) {
            Answer::No(_) if needs_bus => {
                "keep it: this libvirt has no NVMe disks (11.5 has); `vmdisk lint` checks the options in a file of their own"
            }
            Answer::Unknown if needs_bus => {
                "with libvirt 11.5 or later, write it as a `<disk>` with bus `nvme`"
            }
            _ => "write it as a `<disk>`",
        };
        report.finding(at, message).span(*span).help(help);
    }
}
