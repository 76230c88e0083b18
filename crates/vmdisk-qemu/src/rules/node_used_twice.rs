//! `node-used-twice`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use super::second_users::{SecondUse, second_users};

line_rule! {
    /// Two devices use the same node or drive.
    ///
    /// ## What it reports
    /// Reports a second `-device` on a node that the guest writes, unless both set `share-rw=on`; a second `-device` on
    /// a `-drive`; and a `-device` on a `-drive` that already creates its own device because `if=none` is missing.
    ///
    /// ## Why it matters
    /// Two disks of one guest on one image overwrite each other's data, so QEMU exits at start with
    /// `Permission conflict on node` or, for a `-drive`, `did you need 'if=none' in the drive options?`.
    ///
    /// ## Use instead
    /// Use a separate node for each device. Add `if=none` to a `-drive` that has a `-device`. If the guest handles two
    /// paths to one disk (multipath), set `share-rw=on` on both devices.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda \
    ///   -device virtio-blk-pci,drive=f0,id=vdb
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,share-rw=on \
    ///   -device virtio-blk-pci,drive=f0,id=vdb,share-rw=on
    /// ```
    name: "node-used-twice",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Permission conflict on node", "block.c, bdrv_a_allow_b; 5.2 says: Conflicts with use by"),
        Evidence::refused_by_qemu("did you need 'if=none' in the drive options?", "hw/core/qdev-properties-system.c, set_drive_helper"),
    ],
    supersedes: &["duplicate-disk-source"],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for second in second_users(line) {
        let SecondUse {
            option,
            drive,
            legacy,
            first,
            ..
        } = &second;
        if first.is_some() && second.is_shared {
            continue;
        }
        let name = drive.value.as_str();
        let (message, help) = match first {
            None => (
                format!("the -drive `{name}` already creates a device"),
                "add if=none to the -drive",
            ),
            Some(_) => (
                format!("a second device uses `{name}`"),
                if *legacy {
                    "use -blockdev, and share-rw=on on both devices if the guest shares it; a -drive supports only one device"
                } else {
                    "use a separate node for each device; use share-rw=on on both only if the guest's file system supports sharing"
                },
            ),
        };
        line.refuse(report, *option, drive.span, message, help);
    }
}
