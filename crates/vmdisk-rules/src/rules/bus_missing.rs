//! `bus-missing`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A device hangs on a bus that nothing makes.
    ///
    /// ## What it does
    /// Reports disk devices on a command line without the controller they need: SCSI disks without a SCSI
    /// controller, USB disks without a USB controller, NVMe namespaces without `nvme`, floppies on q35 without
    /// `isa-fdc`; virtio devices of the wrong transport; a `bus` that no device has; and `-drive if=scsi` on a PC.
    ///
    /// ## Why it matters
    /// QEMU adds no controller by itself, as libvirt does, and does not start.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device scsi-hd,drive=f0,id=sda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0
    /// ```
    pub(super) static RULE = {
        name: "bus-missing",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "No 'SCSI' bus found for device 'scsi-hd'",
                source: "softmmu/qdev-monitor.c, qdev_device_add",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "Bus 'scsi0.0' not found",
                source: "softmmu/qdev-monitor.c, qbus_find",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::BusMissing);
}
