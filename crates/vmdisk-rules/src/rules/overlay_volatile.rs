//! `overlay-volatile`

use vmdisk_facts::stack::FlushLoss;
use vmdisk_fields::phrase;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::flushes;

declare_rule! {
    /// The image of a disk is on an overlay with `volatile`, which ignores flushes.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, whose image is on an overlay that is mounted with `volatile`; newer kernels
    /// print `fsync=volatile`. The rule does not report transient disks, which drop flushes anyway.
    ///
    /// ## Why it matters
    /// The kernel returns from `fsync` at once, and nothing of the overlay is written for it. After a crash of the host, any
    /// of the guest's last writes can be missing, in any order, although the guest flushed them. Podman, buildah and
    /// containerd mount the file systems of containers so.
    ///
    /// ## Use instead
    /// Put the image on a volume of the container, or on a file system of the host.
    ///
    /// ## Reported
    /// ```xml,reported,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/volatile/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/overlay/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/volatile/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <transient/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/volatile/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "overlay-volatile",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("of 20 calls of fdatasync none reaches the device; without `volatile` each does", "overlay on ext4 on a loop device, /sys/block/loop0/stat, Linux 6.18"),
        Evidence::Source("Linux Documentation/filesystems/overlayfs.rst, volatile mount"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for lost in flushes::lost(
        context,
        report,
        &[FlushLoss::VolatileOverlay],
        "the overlays",
    ) {
        let finding = report.finding(
            lost.at,
            phrase!(
                "flushes of {disk} are ignored: {layer} is mounted with `volatile`",
                layer = lost.lost.layer.name(),
            ),
        );
        finding
            .label("a crash of the host can lose data that the guest flushed")
            .help("put the image on a volume, or on a file system outside the overlay");
        lost.note_depth(finding);
    }
}
