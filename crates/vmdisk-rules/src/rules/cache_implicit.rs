//! `cache-implicit`

use vmdisk_fields::{DiskName, phrase, setting};
use vmdisk_model::{CacheMode, Change, Device, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk leaves its cache mode to QEMU.
    ///
    /// ## What it does
    /// Advises to write `cache=` on a disk the guest can write. Nothing is wrong with the disk.
    ///
    /// ## Why it matters
    /// QEMU takes `writeback`: the host caches what the guest caches already, and live migration asks
    /// questions. Many take `none` for the default, older QEMU took `writethrough`, and libvirt itself
    /// takes `none` for a shareable disk. A reader of the file cannot tell whether the choice was made.
    /// Writing `writeback` changes nothing and says it.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='writeback'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// For a shareable disk libvirt makes the choice, and it is the only right one.
    /// ```xml,not-reported
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='vdb' bus='virtio'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/iso/install.iso'/>
    ///   <target dev='sda' bus='sata'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "cache-implicit",
        group: Group::Clarity,
        severity: Severity::Advice,
        since: "0.1.0",
        evidence: &[
            Evidence::Source("QEMU qemu-options.hx, -drive cache: the default mode is writeback (since 1.2; writethrough before)"),
            Evidence::Source("libvirt src/qemu/qemu_domain.c, qemuDomainPrepareDiskCachemode: none for a shareable disk that can be written"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, _image) in context.images() {
        let is_left_open = disk.backend.cache.is_none()
            && disk.is_writable()
            && disk.frontend.effective_device() == Device::Disk;
        if !is_left_open || disk.backend.is_shareable {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Cache);
        report
            .finding(
                at,
                phrase!("{disk} sets no cache mode; QEMU uses writeback", disk = DiskName(index)),
            )
            .label(phrase!("{cache} is not set here", cache = at))
            .help(phrase!(
                "use {writeback} to keep what happens now, or {none} to bypass the host's page cache",
                writeback = setting(at, CacheMode::Writeback),
                none = setting(at, CacheMode::None),
            ))
            .fix(Fix::safe([Change::set(at, CacheMode::Writeback)]));
    }
}
