//! `lun-option-refused`

use vmdisk_fields::{Phrase, phrase, setting};
use vmdisk_model::{
    BackendSource, Device, Disk, DiskField, FieldPath, ImageField, NetworkProtocol, Protocol,
    TargetBus,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A passed-through SCSI device (`device='lun'`) has an option of emulated disks.
    ///
    /// ## What it reports
    /// Reports `device='lun'` with a serial number, WWN, vendor or product, a block size, a slice, encryption, or a
    /// network protocol other than iscsi; and on a source that is not a block device of the host.
    ///
    /// ## Why it matters
    /// The guest accesses the host's device directly, with the device's own identity and sectors. libvirt refuses the
    /// guest. With a block size it defines the guest, and QEMU exits at start with
    /// `Property 'scsi-block.logical_block_size' not found`.
    ///
    /// ## Use instead
    /// Remove the option. If you need it, use `device='disk'`: QEMU then emulates a disk on the device, and the guest
    /// cannot send SCSI commands to it.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/sdb'/>
    ///   <target dev='sda' bus='scsi'/>
    ///   <serial>a</serial>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/sdb'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    name: "lun-option-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("disk device='…' is only valid for block type disk source", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
        Evidence::refused_by_libvirt("scsi-block 'lun' devices do not support the serial property", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("Setting wwn is not supported for lun device", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("Setting vendor or product is not supported for lun device", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("disk device='lun' is not supported for protocol='…'", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
        Evidence::refused_by_libvirt("disk device 'lun' doesn't support storage slice", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
        Evidence::refused_by_libvirt("disk device 'lun' doesn't support encryption", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
        Evidence::refused_by_qemu("Property 'scsi-block.logical_block_size' not found", "qom/object.c, object_property_find_err"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        if frontend.effective_device() != Device::Lun {
            continue;
        }
        let elsewhere = match &disk.backend.source {
            BackendSource::VhostUser(_) => Some("is served by a vhost-user daemon"),
            BackendSource::Image(image) => match &image.protocol {
                Protocol::Directory { .. } => Some("is a directory"),
                Protocol::Nvme(_) => Some("is an NVMe controller that QEMU drives"),
                Protocol::VhostVdpa { .. } => Some("is a vDPA device"),
                _ => None,
            },
            BackendSource::Empty => None,
        };
        let device = FieldPath::Disk(index, DiskField::Device);
        let emulated = setting(device, Device::Disk);
        if let Some(elsewhere) = elsewhere {
            report
                .finding(
                    device,
                    phrase!(
                        "{disk} {elsewhere}, but is configured as a SCSI device of the host",
                        elsewhere,
                    ),
                )
                .label("only a block device of the host can be passed through")
                .help(phrase!("use {emulated}", emulated));
            continue;
        }
        report_block_sizes(report, index, disk);
        let is_other_protocol = has_other_protocol(disk);
        for (at, what) in refused(index, disk) {
            report
                .finding(
                    at,
                    phrase!("{disk} passes a SCSI device through, but has {what}", what,),
                )
                .label("the guest accesses the device directly")
                .help(phrase!(
                    "{instead}, or use {emulated}",
                    instead = if is_other_protocol {
                        Phrase::from("use iSCSI")
                    } else {
                        phrase!("remove {field}", field = at)
                    },
                    emulated = emulated.clone(),
                ));
        }
    }
}

/// Reports sector sizes, which QEMU has no properties for. libvirt passes none on for 0.
fn report_block_sizes(report: &mut Report, index: usize, disk: &Disk) {
    let frontend = &disk.frontend;
    if frontend.effective_bus() != TargetBus::Scsi {
        return;
    }
    let sizes = [
        (DiskField::LogicalBlockSize, frontend.logical_block_size),
        (DiskField::PhysicalBlockSize, frontend.physical_block_size),
        (DiskField::DiscardGranularity, frontend.discard_granularity),
    ];
    let mut set = sizes
        .into_iter()
        .filter(|(_, size)| size.is_some_and(|size| size != 0));
    let Some((field, _)) = set.next() else {
        return;
    };
    report
        .finding(
            FieldPath::Disk(index, field),
            phrase!("{disk} passes a SCSI device through, but has a block size"),
        )
        .label("the guest sees the sectors of the device")
        .note("QEMU refuses to start")
        .help(phrase!(
            "remove `<blockio>`, or use {emulated}",
            emulated = setting(FieldPath::Disk(index, DiskField::Device), Device::Disk),
        ));
}

/// Whether a server provides the device over another protocol than iSCSI.
fn has_other_protocol(disk: &Disk) -> bool {
    let image = disk.backend.image();
    image.is_some_and(|image| {
        matches!(&image.protocol, Protocol::Network(network) if network.protocol != NetworkProtocol::Iscsi)
    })
}

/// The settings of a disk that a device of the host cannot have.
fn refused(index: usize, disk: &Disk) -> impl Iterator<Item = (FieldPath, &'static str)> {
    let frontend = &disk.frontend;
    let image = disk.backend.image();
    let is_scsi = frontend.effective_bus() == TargetBus::Scsi;
    let has_product_only = frontend.product.is_some() && frontend.vendor.is_none();
    let at = |field| FieldPath::Disk(index, field);
    let on_image = |field| FieldPath::Image(index, 0, field);
    [
        (
            is_scsi && frontend.serial.is_some(),
            at(DiskField::Serial),
            "a serial number",
        ),
        (
            is_scsi && frontend.wwn.is_some(),
            at(DiskField::Wwn),
            "a WWN",
        ),
        (
            is_scsi && frontend.vendor.is_some(),
            at(DiskField::Vendor),
            "a vendor",
        ),
        (
            is_scsi && has_product_only,
            at(DiskField::Product),
            "a product",
        ),
        (
            image.is_some_and(|image| image.slice.is_some()),
            on_image(ImageField::Slice),
            "a slice",
        ),
        (
            image.is_some_and(|image| image.encryption.is_some()),
            on_image(ImageField::Encryption),
            "encryption",
        ),
        (
            has_other_protocol(disk),
            on_image(ImageField::NetworkProtocol),
            "a protocol other than iscsi",
        ),
    ]
    .into_iter()
    .filter_map(|(is_set, at, what)| is_set.then_some((at, what)))
}
