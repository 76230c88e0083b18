//! `read-only-ide-disk`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Device, DiskField, FieldPath, FrontendKind, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// An IDE or SATA disk is read-only, which these buses do not support.
    ///
    /// ## What it reports
    /// Reports read-only disks on bus `ide` or `sata`. CD drives are not reported.
    ///
    /// ## Why it matters
    /// ATA has no write protection for disks. libvirt refuses the domain, and QEMU does not start.
    ///
    /// ## Use instead
    /// Use `bus='virtio'` or `bus='scsi'`; the guest sees another controller and may need its driver. Alternatively,
    /// attach the image as a CD drive.
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
    name: "read-only-ide-disk",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("readonly ide disks are not supported", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("readonly sata disks are not supported", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_qemu("Block node is read-only", "block.c, bdrv_node_refresh_perm (7.2 and later), bdrv_check_perm (5.2)"),
        Evidence::Source("libvirt src/qemu/qemu_validate.c: readonly ide disks are not supported"),
    ],
    check: Model(check),
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
            _ => continue,
        };
        let on_bus = FieldPath::Disk(index, DiskField::TargetBus);
        report
            .finding(
                FieldPath::Disk(index, DiskField::ReadOnly),
                phrase!("{disk} is read-only, which {bus} does not support", bus,),
            )
            .label(phrase!("not supported on {bus}", bus))
            .help(phrase!(
                "use {virtio} or {scsi}, or make it a CD drive",
                virtio = setting(on_bus, TargetBus::Virtio),
                scsi = setting(on_bus, TargetBus::Scsi),
            ));
    }
}
