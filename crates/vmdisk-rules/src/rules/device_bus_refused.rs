//! `device-bus-refused`

use vmdisk_model::{Device, DiskField, FieldPath, MachineType, TargetBus};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The kind of device does not exist on this bus.
    ///
    /// ## What it does
    /// Reports a floppy drive on another bus than fdc and anything else on fdc, a CD drive on virtio or sd, IDE on
    /// a q35 machine, and a SCSI unit of the host (`device='lun'`) on another bus than scsi or virtio.
    ///
    /// ## Why it matters
    /// No device model of QEMU is such a drive. libvirt refuses the guest.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "device-bus-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("IDE controllers are unsupported for this QEMU binary or machine type", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefControllerIDE"),
            Evidence::refused_by_libvirt("Invalid bus type '…' for floppy disk", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
            Evidence::refused_by_libvirt("Invalid bus type '…' for disk", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
            Evidence::refused_by_libvirt("disk type of '…' does not support ejectable media", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
            Evidence::refused_by_libvirt("disk device='lun' is not supported for bus='…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let machine = context.domain.machine.as_ref();
    let has_no_ide = machine.is_some_and(MachineType::is_q35);
    for (index, disk) in context.disks() {
        let (device, bus) = (
            disk.frontend.effective_device(),
            disk.frontend.effective_bus(),
        );
        let buses = if bus == TargetBus::Ide && has_no_ide {
            Some("bus 'sata' of a q35 machine")
        } else {
            wrong(device, bus)
        };
        let Some(buses) = buses else {
            continue;
        };
        let field = match disk.frontend.bus {
            Some(_) => DiskField::TargetBus,
            None => DiskField::Target,
        };
        report
            .finding(
                FieldPath::Disk(index, field),
                format!(
                    "`{}` is of the kind {device}, which is not to be had on bus '{bus}'",
                    disk.name()
                ),
            )
            .label(format!("a {device} hangs on {buses}"))
            .related(
                FieldPath::Disk(index, DiskField::Device),
                "the kind of device",
            )
            .note("libvirt refuses the guest for it")
            .help(format!("put it on {buses}, or change the kind of device"));
    }
}

/// Where such a device would be right, if it is not on this bus.
fn wrong(device: Device, bus: TargetBus) -> Option<&'static str> {
    let is_right = match device {
        Device::Floppy => bus == TargetBus::Fdc,
        Device::Disk => bus != TargetBus::Fdc,
        Device::Cdrom => !matches!(bus, TargetBus::Fdc | TargetBus::Virtio | TargetBus::Sd),
        Device::Lun => matches!(bus, TargetBus::Scsi | TargetBus::Virtio),
    };
    let buses = match device {
        Device::Floppy => "bus 'fdc'",
        Device::Disk => "another bus than 'fdc'",
        Device::Cdrom => "bus 'sata', 'ide', 'scsi' or 'usb'",
        Device::Lun => "bus 'scsi'",
    };
    (!is_right).then_some(buses)
}
