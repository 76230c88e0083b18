//! `serial-too-long`

use std::collections::HashMap;

use vmdisk_model::{Change, DiskField, FieldPath, FrontendKind};
use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// The serial number of a disk is longer than the device can show.
    ///
    /// ## What it does
    /// Reports serial numbers of more than 20 bytes on virtio, IDE, SATA and NVMe disks, and of more than 36 on
    /// SCSI disks; on command lines of more than 20 on SCSI disks without a `device_id`, which QEMU makes of it.
    ///
    /// ## Why it matters
    /// The guest sees the first 20 bytes, without a word from QEMU; names under `/dev/disk/by-id` are made of
    /// those, and disks whose serial numbers differ only behind them get one name. SCSI disks with more than 36
    /// bytes are refused since QEMU 10.0, and NVMe disks with more than 20 since 11.1. A UUID has 36 characters, so
    /// it fits SCSI and nothing else.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <serial>8a7e1a4c-5a0b-4a57-9a6c-1f7d0b1c2d3e</serial>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <serial>8a7e1a4c-5a0b-4a57-9</serial>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,serial=8a7e1a4c-5a0b-4a57-9a6c-1f7d0b1c2d3e
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <serial>web1-root</serial>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='scsi'/>
    ///   <serial>8a7e1a4c-5a0b-4a57-9a6c-1f7d0b1c2d3e</serial>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "serial-too-long",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "The serial number can't be longer than 36 characters",
                source: "hw/scsi/scsi-disk.c, scsi_realize (10.0)",
            },
            Evidence::Measured {
                figures: "virtio-blk, IDE and NVMe up to 10.0 cut it after 20 bytes and say nothing",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

/// What a device shows of a serial number, in bytes.
const fn most(kind: FrontendKind) -> Option<usize> {
    match kind {
        FrontendKind::VirtioBlk | FrontendKind::Sata | FrontendKind::Ide | FrontendKind::Nvme => {
            Some(20)
        }
        FrontendKind::VirtioScsi | FrontendKind::Scsi | FrontendKind::Usb => Some(36),
        FrontendKind::VhostUserBlk
        | FrontendKind::Fdc
        | FrontendKind::Sd
        | FrontendKind::Foreign => None,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::SerialTooLong);
    let mut shown: HashMap<&str, usize> = HashMap::new();
    for (index, disk) in context.disks() {
        let kind = context.domain.frontend_kind(disk);
        let (Some(serial), Some(most)) = (disk.frontend.serial.as_deref(), most(kind)) else {
            continue;
        };
        let at = FieldPath::Disk(index, DiskField::Serial);
        // A character that would be cut in two is left out.
        let end = (0..=most.min(serial.len()))
            .rev()
            .find(|end| serial.is_char_boundary(*end))
            .unwrap_or(0);
        let first = &serial[..end];
        let other = shown.insert(first, index).filter(|_| serial.len() > most);
        if serial.len() <= most {
            continue;
        }
        let name = disk.name();
        let is_scsi = most == 36;
        let finding = report.finding(
            at,
            format!(
                "the serial number of `{name}` has {} bytes, and a {} disk shows {most}",
                serial.len(),
                kind.name()
            ),
        );
        finding
            .label(format!("the guest sees `{first}`"))
            .help(format!(
                "write at most {most} bytes, of which all differ between disks"
            ));
        if let Some(other) = other {
            finding.related(
                FieldPath::Disk(other, DiskField::Serial),
                "the guest sees the same of this one",
            );
        }
        if is_scsi {
            finding
                .note("QEMU 10.0 and later refuse it")
                .severity(Severity::Error);
        } else {
            // The guest sees no change.
            finding.fix(Fix::safe([Change::set(at, first)]));
        }
    }
}
