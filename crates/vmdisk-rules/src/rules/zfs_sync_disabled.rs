//! `zfs-sync-disabled`

use vmdisk_facts::stack::{FlushLoss, StackLayer};
use vmdisk_fields::{command, phrase};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::flushes;

declare_rule! {
    /// The image of a disk is on ZFS with `sync=disabled`, which ignores flushes.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, whose image is on a ZFS dataset or is a ZFS volume with
    /// `sync=disabled`. The rule does not report transient disks, which drop flushes anyway.
    ///
    /// ## Why it matters
    /// With `sync=disabled`, ZFS returns from a flush at once, and writes the data with its next transaction group,
    /// normally within 5 seconds. The pool itself stays consistent. The guest however loses transactions that it has
    /// reported as durable, and a database on several disks can become inconsistent.
    ///
    /// ## Use instead
    /// Run `zfs set sync=standard DATASET`. If flushes are too slow, add a log device to the pool:
    /// `zpool add POOL log DEVICE`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/zfs-async/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/zfs/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/zfs-async/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "zfs-sync-disabled",
    group: Group::DataSafety,
    severity: Severity::Error,
    is_about_host: true,
    evidence: &[
        Evidence::Source("zfsprops(7), sync: `disabled` disables synchronous requests; ZFS ignores the synchronous transaction demands of applications such as databases"),
        Evidence::Source("zfs(4), zfs_txg_timeout: flush dirty data to disk at least every 5 seconds"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for lost in flushes::lost(context, report, &[FlushLoss::ZfsSync], "properties of ZFS") {
        let dataset = match lost.lost.layer {
            StackLayer::FileSystem { filesystem, .. } => {
                filesystem.zfs.value().and_then(|zfs| zfs.dataset.value())
            }
            StackLayer::Device(device) => device.zvol.value().and_then(|zvol| zvol.dataset.value()),
        };
        let dataset = dataset.map_or("DATASET", String::as_str);
        let finding = report.finding(lost.at, phrase!("ZFS ignores flushes of {disk}"));
        finding
            .label("on a dataset with `sync=disabled`")
            .note("after a crash of the host, the writes of the last seconds are missing, although the guest flushed them")
            .help(phrase!(
                "run {command}",
                command = command("zfs set sync=standard", &[dataset]),
            ));
        lost.note_depth(finding);
    }
}
