//! `shareable-cached`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{BackendSource, CacheMode, Change, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk shared by several guests is cached by the host.
    ///
    /// ## What it reports
    /// Reports a writable `<shareable/>` disk with cache mode `writeback`, `writethrough` or `unsafe`; on a command
    /// line also a disk with `share-rw=on` and no cache mode.
    ///
    /// ## Why it matters
    /// Each host that runs one of the guests has its own page cache. A guest keeps reading what its host cached after
    /// another guest has written, and a cluster file system or database that trusts these reads corrupts its data.
    /// libvirt uses `none` for a shareable disk without a cache mode, but accepts any mode that is set. QEMU uses
    /// `writeback` by default, also for shared disks.
    ///
    /// ## Use instead
    /// Use `cache='none'`. Reads of the guests then reach the storage instead of the host's memory.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='vdb' bus='virtio'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='vdb' bus='virtio'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -drive file=/dev/sdb,format=raw,if=none,id=b -device virtio-blk-pci,drive=b,share-rw=on
    /// ```
    /// ```args,fixed
    /// qemu-system-x86_64 -drive file=/dev/sdb,format=raw,if=none,id=b,cache=none -device virtio-blk-pci,drive=b,share-rw=on
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='vdb' bus='virtio'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    /// A read-only disk can be cached on every host:
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/img/tools.img'/>
    ///   <target dev='vdb' bus='virtio'/>
    ///   <readonly/>
    ///   <shareable/>
    /// </disk>
    /// ```
    name: "shareable-cached",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("a guest with shareable and cache='writeback' is defined and starts without a warning", "virsh of libvirt 9.0 with QEMU 7.2"),
        Evidence::Source("libvirt docs/formatdomain.rst, shareable: caching should be off for the device"),
        Evidence::Source("libvirt src/qemu/qemu_domain.c, qemuDomainPrepareDiskCachemode: none if no mode is set"),
    ],
    supersedes: &["cache-unsafe", "cache-writethrough"],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let is_shared = disk.backend.is_shareable && disk.is_writable();
        if !is_shared || matches!(disk.backend.source, BackendSource::VhostUser(_)) {
            continue;
        }
        let mode = match disk.backend.cache {
            Some(mode @ (CacheMode::Writeback | CacheMode::Writethrough | CacheMode::Unsafe)) => {
                mode
            }
            Some(CacheMode::None | CacheMode::Directsync) | None => continue,
        };
        let at = FieldPath::Disk(index, DiskField::Cache);
        report
            .finding(
                at,
                phrase!(
                    "{disk} is shared with other guests, and each host caches it: {cache}",
                    cache = setting(at, mode),
                ),
            )
            .label("uses the host's page cache")
            .related(
                FieldPath::Disk(index, DiskField::Shareable),
                "other guests write it at the same time",
            )
            .note("a host with a cached block does not see another host's write to it")
            .note(context.for_consumer(
                "libvirt uses `none` for a shareable disk that sets no mode",
                "QEMU uses writeback by default, also for a shared disk",
            ))
            .remedy(Fix::safe([Change::set(at, CacheMode::None)]));
    }
}
