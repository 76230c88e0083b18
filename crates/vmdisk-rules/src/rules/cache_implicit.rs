//! `cache-implicit`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{CacheMode, Change, Device, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk does not set its cache mode.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write and that does not set `cache`. The disk works without it.
    ///
    /// ## Why it matters
    /// Without `cache`, QEMU uses `writeback`: the host caches data that the guest caches too. Many administrators
    /// expect `none`, which several management tools set. QEMU before 1.2 used `writethrough`, and libvirt uses `none`
    /// for a shareable disk. So the file does not show which mode is used, or whether it was chosen.
    ///
    /// ## Use instead
    /// Write `cache='writeback'` to keep the present behaviour, or `cache='none'` to bypass the host's page cache.
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
    /// For a shareable disk libvirt uses `none`, the only safe mode:
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
    name: "cache-implicit",
    group: Group::Clarity,
    severity: Severity::Pedantic,
    evidence: &[
        Evidence::Source("QEMU qemu-options.hx, -drive cache: the default mode is writeback (since 1.2; writethrough before)"),
        Evidence::Source("libvirt src/qemu/qemu_domain.c, qemuDomainPrepareDiskCachemode: none for a shareable disk that can be written"),
    ],
    check: Model(check),
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
                phrase!("{disk} sets no cache mode; QEMU uses writeback"),
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
