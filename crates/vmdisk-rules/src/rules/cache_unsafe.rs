//! `cache-unsafe`

use vmdisk_fields::{DiskName, phrase};
use vmdisk_model::{CacheMode, Change, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk that is kept throws away the guest's flushes.
    ///
    /// ## What it does
    /// Reports `cache='unsafe'` on a disk the guest can write and whose data outlives it.
    ///
    /// ## Why it matters
    /// With `unsafe` QEMU opens the image in the page cache and never calls `fdatasync`, whatever the
    /// guest asks for. The guest's file system and database believe that their journals are on disk; a
    /// crash or power cut of the host leaves them in any order, and the guest may not come up again.
    /// It is meant for throw-away disks: an installation that can be repeated, or a `<transient/>` disk.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='unsafe'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='writeback'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='unsafe'/>
    ///   <source file='/srv/build.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <transient/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "cache-unsafe",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "`write; write; flush; write` gives pwrite, pwrite, pwrite and no fdatasync; every other mode flushes",
                how: "strace of qemu-io 7.2 with each cache mode, Linux 6.18",
            },
            Evidence::Source("QEMU docs, system/qemu-block-drivers: cache=unsafe ignores flush requests"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let kept = disk.is_writable() && !disk.backend.is_transient;
        if disk.backend.cache != Some(CacheMode::Unsafe) || !kept {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Cache);
        report
            .finding(at, phrase!("{disk} discards the guest's flushes", disk = DiskName(index)))
            .label("QEMU ignores every flush in this mode")
            .note("after a crash of the host, any of the guest's last writes may be missing, in any order")
            .note("until the guest flushes, writeback is as fast; keep this mode for disks whose data may be lost")
            .remedy(Fix::safe([Change::set(at, CacheMode::Writeback)]));
    }
}
