//! `vhost-vdpa-needs-direct`

use vmdisk_facts::Capability;
use vmdisk_fields::phrase;
use vmdisk_model::{BackendSource, CacheMode, Change, DiskField, FieldPath, Protocol};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A vDPA disk has no cache mode that bypasses the host's page cache.
    ///
    /// ## What it reports
    /// Reports `type='vhostvdpa'` with a cache mode that is unset, or is not `none` or `directsync`. libvirt before
    /// 9.8 does not know the type; `unsupported-by-target` reports that.
    ///
    /// ## Why it matters
    /// The device transfers the data itself, past the host's page cache, and QEMU opens it only with
    /// `cache.direct=on`. libvirt refuses the guest.
    ///
    /// ## Use instead
    /// Use `cache='none'`.
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
    name: "vhost-vdpa-needs-direct",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("disk type '…' requires cache mode '…' or '…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDisk"),
    ],
    supersedes: &["cache-implicit"],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // `unsupported-by-target` reports the type for older ones.
    if context.can(Capability::LibvirtVhostVdpa).is_no() {
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
                phrase!("{disk} is a vDPA device, but uses the host's page cache"),
            )
            .label("the device bypasses that cache")
            .remedy(Fix::safe([Change::set(at, CacheMode::None)]));
    }
}
