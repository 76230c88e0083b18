//! `transient-disk-refused`

use vmdisk_fields::phrase;
use vmdisk_model::{
    BackendSource, Device, Disk, DiskField, FieldPath, Protocol, Switch, TargetBus,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk is transient, but libvirt cannot create an overlay for it.
    ///
    /// ## What it reports
    /// Reports `<transient/>` on a drive without a source, a read-only disk, a source that is not a file, and a CD or
    /// floppy drive or passed-through SCSI device; and `shareBacking='yes'` on buses other than virtio, scsi and usb.
    ///
    /// ## Why it matters
    /// When the guest starts, libvirt creates an overlay file beside the image, and discards it when the guest stops.
    /// Where it cannot, it refuses the guest.
    ///
    /// ## Use instead
    /// Remove `<transient/>`, or use a writable file as the source. For a block device, create the overlay yourself
    /// and discard it afterwards: `qemu-img create -f qcow2 -b DEVICE -F raw OVERLAY`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vg0/a'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <transient/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <transient/>
    /// </disk>
    /// ```
    name: "transient-disk-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("transient disk '…' must not be empty", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskTransient"),
        Evidence::refused_by_libvirt("transient disk '…' must not be read-only", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskTransient"),
        Evidence::refused_by_libvirt("transient disk supported only with 'file' type (…)", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskTransient"),
        Evidence::refused_by_libvirt("transient disk supported only with 'disk' device (…)", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskTransient"),
        Evidence::refused_by_libvirt("disk bus '…' doesn't support transiend disk backing image sharing", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskTransient"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let backend = &disk.backend;
        if !backend.is_transient || matches!(backend.source, BackendSource::VhostUser(_)) {
            continue;
        }
        let Some(what) = obstacle(disk) else {
            continue;
        };
        let at = FieldPath::Disk(index, DiskField::Transient);
        report
            .finding(at, phrase!("{disk} is transient, but {what}", what))
            .label("libvirt cannot create an overlay")
            .help(phrase!(
                "remove {transient}, or use a writable file as the source of a disk",
                transient = at,
            ));
    }
}

/// The reason why libvirt cannot create an overlay beside the image.
fn obstacle(disk: &Disk) -> Option<&'static str> {
    let image = match &disk.backend.source {
        BackendSource::Image(image) => image,
        BackendSource::Empty | BackendSource::VhostUser(_) => return Some("it has no source"),
    };
    if !disk.is_writable() {
        return Some("it is read-only");
    }
    if !matches!(image.protocol, Protocol::File { .. }) {
        return Some("its source is not a file");
    }
    if disk.frontend.effective_device() != Device::Disk {
        return Some("it is another kind of device than a disk");
    }
    let shares = disk.backend.share_backing == Some(Switch::On);
    let can_share = matches!(
        disk.frontend.effective_bus(),
        TargetBus::Virtio | TargetBus::Scsi | TargetBus::Usb
    );
    (shares && !can_share)
        .then_some("only disks on bus virtio, scsi and usb can share its backing image")
}
