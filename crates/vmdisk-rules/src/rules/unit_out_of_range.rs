//! `unit-out-of-range`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A disk is at a place that its bus does not have.
    ///
    /// ## What it does
    /// Reports SCSI units above 16383, targets above 255 and channels other than 0 on virtio-scsi, IDE and SATA
    /// ports and units that the machine does not have, NVMe namespaces above 256 and PCI slots above 31, on command
    /// lines.
    ///
    /// ## Why it matters
    /// QEMU does not start, and what it says names the number and not the limit.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device ide-hd,drive=f0,id=sda,bus=ide.6
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device ide-hd,drive=f0,id=sda,bus=ide.5
    /// ```
    pub(super) static RULE = {
        name: "unit-out-of-range",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Bus 'ide.6' not found",
                source: "softmmu/qdev-monitor.c, qbus_find",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "bad scsi device lun: 16384",
                source: "hw/scsi/scsi-bus.c, scsi_qdev_realize",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::UnitOutOfRange);
}
