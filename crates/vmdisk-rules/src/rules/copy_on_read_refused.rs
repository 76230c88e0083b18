//! `copy-on-read-refused`

use vmdisk_fields::phrase;
use vmdisk_model::{BackendSource, Change, Device, DiskField, FieldPath, Switch};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk enables copy-on-read, but its image cannot be written.
    ///
    /// ## What it reports
    /// Reports `copy_on_read` on read-only disks, on CD and floppy drives, and on SCSI devices of the host
    /// (`device='lun'`).
    ///
    /// ## Why it matters
    /// Copy-on-read copies each block that the guest reads from the backing image into the top image, so the top image
    /// must be writable. libvirt refuses to define the guest with
    /// `copy_on_read is not compatible with read-only disk 'vda'`, or `is not supported with removable disk` for
    /// drives. It often happens when `<readonly/>` is added to a disk.
    ///
    /// ## Use instead
    /// Remove `copy_on_read`. To fetch all data from a slow backing image once, use a writable overlay, or copy the
    /// data while the guest runs: `virsh blockpull GUEST TARGET --wait`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' copy_on_read='on'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' copy_on_read='on'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "copy-on-read-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("copy_on_read is not compatible with read-only disk '…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("copy_on_read is not supported with removable disk '…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("copy_on_read is not compatible with 'lun' disk '…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        if disk.backend.copy_on_read != Some(Switch::On)
            || matches!(disk.backend.source, BackendSource::VhostUser(_))
        {
            continue;
        }
        let what = match disk.frontend.effective_device() {
            Device::Cdrom | Device::Floppy => "the drive has removable media",
            Device::Lun => "the disk is a SCSI unit of the host",
            Device::Disk if disk.backend.is_read_only => "the disk is read-only",
            Device::Disk => continue,
        };
        let at = FieldPath::Disk(index, DiskField::CopyOnRead);
        report
            .finding(at, phrase!("{disk} enables copy-on-read, but {what}", what))
            .label("the image cannot be written")
            .remedy(Fix::safe([Change::remove(at)]));
    }
}
