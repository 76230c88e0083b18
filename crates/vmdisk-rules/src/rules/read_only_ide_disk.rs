//! `read-only-ide-disk`

use vmdisk_model::{Device, DiskField, FieldPath, FrontendKind};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// An IDE or SATA disk is read-only, which those buses do not know.
    ///
    /// ## What it does
    /// Reports disks, not CD drives, on bus `ide` or `sata` that are read-only.
    ///
    /// ## Why it matters
    /// ATA has no way to tell a guest that it must not write. libvirt refuses the domain, and QEMU does not start.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,read-only=on \
    ///   -device ide-hd,drive=f0,id=sda,bus=ide.0
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "read-only-ide-disk",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt("readonly ide disks are not supported", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
            Evidence::refused_by_libvirt("readonly sata disks are not supported", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
            Evidence::Refused {
                by: "QEMU",
                text: "Block node is read-only",
                source: "hw/ide/qdev.c, ide_hd_realize",
            },
            Evidence::Source("libvirt src/qemu/qemu_validate.c: readonly ide disks are not supported"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let is_disk = disk.frontend.effective_device() == Device::Disk;
        if !disk.backend.is_read_only || !is_disk {
            continue;
        }
        let bus = match context.domain.frontend_kind(disk) {
            FrontendKind::Sata => "SATA",
            FrontendKind::Ide => "IDE",
            FrontendKind::VirtioBlk
            | FrontendKind::VirtioScsi
            | FrontendKind::VhostUserBlk
            | FrontendKind::Scsi
            | FrontendKind::Usb
            | FrontendKind::Fdc
            | FrontendKind::Nvme
            | FrontendKind::Sd
            | FrontendKind::Foreign => continue,
        };
        report
            .finding(
                FieldPath::Disk(index, DiskField::ReadOnly),
                format!(
                    "`{}` is read-only and on {bus}, which knows no read-only disk",
                    disk.name()
                ),
            )
            .label("refused there")
            .help("use bus='virtio' or bus='scsi', or make it a CD drive");
    }
}
