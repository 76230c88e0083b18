//! `bus-option-refused`

use vmdisk_facts::Version;
use vmdisk_fields::{self as fields, DISK_FIELDS, DiskName, phrase};
use vmdisk_model::{DiskField, FieldPath, Fields, Tray};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// An option is set that the bus of the disk does not have.
    ///
    /// ## What it does
    /// Reports virtio's options (queues, event_idx, ioeventfd, iommu, ats, packed, page_per_vq, model) on another
    /// bus, a WWN, a vendor, a product, a rotation rate, a tray, geometry and `removable` where libvirt knows that
    /// no device there has them.
    ///
    /// ## Why it matters
    /// libvirt refuses the whole guest, and names one option at a time.
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
    pub(super) static RULE = {
        name: "bus-option-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
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
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let is_before = |(major, minor, micro)| context.libvirt_is_before(Version(major, minor, micro));
    for (index, disk) in context.disks() {
        let bus = disk.frontend.effective_bus();
        let device = disk.frontend.effective_device();
        for field in DISK_FIELDS {
            let row = fields::disk(*field);
            let Some(where_it_is) = row.takers.elsewhere(bus, device, is_before) else {
                continue;
            };
            let is_closed = *field == DiskField::Tray && disk.frontend.tray == Some(Tray::Closed);
            if is_closed || !disk.has(*field) {
                continue;
            }
            let at = FieldPath::Disk(index, *field);
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} sets {noun}, which bus `{bus}` does not support",
                        disk = DiskName(index),
                        noun = row.noun,
                        bus = bus.as_wire(),
                    ),
                )
                .label(format!("only on {where_it_is}"))
                .note("libvirt refuses the guest for it")
                .help(phrase!(
                    "remove {field}, or move the disk to {where_it_is}",
                    field = at,
                    where_it_is
                ));
        }
    }
}
