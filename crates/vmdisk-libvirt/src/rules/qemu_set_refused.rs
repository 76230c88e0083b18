//! `qemu-set-refused`

use vmdisk_facts::Version;
use vmdisk_fields::{DISK_FIELDS, disk};
use vmdisk_model::{DomainField, FieldKind, FieldPath};
use vmdisk_rule::{Confidence, Evidence, Group, Report, Severity};

use super::xml::{Xml, xml_rule};
use crate::passthrough::device_setting;

xml_rule! {
    /// `-set` in `<qemu:commandline>` is about a device of libvirt, which QEMU does not find.
    ///
    /// ## What it reports
    /// Reports `-set device.ALIAS.PROPERTY=VALUE` in `<qemu:commandline>` with a name that libvirt gives to a device, such as
    /// `virtio-disk0` or `net0`, except about a `-device` there. It is an error
    /// since libvirt 8.1 with QEMU 7.0, and a warning if a version is not known.
    ///
    /// ## Why it matters
    /// libvirt 8.1 and later write each device as JSON, if QEMU takes it. QEMU's `-set` only changes devices that are written as
    /// `key=value`. QEMU exits: `there is no device "scsi0-0-0-0" defined`.
    ///
    /// ## Use instead
    /// Use the element or attribute that libvirt has for the property. For other properties, write `<qemu:override>`
    /// (libvirt 8.2), which changes the JSON.
    ///
    /// ## Reported
    /// ```xml,reported,qemu-7.2,libvirt-9.0
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///   </devices>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-set'/>
    ///     <qemu:arg value='device.scsi0-0-0-0.rotation_rate=1'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    /// A property that libvirt has no word for, and no version:
    /// ```xml,reported
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-set'/>
    ///     <qemu:arg value='device.hostdev0.x-igd-opregion=on'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// A device of the same arguments:
    /// ```xml,not-reported,qemu-7.2,libvirt-9.0
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-device'/>
    ///     <qemu:arg value='qemu-xhci,id=xhci'/>
    ///     <qemu:arg value='-set'/>
    ///     <qemu:arg value='device.xhci.p2=8'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    /// A version that writes devices as `key=value`:
    /// ```xml,not-reported,qemu-6.1,libvirt-9.0
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-set'/>
    ///     <qemu:arg value='device.hostdev0.x-igd-opregion=on'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden,qemu-7.2,libvirt-8.0
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-set'/>
    ///     <qemu:arg value='device.hostdev0.x-igd-opregion=on'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    name: "qemu-set-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("`there is no device \"b0\" defined` after `-device {\"driver\":…,\"id\":\"b0\"}`, and a start after `-device …,id=b0`; libvirt writes `scsi-hd` as JSON, and `<qemu:override>` changes it", "QEMU 7.2, libvirt 9.0"),
        Evidence::Source("libvirt src/qemu/qemu_command.c, qemuBuildDeviceCommandlineFromJSON: JSON with `json-cli-hotplug` of QEMU 7.0; commit 1a691fe1c84 of libvirt 8.1"),
        Evidence::Source("QEMU softmmu/vl.c, qemu_set_option"),
    ],
    check: Text(check),
}

/// The first libvirt and the first QEMU that have all devices in JSON.
const IN_JSON: (Version, Version) = (Version(8, 1, 0), Version(7, 0, 0));

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    let (libvirt, qemu) = (xml.context.target.libvirt, xml.context.target.qemu);
    let is_old = |version: Option<Version>, first| version.is_some_and(|it| it < first);
    if is_old(libvirt, IN_JSON.0) || is_old(qemu, IN_JSON.1) {
        return;
    }
    let is_known = libvirt.is_some() && qemu.is_some();
    for (setting, span) in &xml.passthrough.settings {
        let Some((alias, property, value)) = device_setting(setting) else {
            continue;
        };
        // Another id may be that of an argument that a template leaves open.
        if !is_of_libvirt(alias) {
            continue;
        }
        let at = FieldPath::Domain(DomainField::Domain);
        let message = format!("`-set` does not find the device `{alias}`, and QEMU exits");
        let help = match element(alias, property, value) {
            Some(element) => format!("write {element} in the `<disk>`"),
            None => format!("write {}", written_over(alias, property, value)),
        };
        let finding = report.finding(at, message).span(*span).help(help);
        finding.note(format!(
            "libvirt writes devices as JSON since {} with QEMU {}: `there is no device \"{alias}\" defined`",
            IN_JSON.0, IN_JSON.1
        ));
        if !is_known {
            finding
                .severity(Severity::Warning)
                .confidence(Confidence::Assumed);
        }
    }
}

/// The names that libvirt gives to disks end with digits and dashes.
const DISKS: [&str; 6] = ["ide", "nvme", "sata", "scsi", "usb-disk", "virtio-disk"];

/// The beginnings of the names that libvirt gives to other devices, before a digit.
const OTHERS: [&str; 12] = [
    "balloon",
    "channel",
    "fs",
    "hostdev",
    "input",
    "net",
    "rng",
    "serial",
    "sound",
    "tpm",
    "video",
    "virtio-serial",
];

/// True for a name that libvirt gives to a device, or takes from the user (`ua-`).
fn is_of_libvirt(alias: &str) -> bool {
    let mut names = DISKS.iter().chain(&OTHERS);
    let is_numbered = |name: &&str| {
        let rest = alias.strip_prefix(*name);
        rest.is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
    };
    alias.starts_with("ua-") || names.any(is_numbered)
}

/// The element or attribute of a disk that is a property with this value.
fn element(alias: &str, property: &str, value: &str) -> Option<String> {
    let number = |name: &str| alias.strip_prefix(name).is_some_and(is_number);
    if !DISKS.into_iter().any(number) {
        return None;
    }
    let mut rows = DISK_FIELDS.iter().map(|field| disk(*field));
    // Other kinds have other words for their values.
    let row = rows.find(|row| {
        row.property() == Some(property)
            && matches!(row.kind, Some(FieldKind::Number | FieldKind::Text))
            && row.libvirt.since.is_some()
    })?;
    let (element, name) = (row.libvirt.element(), row.libvirt.name());
    Some(if row.libvirt.is_attribute() {
        format!("`<{element} {name}='{value}'/>`")
    } else {
        format!("`<{name}>{value}</{name}>`")
    })
}

fn is_number(text: &str) -> bool {
    let is_in = |byte: u8| byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_in)
}

/// The element that sets a property of a device.
fn written_over(alias: &str, property: &str, value: &str) -> String {
    let (kind, value) = match value {
        "on" | "true" | "yes" => ("bool", "true"),
        "off" | "false" | "no" => ("bool", "false"),
        _ if value.parse::<u64>().is_ok() => ("unsigned", value),
        _ if value.parse::<i64>().is_ok() => ("signed", value),
        _ => ("string", value),
    };
    format!(
        "`<qemu:override><qemu:device alias='{alias}'><qemu:frontend><qemu:property name='{property}' type='{kind}' \
         value='{value}'/></qemu:frontend></qemu:device></qemu:override>`, which libvirt 8.2 and later have"
    )
}
