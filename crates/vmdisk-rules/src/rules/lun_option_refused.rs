//! `lun-option-refused`

use vmdisk_model::{
    BackendSource, Device, DiskField, FieldPath, ImageField, NetworkProtocol, Protocol, TargetBus,
};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A SCSI unit of the host is given what only an emulated disk can have.
    ///
    /// ## What it does
    /// Reports a serial number, WWN, vendor or product on `device='lun'`, a slice, encryption, and a network
    /// protocol other than iscsi.
    ///
    /// ## Why it matters
    /// The guest talks to the host's device itself, which has its own identity. libvirt refuses the guest.
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
    pub(super) static RULE = {
        name: "lun-option-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("disk device='…' is only valid for block type disk source", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
            Evidence::refused_by_libvirt("scsi-block 'lun' devices do not support the serial property", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
            Evidence::refused_by_libvirt("Setting wwn is not supported for lun device", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
            Evidence::refused_by_libvirt("Setting vendor or product is not supported for lun device", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
            Evidence::refused_by_libvirt("disk device='lun' is not supported for protocol='…'", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
            Evidence::refused_by_libvirt("disk device 'lun' doesn't support storage slice", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
            Evidence::refused_by_libvirt("disk device 'lun' doesn't support encryption", "src/conf/domain_validate.c, virDomainDiskDefSourceLUNValidate"),
        ],
        supersedes: &[],
        check: check,
    }
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
                Protocol::File { .. }
                | Protocol::HostDevice { .. }
                | Protocol::Network(_)
                | Protocol::Volume(_)
                | Protocol::Other(_) => None,
            },
            BackendSource::Empty => None,
        };
        if let Some(elsewhere) = elsewhere {
            report
                .finding(
                    FieldPath::Disk(index, DiskField::Device),
                    format!(
                        "`{}` {elsewhere}, and is to be a SCSI unit of the host",
                        disk.name()
                    ),
                )
                .label("only a block device of the host is one")
                .note("libvirt refuses the guest for it")
                .help("write device='disk'");
            continue;
        }
        let is_scsi = frontend.effective_bus() == TargetBus::Scsi;
        let image = disk.backend.image();
        let is_other_protocol = image.is_some_and(|image| {
            matches!(&image.protocol, Protocol::Network(network) if network.protocol != NetworkProtocol::Iscsi)
        });
        let at = |field| FieldPath::Disk(index, field);
        let on_image = |field| FieldPath::Image(index, 0, field);
        for (is_set, at, what) in [
            (
                frontend.serial.is_some() && is_scsi,
                at(DiskField::Serial),
                "a serial number of its own",
            ),
            (
                frontend.wwn.is_some() && is_scsi,
                at(DiskField::Wwn),
                "a WWN of its own",
            ),
            (
                frontend.vendor.is_some() && is_scsi,
                at(DiskField::Vendor),
                "a vendor of its own",
            ),
            (
                frontend.product.is_some() && frontend.vendor.is_none() && is_scsi,
                at(DiskField::Product),
                "a product of its own",
            ),
            (
                image.is_some_and(|image| image.slice.is_some()),
                on_image(ImageField::Slice),
                "a slice of the device",
            ),
            (
                image.is_some_and(|image| image.encryption.is_some()),
                on_image(ImageField::Encryption),
                "encryption",
            ),
            (
                is_other_protocol,
                on_image(ImageField::NetworkProtocol),
                "another protocol than iscsi",
            ),
        ] {
            if is_set {
                report
                    .finding(
                        at,
                        format!(
                            "`{}` is a SCSI unit of the host, and has {what}",
                            disk.name()
                        ),
                    )
                    .label("the guest sees the device as it is")
                    .note("libvirt refuses the guest for it")
                    .help("leave it out, or write device='disk'");
            }
        }
    }
}
