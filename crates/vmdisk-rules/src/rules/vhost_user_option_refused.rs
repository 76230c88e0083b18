//! `vhost-user-option-refused`

use vmdisk_fields::{self as fields, DISK_FIELDS};
use vmdisk_model::{BackendSource, Disk, DiskField, FieldPath, Fields, Snapshot, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// An option of images is set on a disk that a vhost-user daemon serves.
    ///
    /// ## What it does
    /// Reports what libvirt does not take on `type='vhostuser'`: another bus than virtio, a snapshot mode other
    /// than `no`, and every option that only QEMU's own block layer could honour.
    ///
    /// ## Why it matters
    /// QEMU sees none of the requests of such a disk: the daemon has its own cache, limits and identity. libvirt
    /// refuses the guest, and names one option at a time.
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
    pub(super) static RULE = {
        name: "vhost-user-option-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
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
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let BackendSource::VhostUser(socket) = &disk.backend.source else {
            continue;
        };
        let name = disk.name();
        let bus = disk.frontend.effective_bus();
        if bus != TargetBus::Virtio {
            report
                .finding(
                    FieldPath::Disk(index, DiskField::TargetBus),
                    format!("`{name}` is served by a vhost-user daemon, and its bus is '{bus}'"),
                )
                .label("vhost-user speaks virtio alone")
                .note("libvirt refuses the guest for it")
                .help("write bus='virtio'");
        }
        if disk
            .backend
            .snapshot
            .is_some_and(|snapshot| snapshot != Snapshot::No)
        {
            report
                .finding(
                    FieldPath::Disk(index, DiskField::Snapshot),
                    format!("`{name}` is served by a vhost-user daemon, which QEMU takes no snapshots of"),
                )
                .label("the daemon has the data")
                .note("libvirt refuses the guest for it")
                .help("write snapshot='no'");
        }
        if socket.served.is_some() {
            // What is said of the image is said to the daemon, which is known here.
            continue;
        }
        for (field, word) in unheeded(disk) {
            report
                .finding(
                    FieldPath::Disk(index, field),
                    format!("`{name}` is served by a vhost-user daemon, and sets {word} for QEMU's block layer"),
                )
                .label("QEMU sees none of its requests")
                .note("libvirt refuses the guest for it")
                .help(format!("leave {word} out, and tell the daemon"));
        }
    }
}

/// What is set and has no meaning for a daemon's disk; of several fields that people call the same, the first.
fn unheeded(disk: &Disk) -> Vec<(DiskField, &'static str)> {
    let mut found: Vec<(DiskField, &str)> = Vec::new();
    for field in DISK_FIELDS {
        let row = fields::disk(*field);
        let is_new = !found.iter().any(|(_, noun)| *noun == row.noun);
        if row.is_refused_on_vhost_user && is_new && disk.has(*field) {
            found.push((*field, row.noun));
        }
    }
    found
}
