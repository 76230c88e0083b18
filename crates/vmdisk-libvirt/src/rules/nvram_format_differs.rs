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
    /// libvirt 10.10 it is an error; without a version, and before, it is a warning, except for a template whose name ends
    /// with the format. Reports a `format` for a libvirt before 9.2, which ignores it and opens the file as raw.
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
    ///
    /// ## Not reported
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
        Evidence::Source("libvirt src/qemu/qemu_nvram.c since 10.10: conversion of the nvram template to another target format is not supported; virt-manager issue 807"),
    ],
    check: Text(check),
}

/// The first libvirt that reads the format of the variables.
const READ: Version = Version(9, 2, 0);

/// The first libvirt that compares the formats.
const CHECKED: Version = Version(10, 10, 0);

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    let os = xml
        .tree
        .root()
        .child("os")
        .filter(|_| xml.root == RootKind::Domain);
    let Some(nvram) = os.and_then(|os| os.child("nvram")) else {
        return;
    };
    let format = |name: &str| nvram.attribute(name).unwrap_or("raw");
    let (template, own) = (format("templateFormat"), format("format"));
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
    let Some(path) = nvram.attribute("template").filter(|_| template != own) else {
        return;
    };
    let is_checked = xml.context.libvirt_is_before(CHECKED) == Some(false);
    if !is_checked
        && nvram.attribute("templateFormat").is_none()
        && path.ends_with(&format!(".{own}"))
    {
        return;
    }
    let severity = match xml.context.libvirt_is_before(CHECKED) {
        Some(false) => Severity::Error,
        Some(true) | None => Severity::Warning,
    };
    report
        .finding(
            at,
            format!("the UEFI variables are {own}, but libvirt takes their template as {template}"),
        )
        .span(nvram.tag())
        .severity(severity)
        .confidence(Confidence::Assumed)
        .label("libvirt does not convert the template")
        .help(format!(
            "use `format='{template}'`, or a template in {own} with `templateFormat='{own}'`"
        ));
}
