//! `serial-too-long`

use vmdisk_facts::{Answer, Capability, Target};
use vmdisk_model::{DiskField, FieldPath, FrontendKind};
use vmdisk_rule::serial;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity};

use super::line::{Line, base_of, line_rule};
use crate::members::Members;

line_rule! {
    /// The serial number of a disk is too long and gets truncated.
    ///
    /// ## What it reports
    /// Reports serial numbers of more than 20 bytes on virtio, IDE, SATA and NVMe disks, and of more than 36 bytes on
    /// SCSI disks. On command lines it also reports more than 20 bytes on SCSI disks without a `device_id`, which QEMU
    /// derives from the serial number.
    ///
    /// ## Why it matters
    /// The guest sees only the first 20 bytes, and QEMU prints no message. The names in `/dev/disk/by-id` consist of
    /// these bytes. A UUID has 36 characters, so it fits only SCSI. OpenStack, oVirt and other managers write the id
    /// of the volume here; a UUID is not reported except on NVMe, because its first 20 characters are as unique as it is. Two
    /// disks whose first 20 bytes are equal are reported by `serial-twice`. QEMU 9.1 and later refuse more than 36 bytes on SCSI disks
    /// (`The serial number can't be longer than 36 characters`), and QEMU 11.1 more than 20 bytes on NVMe disks: both
    /// are errors. Versions between 10.0 and 11.1 were not tried with NVMe disks; for them, and without a version, it is a
    /// warning.
    ///
    /// ## Use instead
    /// Use at most 20 bytes, unique to each disk. There is no fix: a shorter serial number changes nothing for the
    /// guest, but the management software would lose the rest of its volume id. If it needs the whole id, keep it and
    /// allow this finding, or use SCSI.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <serial>warehouse-7-rack-12-disk-3</serial>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,serial=warehouse-7-rack-12-disk-3
    /// ```
    ///
    /// ## Not reported
    /// A UUID, as managers write it:
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <serial>8a7e1a4c-5a0b-4a57-9a6c-1f7d0b1c2d3e</serial>
    /// </disk>
    /// ```
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
    name: "serial-too-long",
    group: Group::Clarity,
    severity: Severity::Advice,
    evidence: &[
        Evidence::refused_by_qemu("The serial number can't be longer than 36 characters", "hw/scsi/scsi-disk.c, scsi_realize (9.1)"),
        Evidence::measured("virtio-blk, IDE and NVMe up to 10.0 cut it after 20 bytes and say nothing", "QEMU 5.2, 7.2, 10.0 and 11.1"),
    ],
    check: Model(check), Text(check_line),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let kind = context.domain.frontend_kind(disk);
        let (Some(serial), Some(most)) = (&disk.frontend.serial, serial::shown_bytes(kind)) else {
            continue;
        };
        // OpenStack, oVirt and others write the identifier of the volume; `serial-twice` compares what is left of it.
        let is_volume_id = serial::is_uuid(serial) && kind != FrontendKind::Nvme;
        if serial.len() <= most || is_volume_id {
            continue;
        }
        let finding = report.finding(
            FieldPath::Disk(index, DiskField::Serial),
            format!(
                "the serial number of `{}` has {} bytes, but a {} disk shows only {most}",
                disk.name(),
                serial.len(),
                kind.name()
            ),
        );
        finding
            .label(format!("the guest sees `{}`", serial::shown(kind, serial)))
            .help(format!(
                "use at most {most} bytes, unique to each disk, unless another program identifies the disk by the full serial number"
            ));
        if kind == FrontendKind::Nvme {
            let severity = severity(context.target, Capability::NvmeSerialChecked);
            finding
                .note("QEMU 11.1 and later refuse it")
                .severity(severity);
        }
        if most == serial::SCSI_BYTES {
            let severity = severity(context.target, Capability::ScsiSerialChecked);
            finding
                .note("QEMU 9.1 and later refuse it")
                .severity(severity);
        }
    }
}

/// How bad a serial number is that some releases refuse, and others cut.
fn severity(target: &Target, refused: Capability) -> Severity {
    match target.can(refused) {
        Answer::Yes(_) => Severity::Error,
        Answer::No(_) => Severity::Advice,
        Answer::Unknown => Severity::Warning,
    }
}

pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        if matches!(base_of(driver), "scsi-hd" | "scsi-cd") {
            check_scsi_serial(line, report, option, device);
        }
    }
}

/// Without a `device_id` QEMU derives one from the serial number, with a lower limit.
fn check_scsi_serial(line: &Line<'_>, report: &mut Report, option: usize, device: Members<'_>) {
    let Some(serial) = device
        .get("serial")
        .filter(|_| device.get("device_id").is_none())
    else {
        return;
    };
    let bytes = serial.value.as_str().len();
    if (21..=36).contains(&bytes) {
        let message = format!(
            "the serial number has {bytes} bytes and is also the device_id, which QEMU 9.1 and later limit to 20"
        );
        let help = "add a device_id of at most 20 bytes, or shorten the serial number";
        line.refuse(report, option, serial.span, message, help)
            .severity(severity(line.context.target, Capability::ScsiSerialChecked));
    }
}
