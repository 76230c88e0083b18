//! `bus-option-refused`

use vmdisk_facts::Version;
use vmdisk_model::{Device, Disk, DiskField, FieldPath, TargetBus, Tray, VirtioOptions};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

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
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let bus = disk.frontend.effective_bus();
        for (field, word, where_it_is) in misplaced(context, disk, bus) {
            let title = format!(
                "`{}` has {word}, which bus '{bus}' does not have",
                disk.name()
            );
            report
                .finding(FieldPath::Disk(index, field), title)
                .label(format!("only on {where_it_is}"))
                .note("libvirt refuses the guest for it")
                .help(format!("leave it out, or put the disk on {where_it_is}"));
        }
    }
}

/// Options that no device on the bus has: the field, what it is, and where it would be right.
fn misplaced(
    context: &Context<'_>,
    disk: &Disk,
    bus: TargetBus,
) -> Vec<(DiskField, &'static str, &'static str)> {
    use TargetBus::{Ide, Sata, Scsi, Sd, Usb, Virtio};
    let frontend = &disk.frontend;
    let device = frontend.effective_device();
    let VirtioOptions {
        iommu,
        ats,
        packed,
        page_per_vq,
    } = frontend.virtio;
    let is_ata = matches!(bus, Ide | Sata);
    let has_removable = match context.libvirt_is_before(Version(11, 0, 0)) {
        Some(true) => bus == Usb,
        Some(false) | None => bus == Usb || (bus == Scsi && device == Device::Disk),
    };
    let has_product = match context.libvirt_is_before(Version(11, 0, 0)) {
        Some(true) => bus == Scsi,
        Some(false) | None => bus == Scsi || is_ata,
    };
    let virtio = "the bus virtio";
    let translation = frontend.geometry.and_then(|geometry| geometry.translation);
    [
        (
            frontend.queues.is_some() && bus != Virtio,
            DiskField::Queues,
            "queues",
            virtio,
        ),
        (
            frontend.queue_size.is_some()
                && bus != Virtio
                && context.libvirt_is_before(Version(9, 1, 0)) != Some(true),
            DiskField::QueueSize,
            "a queue size",
            virtio,
        ),
        (
            frontend.event_idx.is_some() && bus != Virtio,
            DiskField::EventIdx,
            "event_idx",
            virtio,
        ),
        (
            frontend.ioeventfd.is_some() && bus != Virtio,
            DiskField::IoEventFd,
            "ioeventfd",
            virtio,
        ),
        (
            iommu.is_some() && bus != Virtio,
            DiskField::Iommu,
            "iommu",
            virtio,
        ),
        (
            ats.is_some() && bus != Virtio,
            DiskField::Ats,
            "ats",
            virtio,
        ),
        (
            packed.is_some() && bus != Virtio,
            DiskField::Packed,
            "packed queues",
            virtio,
        ),
        (
            page_per_vq.is_some() && bus != Virtio,
            DiskField::PagePerVq,
            "page_per_vq",
            virtio,
        ),
        (
            frontend.model.is_some() && bus != Virtio,
            DiskField::Model,
            "a virtio model",
            virtio,
        ),
        (
            frontend.removable.is_some() && !has_removable,
            DiskField::Removable,
            "`removable`",
            "the bus usb",
        ),
        (
            frontend.tray == Some(Tray::Open) && !matches!(device, Device::Cdrom | Device::Floppy),
            DiskField::Tray,
            "an open tray",
            "a CD or floppy drive",
        ),
        (
            frontend.wwn.is_some() && !matches!(bus, Scsi | Ide),
            DiskField::Wwn,
            "a WWN",
            "the bus scsi or ide",
        ),
        (
            frontend.vendor.is_some() && bus != Scsi,
            DiskField::Vendor,
            "a vendor",
            "the bus scsi",
        ),
        (
            frontend.product.is_some() && !has_product,
            DiskField::Product,
            "a product",
            "the bus scsi",
        ),
        (
            frontend.rotation_rate.is_some() && bus != Scsi && !is_ata,
            DiskField::RotationRate,
            "a rotation rate",
            "one of the buses scsi, sata, ide",
        ),
        (
            frontend.rotation_rate.is_some() && (bus == Scsi || is_ata) && device != Device::Disk,
            DiskField::RotationRate,
            "a rotation rate",
            "a device of the kind disk",
        ),
        (
            frontend.geometry.is_some() && matches!(bus, Usb | Sd),
            DiskField::Geometry,
            "a geometry",
            "one of the buses virtio, scsi, sata, ide",
        ),
        (
            translation.is_some() && bus != Ide && !matches!(bus, Usb | Sd),
            DiskField::GeometryTranslation,
            "a translation of its geometry",
            "the bus ide",
        ),
        (
            frontend.acpi_index.is_some() && bus != Virtio,
            DiskField::AcpiIndex,
            "an ACPI index",
            virtio,
        ),
        (
            frontend.serial.is_some() && bus == Sd,
            DiskField::Serial,
            "a serial number",
            "another bus than sd",
        ),
        (
            disk.backend.iotune.is_some()
                && bus == Sd
                && context.libvirt_is_before(Version(9, 1, 0)) != Some(true),
            DiskField::Iotune,
            "limits",
            "another bus than sd",
        ),
    ]
    .into_iter()
    .filter(|(is_wrong, ..)| *is_wrong)
    .map(|(_, field, word, where_it_is)| (field, word, where_it_is))
    .collect()
}
