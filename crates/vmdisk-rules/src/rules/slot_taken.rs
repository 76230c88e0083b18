//! `slot-taken`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// Two devices are at one place, or the bus has no place left.
    ///
    /// ## What it does
    /// Reports two disks at one SCSI target and unit, one IDE or SATA port, one NVMe namespace or one PCI slot; a
    /// second device in a PCI Express root port; more IDE or SATA disks without a `bus` than its first bus has units, 1 on q35 and 2 on pc; and more than
    /// 30 devices on the PCI bus of a PC. On command lines.
    ///
    /// ## Why it matters
    /// QEMU does not start; with a second device in a root port, before 10.0, it does, and the guest never sees
    /// that device.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/b.img \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0,scsi-id=0,lun=0 \
    ///   -device scsi-hd,drive=f1,id=sdb,bus=scsi0.0,scsi-id=0,lun=0
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/b.img \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0,scsi-id=0,lun=0 \
    ///   -device scsi-hd,drive=f1,id=sdb,bus=scsi0.0,scsi-id=0,lun=1
    /// ```
    pub(super) static RULE = {
        name: "slot-taken",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "lun already used by",
                source: "hw/scsi/scsi-bus.c, scsi_bus_check_address",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "no slot/function available for virtio-blk-pci",
                source: "hw/pci/pci.c, do_pci_register_device",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::SlotTaken);
}
