//! `mount-nobarrier`

use vmdisk_facts::FsKind;
use vmdisk_facts::stack::{FlushLoss, StackLayer};
use vmdisk_fields::{command, phrase, quoted};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::flushes;

declare_rule! {
    /// The file system of an image is mounted with `nobarrier`, so flushes do not reach the drive.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, whose image is on a file system with the mount option `nobarrier`,
    /// `barrier=0` or `barrier=none`, at any layer: also below an overlay or a loop device. The rule does not report transient disks, which drop flushes
    /// anyway.
    ///
    /// ## Why it matters
    /// The guest flushes to make its journal and its databases durable. QEMU passes the flush on as `fdatasync`, but
    /// the file system does not tell the drive to empty its write cache. After a power failure the last writes can be
    /// missing, in any order, both in the guest and in the file system of the host.
    ///
    /// ## Use instead
    /// Remove the option from `/etc/fstab` and run `mount -o remount,barrier=1 MOUNTPOINT` (on btrfs
    /// `remount,barrier`). A drive or controller with
    /// a battery reports its cache as write-through, and the kernel then sends it no flushes: the option is not needed
    /// there either.
    ///
    /// ## Reported
    /// ```xml,reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/nobarrier/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/over-nobarrier/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/loop1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/nobarrier/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "mount-nobarrier",
    group: Group::DataSafety,
    severity: Severity::Error,
    is_about_host: true,
    evidence: &[
        Evidence::measured("ten times `dd conv=fdatasync`: the device gets 11 flushes, and 0 after `mount -o barrier=0`, which mountinfo shows as nobarrier", "ext4 on a loop device, /sys/block/loop0/stat, Linux 6.18"),
        Evidence::Source("Linux Documentation/admin-guide/ext4.rst, barrier: makes volatile disk write caches safe to use"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for lost in flushes::lost(context, report, &[FlushLoss::NoBarrier], "mount options") {
        let StackLayer::FileSystem {
            mount: Some(mount),
            filesystem,
            ..
        } = lost.lost.layer
        else {
            continue;
        };
        let finding = report.finding(
            lost.at,
            phrase!(
                "flushes of {disk} do not reach the drive: {point} is mounted with {option}",
                point = quoted(mount.point.clone()),
                option = quoted("nobarrier"),
            ),
        );
        // Only ext3 and ext4 have a value.
        let option = match filesystem.kind {
            FsKind::Ext3 | FsKind::Ext4 => "remount,barrier=1",
            _ => "remount,barrier",
        };
        finding
            .label("a power failure can lose data that the guest flushed")
            .help(phrase!(
                "run {command}, and remove the option from /etc/fstab",
                command = command("mount -o", &[option, &mount.point]),
            ));
        lost.note_depth(finding);
    }
}
