//! `snapshot-ignored-by-blockdev`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};

line_rule! {
    /// `-snapshot` has no effect on `-blockdev`, so the image is changed.
    ///
    /// ## What it reports
    /// Reports `-snapshot` on a command line with a writable disk whose nodes are written as `-blockdev`.
    ///
    /// ## Why it matters
    /// `-snapshot` puts a temporary overlay on every `-drive`, but not on `-blockdev` nodes. QEMU prints no message.
    /// The guest writes to the image itself, and what was meant as a trial run changes it permanently.
    ///
    /// ## Use instead
    /// Create the overlay yourself and use it as the disk: `qemu-img create -f qcow2 -b IMAGE -F FORMAT OVERLAY`.
    /// Alternatively use `-drive`.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -snapshot \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -snapshot \
    ///   -drive file=/srv/a.img,format=raw,if=virtio
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -snapshot \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.iso,read-only=on \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -device scsi-cd,drive=f0,bus=scsi0.0
    /// ```
    name: "snapshot-ignored-by-blockdev",
    group: Group::DataSafety,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("a byte written by the guest is in the image afterwards; with -drive it is not", "QEMU 5.2, 7.2, 10.0 and 11.1"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let Some(snapshot) = line
        .index
        .options()
        .iter()
        .position(|option| option.name == "snapshot")
    else {
        return;
    };
    let kept: Vec<String> = line
        .domain()
        .disks
        .iter()
        .enumerate()
        .filter(|(nth, disk)| {
            let top = line.top_node(*nth);
            disk.is_writable() && top.is_some_and(|option| !line.index.is_drive(option))
        })
        .map(|(_, disk)| format!("`{}`", disk.name()))
        .collect();
    if kept.is_empty() {
        return;
    }
    let span = line.index.span(snapshot);
    let message = format!(
        "-snapshot has no effect on {}: the guest writes to the image itself",
        kept.join(", ")
    );
    let help = "create an overlay of the image (qemu-img create -f qcow2 -b IMAGE -F FORMAT OVERLAY), or use -drive";
    line.refuse(report, snapshot, span, message, help);
}
