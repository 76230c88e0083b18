//! `bus-option-refused`

use std::sync::LazyLock;

use vmdisk_facts::Version;
use vmdisk_fields::{self as fields, DISK_FIELDS, phrase};
use vmdisk_model::{DiskField, FieldPath, Fields, Tray};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk sets an option that its bus does not support.
    ///
    /// ## What it reports
    /// Reports options of virtio (queues, event_idx, ioeventfd, iommu, ats, packed, page_per_vq, model) on another bus;
    /// and a WWN, vendor, product, serial number, rotation rate, tray, geometry, I/O limits, ACPI index or `removable`
    /// on a bus or device for which libvirt refuses them. `removable` on SCSI disks is accepted by libvirt 9.6 and
    /// later.
    ///
    /// ## Why it matters
    /// libvirt refuses to define the guest, and names one option at a time:
    /// `queues attribute in disk driver element is only supported` by virtio,
    /// `disk event_idx mode supported only for virtio bus`, `Only ide and scsi disk support wwn`. It usually happens
    /// when the bus of a disk is changed and its other options are kept.
    ///
    /// ## Use instead
    /// Remove the option, or move the disk to a bus that supports it. SCSI on a virtio-scsi controller supports WWN,
    /// vendor, product and rotation rate; queues are then set on the controller.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' queues='4'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <wwn>5000c50015ea71ac</wwn>
    /// </disk>
    /// ```
    /// ```xml,reported,libvirt-9.5
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='scsi' removable='on'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' queues='4'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <controller type='scsi' index='0' model='virtio-scsi'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='scsi'/>
    ///       <wwn>5000c50015ea71ac</wwn>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// libvirt 9.6 and later accept `removable` on SCSI:
    /// ```xml,not-reported,libvirt-9.6
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='scsi' removable='on'/>
    /// </disk>
    /// ```
    name: "bus-option-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("queues attribute in disk driver element is only supported", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("queue_size attribute in disk driver is only supported", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("disk event_idx mode supported only for virtio bus", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("disk ioeventfd mode supported only for virtio bus", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("iommu driver option is only supported for virtio devices", "src/conf/domain_validate.c, virDomainCheckVirtioOptionsAreAbsent"),
        Evidence::refused_by_libvirt("ats driver option is only supported for virtio devices", "src/conf/domain_validate.c, virDomainCheckVirtioOptionsAreAbsent"),
        Evidence::refused_by_libvirt("packed driver option is only supported for virtio devices", "src/conf/domain_validate.c, virDomainCheckVirtioOptionsAreAbsent"),
        Evidence::refused_by_libvirt("page_per_vq option is only supported for virtio devices", "src/conf/domain_validate.c, virDomainCheckVirtioOptionsAreAbsent"),
        Evidence::refused_by_libvirt("disk model '…' not supported for bus '…'", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("removable is only valid for usb", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::Source("libvirt NEWS 9.6.0: support for `removable` on SCSI disks"),
        Evidence::refused_by_libvirt("tray is only valid for cdrom and floppy", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("Only ide and scsi disk support wwn", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("Only scsi disk supports ", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("Only ide, sata and scsi disk supports 'product'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("rotation rate is only valid for SCSI/IDE/SATA bus", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("rotation rate is only valid for disk device", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("CHS geometry can not be set for '…' bus", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("CHS translation mode can only be set for 'ide' bus not '…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("ACPI index is only supported for PCI devices", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceInfo"),
        Evidence::refused_by_libvirt("Serial property not supported for drive bus 'sd'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("<iotune> is not supported with bus='sd'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskBlkdeviotune"),
    ],
    check: Model(check),
}

/// The fields that some disks may not have.
static ELSEWHERE: LazyLock<Vec<DiskField>> = LazyLock::new(|| {
    let all = DISK_FIELDS.iter().copied();
    all.filter(|field| !fields::disk(*field).takers.is_everywhere())
        .collect()
});

fn check(context: &Context<'_>, report: &mut Report) {
    let is_before = |(major, minor, micro)| context.libvirt_is_before(Version(major, minor, micro));
    for (index, disk) in context.disks() {
        let bus = disk.frontend.effective_bus();
        let device = disk.frontend.effective_device();
        for field in ELSEWHERE.iter() {
            // Most fields of most disks are unset.
            if !disk.has(*field) {
                continue;
            }
            let row = fields::disk(*field);
            let Some(where_it_is) = row.takers.elsewhere(bus, device, is_before) else {
                continue;
            };
            if *field == DiskField::Tray && disk.frontend.tray == Some(Tray::Closed) {
                continue;
            }
            let at = FieldPath::Disk(index, *field);
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} sets {noun}, which bus `{bus}` does not support",
                        noun = row.noun,
                        bus = bus.as_str(),
                    ),
                )
                .label(format!("only on {where_it_is}"))
                .help(phrase!(
                    "remove {field}, or move the disk to {where_it_is}",
                    field = at,
                    where_it_is
                ));
        }
    }
}
