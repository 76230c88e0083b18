//! `vhost-user-option-refused`

use vmdisk_fields::{self as fields, DISK_FIELDS, phrase, setting};
use vmdisk_model::{BackendSource, Disk, DiskField, FieldPath, Fields, Snapshot, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk that a vhost-user daemon serves has options that only QEMU's block layer can apply.
    ///
    /// ## What it reports
    /// Reports what libvirt refuses on `type='vhostuser'`: a bus other than virtio, a snapshot mode other than `no`,
    /// and options of QEMU's block layer, such as the cache mode, discard, limits and the serial number.
    ///
    /// ## Why it matters
    /// QEMU does not see the requests of such a disk: the daemon has its own cache, limits and identity. libvirt
    /// refuses the guest, and its message names one option at a time.
    ///
    /// ## Use instead
    /// Remove the option, and configure it in the daemon. With `qemu-storage-daemon`, for example, the cache mode is
    /// `cache.direct` of its `--blockdev`, and the export decides whether the disk is `writable`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='vhostuser' device='disk' snapshot='no'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source type='unix' path='/run/a.sock'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='vhostuser' device='disk' snapshot='no'>
    ///   <driver name='qemu' type='raw' queues='4'/>
    ///   <source type='unix' path='/run/a.sock'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "vhost-user-option-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("vhostuser disk supports only virtio bus", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("only snapshot=no is supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("cache is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("error_policy is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("io is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("ioeventfd is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("copy_on_read is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("discard is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("iothread is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("detect_zeroes is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("metadata_cache is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("iotune is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("readonly is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("shareable is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("transient is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("serial is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("wwn is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("vendor is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("product is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("geometry is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("blockio is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let BackendSource::VhostUser(socket) = &disk.backend.source else {
            continue;
        };
        let bus = disk.frontend.effective_bus();
        let bus_at = FieldPath::Disk(index, DiskField::TargetBus);
        if bus != TargetBus::Virtio {
            report
                .finding(
                    bus_at,
                    phrase!(
                        "{disk} is served by a vhost-user daemon, but is on bus {bus}",
                        bus = bus.as_str(),
                    ),
                )
                .label("vhost-user only supports virtio")
                .help(phrase!(
                    "use {virtio}",
                    virtio = setting(bus_at, TargetBus::Virtio)
                ));
        }
        let snapshot_at = FieldPath::Disk(index, DiskField::Snapshot);
        if disk
            .backend
            .snapshot
            .is_some_and(|snapshot| snapshot != Snapshot::No)
        {
            report
                .finding(
                    snapshot_at,
                    phrase!("{disk} is served by a vhost-user daemon, so QEMU cannot snapshot it"),
                )
                .label("the daemon has the data")
                .help(phrase!("use {no}", no = setting(snapshot_at, Snapshot::No)));
        }
        if socket.served.is_some() {
            // The daemon is known, and the options of the image are meant for it.
            continue;
        }
        for field in refused(disk) {
            let at = FieldPath::Disk(index, field);
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} is served by a vhost-user daemon, which {option} does not affect",
                        option = at,
                    ),
                )
                .label("QEMU does not see the requests of this disk")
                .help(phrase!(
                    "remove {option}, and configure it in the daemon",
                    option = at
                ));
        }
    }
}

/// Fields that libvirt refuses on a daemon's disk; of several with one name, the first.
fn refused(disk: &Disk) -> Vec<DiskField> {
    let mut found: Vec<DiskField> = Vec::new();
    for field in DISK_FIELDS {
        let row = fields::disk(*field);
        let is_new = !found.iter().any(|it| fields::disk(*it).noun == row.noun);
        if row.is_refused_on_vhost_user && is_new && disk.has(*field) {
            found.push(*field);
        }
    }
    found
}
