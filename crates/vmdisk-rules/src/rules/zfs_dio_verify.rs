//! `zfs-dio-verify`

use vmdisk_facts::{DirectIoEffect, Fact, FsKind};
use vmdisk_fields::{command, phrase};
use vmdisk_model::{Disk, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host;
use crate::remedy;

declare_rule! {
    /// A disk writes with `O_DIRECT` to ZFS 2.3 or later, which fails a write whose data changes meanwhile.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, with `cache='none'` or `directsync`, on a ZFS dataset where direct I/O is in
    /// use: ZFS 2.3 or later, without `direct=disabled`. ZFS volumes are not reported, because they have no direct I/O.
    ///
    /// ## Why it matters
    /// With `O_DIRECT`, ZFS writes directly from the guest's memory, and computes the checksum from it. Guests may
    /// change a page while it is written: Linux does this for swap, Windows for its page file and NTFS. ZFS verifies
    /// the checksum after the write (`zfs_vdev_direct_write_verify`, on by default on Linux). If it does not match, the
    /// request fails with EIO: QEMU passes the error to the guest, or pauses the guest. Without the check, the block
    /// would have a wrong checksum. Requests that are not aligned to the record size go through the ARC.
    ///
    /// ## Use instead
    /// Run `zfs set direct=disabled DATASET`, which treats `O_DIRECT` as ZFS before 2.3 did, or use `cache='writeback'`.
    /// Both use the ARC; flushes of the guest are honoured.
    ///
    /// ## Reported
    /// ```xml,reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/zfs/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,consent,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/zfs/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/zfs-async/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/zfs/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/zfs/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "zfs-dio-verify",
    group: Group::DataSafety,
    severity: Severity::Advice,
    evidence: &[
        Evidence::Source("zfs(4), zfs_vdev_direct_write_verify: a write whose buffer was changed meanwhile fails with EIO; 1 by default on Linux"),
        Evidence::Source("zfsprops(7), direct: standard, always, disabled (2.3); `disabled` is the behaviour of 2.2 and before"),
        Evidence::Source("openzfs issue 18610 and pull request 18794: verification errors of reads with guests on direct I/O"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    if context.host.is_none() {
        without_facts(context, report);
        return;
    }
    let may_be_on_zfs = |_: &Disk, path: &str| host::may_be_on(&FsKind::Zfs, context, path);
    let found = host::written_directly(context, report, DiskField::Cache, may_be_on_zfs);
    for (index, disk, path, direct) in found {
        let filesystem = context.host.map(|facts| facts.filesystem_of(path));
        let Some(Fact::Known(filesystem)) = filesystem else {
            continue;
        };
        let is_direct = matches!(direct.verdict, DirectIoEffect::Direct);
        if filesystem.kind != FsKind::Zfs || !is_direct {
            continue;
        }
        let dataset = filesystem.zfs.value().and_then(|zfs| zfs.dataset.value());
        let dataset = dataset.map_or("DATASET", String::as_str);
        let (buffered, changes) = remedy::without_direct(index, disk);
        let finding = report.finding(
            FieldPath::Disk(index, DiskField::Cache),
            phrase!(
                "{disk} uses O_DIRECT ({asked}) on ZFS, which fails writes whose data changes meanwhile",
                asked = remedy::how_direct_is_asked(index, disk),
            ),
        );
        finding
            .label("the guest can get I/O errors")
            .note(host::because(path, &direct))
            .confidence(host::confidence(&direct))
            .help(phrase!(
                "run {command}, or use {buffered}",
                command = command("zfs set direct=disabled", &[dataset]),
                buffered,
            ));
        if let Some(changes) = changes {
            finding.fix(Fix::needs_consent(changes));
        }
    }
}

/// Reports once that nothing is known of the file systems.
fn without_facts(context: &Context<'_>, report: &mut Report) {
    let mut kept = host::kept(context);
    if let Some((index, ..)) = kept.find(|(_, disk, ..)| disk.backend.is_direct()) {
        let at = FieldPath::Disk(index, DiskField::Cache);
        host::facts(context, report, at, "what O_DIRECT does");
    }
}
