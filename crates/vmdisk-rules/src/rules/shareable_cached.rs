//! `shareable-cached`

use vmdisk_model::{BackendSource, CacheMode, Change, DiskField, FieldPath};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity};

declare_rule! {
    /// A disk that several guests write is cached by the host.
    ///
    /// ## What it does
    /// Reports a `<shareable/>` disk the guest can write whose cache mode is written as `writeback`,
    /// `writethrough` or `unsafe`; on a command line also one with `share-rw=on` and no cache mode at all.
    ///
    /// ## Why it matters
    /// Each host that runs one of the guests has a page cache of its own. A guest goes on reading what its own
    /// host cached after another guest has written, and a cluster file system or a database that trusts what it
    /// reads destroys itself. libvirt takes `none` by itself for such a disk if nothing is written; a mode
    /// that is written it takes as it is and starts the guest. QEMU takes `writeback`, whether other guests share
    /// the disk or not.
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
    /// What nobody writes may be cached everywhere.
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/img/tools.img'/>
    ///   <target dev='vdb' bus='virtio'/>
    ///   <readonly/>
    ///   <shareable/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "shareable-cached",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "a guest with shareable and cache='writeback' is defined and starts without a word",
                how: "virsh of libvirt 9.0 with QEMU 7.2",
            },
            Evidence::Source("libvirt docs/formatdomain.rst, shareable: caching should be off for the device"),
            Evidence::Source("libvirt src/qemu/qemu_domain.c, qemuDomainPrepareDiskCachemode: none if nothing is written"),
        ],
        supersedes: &["cache-unsafe", "cache-writethrough"],
        check: check,
    }
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
                format!(
                    "`{}` is shared with other guests and cached by each host (cache='{mode}')",
                    disk.name()
                ),
            )
            .label("goes through the host's page cache")
            .related(
                FieldPath::Disk(index, DiskField::Shareable),
                "other guests write it at the same time",
            )
            .note("a host that cached a block does not see what another host writes to it")
            .help(context.for_taker(
                "write cache='none', which libvirt takes by itself if nothing is written",
                "write cache='none', which QEMU does not take by itself for a shared disk",
            ))
            .fix(Fix::safe([Change::set(at, CacheMode::None.as_wire())]));
    }
}
