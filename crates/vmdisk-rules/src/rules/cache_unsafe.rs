//! `cache-unsafe`

use vmdisk_fields::phrase;
use vmdisk_model::{CacheMode, Change, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A persistent disk uses `cache='unsafe'`, which ignores flushes.
    ///
    /// ## What it reports
    /// Reports `cache='unsafe'` on a disk that the guest can write and that is not transient.
    ///
    /// ## Why it matters
    /// With `unsafe`, QEMU never calls `fdatasync`, even if the guest requests a flush. The file system and the
    /// databases of the guest rely on flushes to order their journals. After a crash or power failure of the host, any
    /// of the last writes can be missing, in any order, and the guest may not boot. While the host runs, nothing
    /// shows it. The mode is meant for disposable disks, such as a repeatable installation or a `<transient/>` disk.
    ///
    /// ## Use instead
    /// Use `cache='writeback'`, which is as fast until the guest flushes. If the data may be lost, allow this finding
    /// with the reason.
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
    /// ```xml,reported,hidden,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='unsafe'/>
    ///   <source file='/srv/nobarrier/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```xml,reported,hidden,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='unsafe'/>
    ///   <source file='/srv/zfs-async/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```xml,reported,hidden,facts-layers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='unsafe'/>
    ///   <source file='/srv/volatile/web1.img'/>
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
    name: "cache-unsafe",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("`write; write; flush; write` gives pwrite, pwrite, pwrite and no fdatasync; every other mode flushes", "strace of qemu-io 7.2 with each cache mode, Linux 6.18"),
        Evidence::Source("QEMU docs, system/invocation, -drive cache: unsafe is cache.no-flush=on; qapi/block-core.json, no-flush: ignore any flush requests for the device"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let kept = disk.is_writable() && !disk.backend.is_transient;
        if disk.backend.cache != Some(CacheMode::Unsafe) || !kept {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Cache);
        report
            .finding(at, phrase!("{disk} discards the guest's flushes"))
            .label("QEMU ignores every flush in this mode")
            .note("after a crash of the host, any of the guest's last writes may be missing, in any order")
            .note("until the guest flushes, writeback is as fast; keep this mode for disks whose data may be lost")
            .remedy(Fix::safe([Change::set(at, CacheMode::Writeback)]));
    }
}
