//! `nvram-format-differs`

use vmdisk_facts::Version;
use vmdisk_model::{DomainField, FieldPath};
use vmdisk_rule::{Confidence, Evidence, Group, Report, Severity};

use super::xml::{Xml, xml_rule};
use crate::RootKind;

xml_rule! {
    /// The file of the UEFI variables has another format than its template.
    ///
    /// ## What it reports
    /// Reports an `<nvram>` with a `template` whose `format` differs from its `templateFormat`; both are raw by default. Since
    /// libvirt 10.10 it is an error; without a version, and before, it is a warning. There the header of the template counts, if
    /// host facts have it, else a template whose name ends with the format is left out. Reports a `format` for a libvirt before 9.2, which ignores it and opens the file as raw, and a
    /// template without `templateFormat` for libvirt 10.10, unless libvirt chooses the firmware or the template is one of the
    /// distribution (below `/usr/share`), whose descriptor has the format.
    ///
    /// ## Why it matters
    /// libvirt copies the template to the file of the guest byte by byte, and does not convert it. Since 10.10 it refuses
    /// to start: `conversion of the nvram template to another target format is not supported`. Earlier versions start QEMU
    /// with a raw file as qcow2, which QEMU refuses.
    ///
    /// ## Use instead
    /// Remove `format`, or convert the template and name its format:
    /// `qemu-img convert -f raw -O qcow2 VARS.fd VARS.qcow2` with `templateFormat='qcow2'`.
    ///
    /// ## Reported
    /// ```xml,reported,libvirt-10.10
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram template='/usr/share/OVMF/OVMF_VARS_4M.fd' format='qcow2'>/var/lib/libvirt/qemu/nvram/web1.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,reported,libvirt-10.10
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram template='/srv/vars.fd'>/var/lib/libvirt/qemu/nvram/web2.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// The header of this template says qcow2:
    /// ```xml,reported,libvirt-9.0,facts-uefi
    /// <domain type='kvm'>
    ///   <name>web3</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram template='/srv/VARS_4M.img'>/var/lib/libvirt/qemu/nvram/web3.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,libvirt-10.0,facts-uefi
    /// <domain type='kvm'>
    ///   <name>web3</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram template='/usr/share/OVMF/OVMF_VARS_4M.fd' format='qcow2'>/var/lib/libvirt/qemu/nvram/web3.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,hidden,libvirt-10.0,facts-uefi
    /// <domain type='kvm'>
    ///   <name>web3</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram template='/srv/VARS_4M.img' format='qcow2'>/var/lib/libvirt/qemu/nvram/web3.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,not-reported,libvirt-11.3
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram template='/srv/vars.fd'>/var/lib/libvirt/qemu/nvram/web2.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,not-reported,libvirt-10.10
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram template='/srv/vars.qcow2' templateFormat='qcow2' format='qcow2'>/var/lib/libvirt/qemu/nvram/web1.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    name: "nvram-format-differs",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("`<nvram format='qcow2'>` is gone after `virsh define`, and the file is opened with the driver raw", "libvirt 9.0"),
        Evidence::Source("ansible-role-libvirt-vm pull request 102, Rocky 9.6 with libvirt 10.10: a template without templateFormat is refused; libvirt 11.3 starts the guest"),
        Evidence::Source("libvirt src/qemu/qemu_nvram.c since 10.10: conversion of the nvram template to another target format is not supported; virt-manager issue 807"),
    ],
    check: Text(check),
}

/// The first libvirt that reads the format of the variables.
const READ: Version = Version(9, 2, 0);

/// The first libvirt that compares the formats.
const CHECKED: Version = Version(10, 10, 0);

/// Where the packages of firmware are, whose descriptors tell libvirt the format.
const PACKAGED: &str = "/usr/share/";

/// A libvirt that takes a template without a format for raw.
const TOLD: Version = Version(11, 0, 0);

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    let os = xml
        .tree
        .root()
        .child("os")
        .filter(|_| xml.root == RootKind::Domain);
    let Some(nvram) = os.and_then(|os| os.child("nvram")) else {
        return;
    };
    let own = nvram.attribute("format").unwrap_or("raw");
    let at = FieldPath::Domain(DomainField::Firmware);
    if own != "raw" && xml.context.libvirt_is_before(READ) == Some(true) {
        report
            .finding(
                at,
                format!("libvirt opens the UEFI variables as raw, not as {own}"),
            )
            .span(nvram.tag())
            .label(format!("libvirt reads `format` since {READ}"))
            .help("use a raw file, and remove `format`");
        return;
    }
    let Some(path) = nvram.attribute("template") else {
        return;
    };
    let is_checked = xml.context.libvirt_is_before(CHECKED) == Some(false);
    // Since then, libvirt takes the word for it.
    let header = xml.context.host.filter(|_| !is_checked);
    let header = header.and_then(|host| host.file(path)?.image.value()?.format.value());
    let template = match header {
        Some(header) => header.as_str(),
        None => nvram.attribute("templateFormat").unwrap_or("raw"),
    };
    if template == own {
        let is_told = nvram.attribute("templateFormat").is_some()
            || os.is_some_and(|os| os.attribute("firmware").is_some())
            || path.starts_with(PACKAGED);
        let target = xml.context.target.libvirt;
        if !is_told && target.is_some_and(|it| (CHECKED..TOLD).contains(&it)) {
            report
                .finding(
                    at,
                    "libvirt 10.10 refuses a template of the UEFI variables without its format",
                )
                .span(nvram.tag())
                .severity(Severity::Error)
                .confidence(Confidence::Assumed)
                .label("`templateFormat` is not set")
                .help(format!("write `templateFormat='{template}'`"));
        }
        return;
    }
    if !is_checked
        && header.is_none()
        && nvram.attribute("templateFormat").is_none()
        && path.ends_with(&format!(".{own}"))
    {
        return;
    }
    let severity = if is_checked {
        Severity::Error
    } else {
        Severity::Warning
    };
    let verb = header.map_or("is taken as", |_| "is");
    report
        .finding(
            at,
            format!("the UEFI variables are {own}, but their template {verb} {template}"),
        )
        .span(nvram.tag())
        .severity(severity)
        .confidence(Confidence::Assumed)
        .label("libvirt does not convert the template")
        .help(if xml.context.libvirt_is_before(READ) == Some(true) {
            format!("use a template in {own}")
        } else {
            format!(
                "use `format='{template}'`, or a template in {own} with `templateFormat='{own}'`"
            )
        });
}
