//! `vhost-vdpa-needs-direct`

use vmdisk_facts::Version;
use vmdisk_model::{BackendSource, CacheMode, Change, DiskField, FieldPath, Protocol};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A vDPA device is used without a cache mode that goes around the host's cache.
    ///
    /// ## What it does
    /// Reports a disk of the type vhostvdpa whose cache mode is not written, or is neither `none` nor `directsync`.
    ///
    /// ## Why it matters
    /// The device moves the data itself and knows nothing of the host's page cache, and QEMU's driver for it opens
    /// only with `cache.direct=on`. libvirt refuses the guest, from 9.8 on, which first knew the type.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='vhostvdpa' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/vhost-vdpa-0'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='vhostvdpa' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vhost-vdpa-0'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='vhostvdpa' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vhost-vdpa-0'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "vhost-vdpa-needs-direct",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("disk type '…' requires cache mode '…' or '…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDisk"),
        ],
        supersedes: &["cache-implicit"],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    // Older ones do not know the type, which is `unsupported-by-target`'s business.
    if context.libvirt_is_before(Version(9, 8, 0)) == Some(true) {
        return;
    }
    for (index, disk) in context.disks() {
        let is_vdpa = match &disk.backend.source {
            BackendSource::Image(image) => matches!(image.protocol, Protocol::VhostVdpa { .. }),
            BackendSource::VhostUser(_) | BackendSource::Empty => false,
        };
        let is_direct = match disk.backend.cache {
            Some(CacheMode::None | CacheMode::Directsync) => true,
            Some(CacheMode::Writeback | CacheMode::Writethrough | CacheMode::Unsafe) | None => {
                false
            }
        };
        if !is_vdpa || is_direct {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Cache);
        report
            .finding(
                at,
                format!(
                    "`{}` is a vDPA device behind the host's page cache",
                    disk.name()
                ),
            )
            .label("the device knows nothing of that cache")
            .note("libvirt refuses the guest for it")
            .help("write cache='none'")
            .fix(Fix::safe([Change::set(at, CacheMode::None)]));
    }
}
