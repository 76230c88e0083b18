//! `image-on-volatile-filesystem`

use vmdisk_facts::stack::{FlushEffect, FlushLoss, StackLayer};
use vmdisk_fields::phrase;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::flushes;

declare_rule! {
    /// The image is on tmpfs or ramfs: a restart of the host deletes the disk.
    ///
    /// ## What it reports
    /// Reports a disk that the guest writes and that is not `<transient/>`, whose image is on tmpfs, ramfs,
    /// hugetlbfs, zram or a RAM disk, at any layer: also as the file of a loop device. A
    /// loop device whose file is deleted is an error.
    ///
    /// ## Why it matters
    /// These file systems are memory of the host. Their files are gone after a restart, a crash, or an unmount, and no
    /// flush of the guest changes that. A full tmpfs also takes the memory of other guests.
    ///
    /// ## Use instead
    /// Move the image to a file system on a drive. For a disk whose data may be lost, mark it with `<transient/>`, or
    /// allow the rule with the reason.
    ///
    /// ## Reported
    /// ```xml,reported,facts-tmpfs
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/run/build/build1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/loop0'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/zram0'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/loop6'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/run/build/build1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-on-volatile-filesystem",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("a file is gone after `umount` and `mount` of its tmpfs", "tmpfs of Linux 6.18"),
        Evidence::Source("Linux Documentation/filesystems/tmpfs.rst: if you unmount a tmpfs instance, everything stored therein is lost"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let losses = [FlushLoss::Memory, FlushLoss::DeletedFile];
    for lost in flushes::lost(context, report, &losses, "the storage of the images") {
        if lost.lost.effect == FlushEffect::Dropped(FlushLoss::DeletedFile) {
            let device = lost.lost.layer.name();
            let finding = report.finding(
                lost.at,
                phrase!("the file of {device} under {disk} is deleted", device),
            );
            finding
                .severity(Severity::Error)
                .label("its data is gone when the loop device is detached")
                .help("copy the device to an image while it is attached");
            lost.note_depth(finding);
            continue;
        }
        let what = match lost.lost.layer {
            StackLayer::FileSystem { filesystem, .. } => filesystem.kind.name().into_owned(),
            StackLayer::Device(device) => device.name().into_owned(),
        };
        let finding = report.finding(
            lost.at,
            phrase!("the image of {disk} is on {what}, which is memory", what),
        );
        finding
            .label("a restart of the host deletes it")
            .help("move it to a file system on a drive, or mark the disk as transient");
        lost.note_depth(finding);
    }
}
