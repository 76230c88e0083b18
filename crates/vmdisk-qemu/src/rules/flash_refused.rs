//! `flash-refused`

use vmdisk_facts::verdict::flash::{FirmwareRole, FlashFiles};
use vmdisk_rule::{Evidence, Group, Report, Severity, report_flash};

use super::line::{Line, line_rule};

line_rule! {
    /// The files of UEFI on a command line do not exist, have a size that QEMU refuses, or do not belong together.
    ///
    /// ## What it reports
    /// Looks at the files of `-drive if=pflash` and of `-machine pflash0=` on the host: whether they exist; on a PC, whether
    /// each has whole pages of 4 KiB and both together at most 8 MiB; on `virt` of Arm, whether each has 64 MiB; and whether
    /// code of 4 MiB flash is used with variables of 2 MiB flash. `uefi-files-refused` does it for libvirt.
    ///
    /// ## Why it matters
    /// QEMU does not start (`device requires 67108864 bytes, block backend provides 2097152 bytes`), or the guest shows
    /// nothing, because the code does not find its variables.
    ///
    /// ## Use instead
    /// Use code and variables of one build. For `virt`, fill both files up with zeroes: `truncate -s 64M QEMU_EFI.fd`.
    ///
    /// ## Reported
    /// ```args,reported,facts-uefi
    /// qemu-system-aarch64 -machine virt \
    ///   -drive if=pflash,format=raw,readonly=on,file=/opt/QEMU_EFI.fd
    /// ```
    /// ```args,reported,hidden,facts-uefi
    /// qemu-system-x86_64 -machine q35 \
    ///   -drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd \
    ///   -drive if=pflash,format=raw,file=/var/lib/libvirt/qemu/nvram/old_VARS.fd
    /// ```
    /// ```args,reported,hidden,facts-uefi
    /// qemu-system-x86_64 -machine q35 \
    ///   -drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd \
    ///   -drive if=pflash,format=raw,file=/var/lib/libvirt/qemu/nvram/absent_VARS.fd
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,facts-uefi
    /// qemu-system-x86_64 -machine q35 \
    ///   -drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd \
    ///   -drive if=pflash,format=raw,file=/var/lib/libvirt/qemu/nvram/new_VARS.fd
    /// ```
    /// Not checked without host facts:
    /// ```args,not-checked
    /// qemu-system-aarch64 -machine virt \
    ///   -drive if=pflash,format=raw,readonly=on,file=/opt/QEMU_EFI.fd
    /// ```
    name: "flash-refused",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("`system firmware block device pflash0 has invalid size 5120` with 5,000 bytes; `combined size of system firmware exceeds 8388608 bytes` with 4 and 5 MiB", "QEMU 7.2 on q35 with empty files of these sizes"),
        Evidence::Source("QEMU hw/block/block.c, blk_check_size_and_read_all; packer-plugin-qemu issue 43: `device requires 67108864 bytes, block backend provides 2097152 bytes`"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let Some(firmware) = &line.document.firmware else {
        return;
    };
    let variables = firmware.variables.as_ref().map(|it| it.path.as_str());
    let files = FlashFiles {
        code: &firmware.code.path,
        variables,
        template: None,
        is_flash: true,
    };
    let place = |file: FirmwareRole| {
        let path = match file {
            FirmwareRole::Code => &firmware.code.path,
            FirmwareRole::Variables | FirmwareRole::Template => variables?,
        };
        let files = ["drive", "blockdev"]
            .into_iter()
            .flat_map(|name| line.index.of_name(name));
        let mut values = files.flat_map(|(_, members)| members.iter());
        let value = values.find(|it| it.value.as_str() == path);
        value.map(|it| it.span)
    };
    report_flash(line.context, report, line.domain(), files, place);
}
