//! `serial-too-long`

use vmdisk_facts::Version;
use vmdisk_model::{DiskField, FieldPath, FrontendKind};
use vmdisk_rule::serial;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use super::line::{Line, base_of};
use crate::syntax::properties::Properties;

declare_rule! {
    /// The serial number of a disk is longer than the device can show.
    ///
    /// ## What it does
    /// Reports serial numbers of more than 20 bytes on virtio, IDE, SATA and NVMe disks, and of more than 36 on
    /// SCSI disks; on command lines of more than 20 on SCSI disks without a `device_id`, which QEMU makes of it.
    ///
    /// ## Why it matters
    /// The guest sees the first 20 bytes, and QEMU says nothing. Names under `/dev/disk/by-id` are made of those. Two
    /// disks that show the same bytes are reported by `serial-twice`. A UUID has 36 characters, so it fits SCSI and
    /// nothing else. QEMU refuses more than 36 bytes on SCSI disks since 10.0, and more than 20 on NVMe disks since
    /// 11.1, which is an error.
    ///
    /// There is no fix: the guest would see no change, and the program that manages it (oVirt and OpenStack write the
    /// id of the volume here) would lose the rest of its id.
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
    pub(crate) static RULE = {
        name: "serial-too-long",
        group: Group::Clarity,
        severity: Severity::Advice,
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
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let kind = context.domain.frontend_kind(disk);
        let (Some(serial), Some(most)) = (&disk.frontend.serial, serial::shown_bytes(kind)) else {
            continue;
        };
        if serial.len() <= most {
            continue;
        }
        let finding = report.finding(
            FieldPath::Disk(index, DiskField::Serial),
            format!(
                "the serial number of `{}` has {} bytes, and a {} disk shows {most}",
                disk.name(),
                serial.len(),
                kind.name()
            ),
        );
        finding
            .label(format!("the guest sees `{}`", serial::shown(kind, serial)))
            .help(format!(
                "use at most {most} bytes, unique to each disk, unless another program finds the disk by the whole of it"
            ));
        if kind == FrontendKind::Nvme {
            let qemu = context.target.qemu;
            finding
                .note("QEMU 11.1 and later refuse it")
                .severity(match qemu {
                    Some(qemu) if qemu >= Version(11, 1, 0) => Severity::Error,
                    Some(_) => Severity::Advice,
                    None => Severity::Warning,
                });
        }
        if most == serial::SCSI_BYTES {
            finding
                .note("QEMU 10.0 and later refuse it")
                .severity(Severity::Error);
        }
    }
}

pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        if matches!(base_of(driver), "scsi-hd" | "scsi-cd") {
            check_scsi_serial(line, report, option, device);
        }
    }
}

/// Without a `device_id` QEMU makes one of the serial number, and it is shorter.
fn check_scsi_serial(line: &Line<'_>, report: &mut Report, option: usize, device: &Properties) {
    let Some(serial) = device
        .peek("serial")
        .filter(|_| device.peek("device_id").is_none())
    else {
        return;
    };
    let bytes = serial.value.as_str().len();
    if (21..=36).contains(&bytes) {
        let message = format!(
            "the serial number has {bytes} bytes and is the device_id too, of which QEMU 10.0 and later take 20"
        );
        let help = "write device_id beside it, of at most 20 bytes, or shorten the serial number";
        line.refuse(report, option, serial.span, message, help)
            .severity(Severity::Warning);
    }
}
