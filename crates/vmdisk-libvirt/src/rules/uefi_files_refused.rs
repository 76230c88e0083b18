//! `uefi-files-refused`

use vmdisk_facts::verdict::flash::{FirmwareRole, FlashFiles};
use vmdisk_rule::{Evidence, Group, Report, Severity, report_flash};

use super::xml::{Xml, xml_rule};
use crate::RootKind;
use crate::loader::FirmwareElements;

xml_rule! {
    /// The files of UEFI that a guest names do not exist, have a size that QEMU refuses, or do not belong together.
    ///
    /// ## What it reports
    /// Looks at the files of `<loader>` and `<nvram>` on the host: whether the code exists, and the variables or their
    /// template; on a PC, whether each has whole pages of 4 KiB and both together at most 8 MiB; on `virt` of Arm, whether
    /// each has 64 MiB; whether code of 4 MiB flash is used with variables of 2 MiB flash; and whether the template is the
    /// one that a firmware descriptor of the host has for the code. `vmdisk facts --for` and `--live` look at these files.
    ///
    /// ## Why it matters
    /// Distributions move and remove these files: Debian 13 and Ubuntu 24.04 have no `OVMF_CODE.fd` any more. The guest does
    /// not start (`Could not open … No such file or directory`, `combined size of system firmware exceeds`), or shows
    /// nothing, because the code does not find its variables.
    ///
    /// ## Use instead
    /// Use code and variables of one build, as a descriptor in `/usr/share/qemu/firmware` names them, or let libvirt choose:
    /// `<os firmware='efi'>` without `<loader>` and `<nvram>`. Variables of another build cannot be reused.
    ///
    /// ## Reported
    /// ```xml,reported,facts-uefi
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE.fd</loader>
    ///     <nvram template='/usr/share/OVMF/OVMF_VARS.fd'>/var/lib/libvirt/qemu/nvram/web1_VARS.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// Variables of 2 MiB flash with code of 4 MiB flash:
    /// ```xml,reported,facts-uefi
    /// <domain type='kvm'>
    ///   <name>old</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram>/var/lib/libvirt/qemu/nvram/old_VARS.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,facts-uefi
    /// <domain type='kvm'>
    ///   <name>arm</name>
    ///   <os>
    ///     <type arch='aarch64' machine='virt'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/opt/QEMU_EFI.fd</loader>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,facts-uefi
    /// <domain type='kvm'>
    ///   <name>odd</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/opt/odd.fd</loader>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,facts-uefi
    /// <domain type='kvm'>
    ///   <name>large</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/opt/large.fd</loader>
    ///     <nvram>/var/lib/libvirt/qemu/nvram/new_VARS.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden,facts-uefi
    /// <domain type='kvm'>
    ///   <name>other</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram template='/opt/VARS_4M.fd'>/var/lib/libvirt/qemu/nvram/absent_VARS.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-uefi
    /// <domain type='kvm'>
    ///   <name>new</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    ///     <nvram template='/usr/share/OVMF/OVMF_VARS_4M.fd'>/var/lib/libvirt/qemu/nvram/absent_VARS.fd</nvram>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden,facts-uefi
    /// <domain type='kvm'>
    ///   <name>bios</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader type='rom'>/opt/odd.fd</loader>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE.fd</loader>
    ///   </os>
    ///   <features><acpi/></features>
    /// </domain>
    /// ```
    name: "uefi-files-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("`system firmware block device pflash0 has invalid size 5120` with 5,000 bytes; `combined size of system firmware exceeds 8388608 bytes` with 4 and 5 MiB", "QEMU 7.2 on q35 with empty files of these sizes"),
        Evidence::Source("QEMU hw/i386/pc_sysfw.c, pc_system_flash_map; hw/block/block.c, blk_check_size_and_read_all: `device requires 67108864 bytes`; packer-plugin-qemu issue 43"),
        Evidence::Source("packer-maas issue 216, ansible-role-libvirt-vm issue 100: no OVMF_CODE.fd after an upgrade; tianocore.github.io issue 94: 4M code with 2M variables shows nothing"),
    ],
    check: Text(check),
}

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    if xml.root != RootKind::Domain {
        return;
    }
    let Some(flash) = FirmwareElements::of(&xml.tree) else {
        return;
    };
    let files = FlashFiles {
        code: &flash.code.0,
        variables: flash.variables.as_ref().map(|(path, _)| &**path),
        template: flash.template.as_ref().map(|(path, _)| &**path),
        is_flash: flash.is_flash,
    };
    let place = |file: FirmwareRole| match file {
        FirmwareRole::Code => Some(flash.code.1),
        FirmwareRole::Variables => flash.variables.as_ref().map(|it| it.1),
        FirmwareRole::Template => flash.template.as_ref().map(|it| it.1),
    };
    report_flash(xml.context, report, xml.context.domain, files, place);
}
