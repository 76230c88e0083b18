//! `boot-order-ignored-by-uefi`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};

line_rule! {
    /// UEFI firmware does not read `-boot order` and `-boot once`.
    ///
    /// ## What it reports
    /// Reports `-boot` with `order` or `once` in a guest with UEFI firmware and several disks or drives, if no device has a
    /// `bootindex`.
    ///
    /// ## Why it matters
    /// `-boot order` sets bytes of the CMOS memory, which a BIOS reads. OVMF and AAVMF read the list that QEMU makes of each
    /// `bootindex`, and their own variables. Without a `bootindex` they boot what their variables say, or what they find
    /// first.
    ///
    /// ## Use instead
    /// Set `bootindex=0` on the device that boots first. For one start from a CD, set `bootindex=0` on its device, or choose
    /// it in the firmware's menu.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE.fd \
    ///   -drive file=/srv/a.img,format=raw,if=virtio -cdrom /srv/install.iso -boot once=d
    /// ```
    ///
    /// ## Not reported
    /// A BIOS reads it:
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=virtio -cdrom /srv/install.iso -boot once=d
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE.fd \
    ///   -drive file=/srv/a.img,format=raw,if=none,id=a -device virtio-blk-pci,drive=a,bootindex=0 \
    ///   -cdrom /srv/install.iso -boot order=d
    /// ```
    name: "boot-order-ignored-by-uefi",
    group: Group::Clarity,
    severity: Severity::Advice,
    evidence: &[
        Evidence::Source("edk2 OvmfPkg/Library/QemuBootOrderLib: reads the file bootorder of fw_cfg; QEMU docs/system/bootindex.rst"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let mut devices = line.index.devices();
    let has_index = devices.any(|(_, _, device)| device.get("bootindex").is_some());
    if has_index || line.document.firmware.is_none() || line.domain().disks.len() < 2 {
        return;
    }
    for (option, boot) in line.index.of_name("boot") {
        let Some(order) = ["order", "once"].into_iter().find_map(|key| boot.get(key)) else {
            continue;
        };
        let message = "UEFI does not read the boot order of `-boot`";
        let help = "set bootindex=0 on the device that boots first";
        line.refuse(report, option, order.span, message, help);
    }
}
