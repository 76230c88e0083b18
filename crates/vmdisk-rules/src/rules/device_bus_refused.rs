//! `device-bus-refused`

use vmdisk_fields::phrase;
use vmdisk_model::{Board, Device, DiskField, DomainField, FieldPath, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The bus of a disk does not support this type of device.
    ///
    /// ## What it reports
    /// Reports a floppy drive on any bus but fdc, any other device on fdc, a CD drive on virtio or sd, a bus that the
    /// machine does not have, such as IDE on q35, `virt` and `pseries` or SATA and USB on IBM Z, and a passed-through SCSI device (`device='lun'`) on any bus but scsi or virtio. For guests that QEMU
    /// runs, it also reports the buses `xen` and `uml`, and the bus `sd` on a PC, which has no slot for SD cards.
    ///
    /// ## Why it matters
    /// QEMU has no such device. libvirt refuses the guest. It defines a guest with a disk on `xen`, `uml` or `sd`, but
    /// cannot start it: `unsupported disk bus 'xen' with device setup`. Such disks are left over from guests of Xen;
    /// without a `bus`, the target name `xvda` means the bus `xen`.
    ///
    /// ## Use instead
    /// Use bus `virtio` for disks of a former Xen guest. Use bus `sata` or `scsi` for CD drives, `fdc` for floppy drives, `scsi` for passed-through SCSI devices, and
    /// `sata` instead of IDE on q35. The guest sees another controller and needs a driver for it.
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
    name: "device-bus-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("IDE controllers are unsupported for this QEMU binary or machine type", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefControllerIDE"),
        Evidence::refused_by_libvirt("Invalid bus type '…' for floppy disk", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("Invalid bus type '…' for disk", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("disk type of '…' does not support ejectable media", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("disk device='lun' is not supported for bus='…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt_at_start("unsupported disk bus '…' with device setup", "src/qemu/qemu_command.c, qemuBuildDiskDeviceProps"),
    ],
    // A name and an address on a bus that the disk cannot have.
    supersedes: &["address-beyond-controller", "target-bus-mismatch"],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let board = context.domain.board();
    // A disk without its guest can belong to Xen.
    let is_run_by_qemu = context.domain.domain_type.is_some();
    for (index, disk) in context.disks() {
        let (device, bus) = (
            disk.frontend.effective_device(),
            disk.frontend.effective_bus(),
        );
        let is_missing = match bus {
            TargetBus::Xen | TargetBus::Uml => is_run_by_qemu,
            TargetBus::Sd => board.has_bus(bus) == Some(false),
            _ => false,
        };
        let refused = supported_buses(device, bus);
        let lacks_bus = !is_missing
            && board.has_bus(bus) == Some(false)
            && (bus == TargetBus::Ide || refused.is_none());
        let (buses, note) = match refused {
            Some(_) => (refused, "libvirt refuses the guest"),
            None => (
                (is_missing || lacks_bus).then(|| other_buses(device)),
                "libvirt defines the guest, but cannot start it",
            ),
        };
        let Some(buses) = buses else {
            continue;
        };
        let field = match disk.frontend.bus {
            Some(_) => DiskField::TargetBus,
            None => DiskField::Target,
        };
        let at = FieldPath::Disk(index, field);
        let machine = FieldPath::Domain(DomainField::Machine);
        if lacks_bus {
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} is on bus `{bus}`, which machine {board} does not have",
                        bus = bus.as_str(),
                        board = board.name(),
                    ),
                )
                .label("needs another bus")
                .related(machine, "the machine")
                .note("libvirt refuses the guest")
                .help(match board {
                    Board::Q35 => "use bus `sata`, or a machine with IDE, such as `pc`",
                    Board::Isa => "use machine `pc`",
                    _ => "use bus `virtio` or `scsi`",
                });
            continue;
        }
        report
            .finding(
                at,
                phrase!(
                    "{disk} is a {device} device, which bus `{bus}` does not support",
                    device = device.as_str(),
                    bus = bus.as_str(),
                ),
            )
            .label(phrase!(
                "a {device} device needs {buses}",
                device = device.as_str(),
                buses
            ))
            .related(
                FieldPath::Disk(index, DiskField::Device),
                "the type of device",
            )
            .note(note)
            .help(phrase!("use {buses}, or another type of device", buses));
    }
}

/// The buses that support such a device; `None` if this bus does.
fn supported_buses(device: Device, bus: TargetBus) -> Option<&'static str> {
    let is_supported = match device {
        Device::Floppy => bus == TargetBus::Fdc,
        Device::Disk => bus != TargetBus::Fdc,
        Device::Cdrom => !matches!(bus, TargetBus::Fdc | TargetBus::Virtio | TargetBus::Sd),
        Device::Lun => matches!(bus, TargetBus::Scsi | TargetBus::Virtio),
    };
    let buses = match device {
        Device::Floppy => "bus `fdc`",
        Device::Disk => "a bus other than `fdc`",
        Device::Cdrom => "bus `sata`, `ide`, `scsi` or `usb`",
        Device::Lun => "bus `scsi`",
    };
    (!is_supported).then_some(buses)
}

/// The buses that support such a device on most machines.
const fn other_buses(device: Device) -> &'static str {
    match device {
        Device::Cdrom => "bus `sata`, `scsi` or `usb`",
        _ => "bus `virtio`, `scsi`, `sata` or `usb`",
    }
}
