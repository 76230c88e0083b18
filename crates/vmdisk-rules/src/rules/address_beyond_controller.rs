//! `address-beyond-controller`

use vmdisk_fields::phrase;
use vmdisk_model::{
    Address, Disk, DiskField, Domain, DriveAddress, FieldPath, MachineType, PciAddress,
    ScsiControllerModel, TargetBus,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk's address does not exist on its controller.
    ///
    /// ## What it reports
    /// Reports drive addresses on a second IDE or floppy controller, also if they are derived from a target name: `hde`
    /// is a fifth IDE disk, `fdc` a third floppy. Also reports a `bus` other than 0 on SCSI and SATA controllers; a
    /// `target` other than 0 on IDE, SATA, floppy and emulated LSI controllers; and PCI addresses with another `domain`
    /// than 0.
    ///
    /// ## Why it matters
    /// A drive address has four numbers (controller, bus, target, unit), but only virtio-scsi uses target and unit
    /// freely. libvirt refuses to define the guest, for example with `target must be 0 for sata controller`. The
    /// message does not name the disk. A SCSI controller without a `model` is an emulated LSI controller on PCs, which
    /// has no targets either.
    ///
    /// It also reports the first disk on virtio or USB of a PC for which libvirt finds no room: after 236 disks on virtio of
    /// q35, 655 of pc, and 143 or 127 on USB; fewer if other devices have the slots.
    ///
    /// ## Use instead
    /// Remove the `<address>` element: libvirt assigns a free address when the guest is defined. With more than four IDE
    /// disks or two floppies, move the others to another bus. To keep an address,
    /// change only `unit` (IDE has two units per bus, SATA six), or use
    /// `<controller type='scsi' model='virtio-scsi'/>`.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <address type='drive' controller='0' bus='1' target='0' unit='0'/>
    /// </disk>
    /// ```
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='hde' bus='ide'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>1</memory>
    ///   <os><type arch='x86_64' machine='pc'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='scsi'/>
    ///       <address type='drive' controller='0' bus='0' target='1' unit='0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>1</memory>
    ///   <os><type arch='x86_64' machine='q35'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0001' bus='0x00' slot='0x05' function='0x0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <address type='drive' controller='1' bus='0' target='0' unit='3'/>
    /// </disk>
    /// ```
    name: "address-beyond-controller",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("SCSI controller only supports 1 bus", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddressDrive"),
        Evidence::refused_by_libvirt("target must be 0 for controller model 'lsilogic'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddressDrive"),
        Evidence::refused_by_libvirt("Only 1 IDE controller is supported", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddressDrive"),
        Evidence::refused_by_libvirt("target must be 0 for ide controller", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddressDrive"),
        Evidence::refused_by_libvirt("Only 1 fdc controller is supported", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddressDrive"),
        Evidence::refused_by_libvirt("target must be 0 for controller fdc", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddressDrive"),
        Evidence::measured("237 disks on virtio of q35, 655 of pc, 143 on USB of q35 and 127 of pc are defined, and one more is not", "virsh define of libvirt 9.0: a PCI slot is needed to connect a PCI controller, No free USB ports"),
        Evidence::refused_by_libvirt("Only PCI domain 0 is available", "src/conf/domain_addr.c, virDomainPCIAddressValidate"),
        Evidence::refused_by_libvirt("bus must be 0 for sata controller", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddressDrive"),
        Evidence::refused_by_libvirt("target must be 0 for sata controller", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddressDrive"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // libvirt's limits of IDE are those of a PC; `device-bus-refused` reports IDE on q35.
    let machine = context.domain.machine.as_ref();
    let has_no_ide = machine.is_some_and(MachineType::is_q35);
    if let Some((nth, room)) = context.domain.beyond_room(0).first().copied()
        && let Some(disk) = context.domain.disks.get(nth)
        && !matches!(
            disk.frontend.effective_bus(),
            TargetBus::Ide | TargetBus::Fdc
        )
    {
        let at = FieldPath::Disk(nth, DiskField::TargetBus);
        let bus = disk.frontend.effective_bus();
        let finding = report.finding(
            at,
            phrase!("{disk} finds no room on bus {bus}", bus = bus.as_str()),
        );
        finding
            .label(format!("libvirt finds room for {room} disks on it"))
            .note("it adds ports, hubs and bridges until no place is left for another one")
            .help("use a virtio-scsi controller, which has room for 255 disks");
    }
    for (index, disk) in context.disks() {
        let bus = disk.frontend.effective_bus();
        let at = FieldPath::Disk(index, DiskField::Address);
        let (at, found) = match &disk.frontend.address {
            Some(Address::Drive(place)) => (at, beyond(context.domain, disk, bus, place)),
            Some(Address::Pci(address)) => (at, beyond_pci(address)),
            Some(_) => continue,
            None => {
                let at = FieldPath::Disk(index, DiskField::TargetDev);
                (
                    at,
                    beyond_by_name(disk, bus).filter(|_| !(bus == TargetBus::Ide && has_no_ide)),
                )
            }
        };
        let Some((what, help)) = found else {
            continue;
        };
        let title = match at {
            FieldPath::Disk(_, DiskField::Address) => {
                phrase!("the address of {disk} does not exist: {what}", what)
            }
            _ => phrase!(
                "the target name of {disk} means an address that does not exist: {what}",
                what
            ),
        };
        report
            .finding(at, title)
            .label("no such address")
            .help(help);
    }
}

/// The limit that the address exceeds which libvirt derives from the target name, and the remedy.
fn beyond_by_name(disk: &Disk, bus: TargetBus) -> Option<(&'static str, &'static str)> {
    let help = match bus {
        TargetBus::Ide => "use an unused name from `hda` to `hdd`, or move the disk to another bus",
        TargetBus::Fdc => "use `fda` or `fdb`",
        _ => return None,
    };
    let place = DriveAddress::of_target(bus, disk.frontend.target.as_deref()?)?;
    (place.controller > 0).then(|| {
        (
            if bus == TargetBus::Ide {
                ONE_IDE
            } else {
                ONE_FLOPPY
            },
            help,
        )
    })
}

fn beyond_pci(address: &PciAddress) -> Option<(&'static str, &'static str)> {
    (address.domain != 0).then_some((
        "QEMU's machines have only PCI domain 0",
        "use `domain='0x0000'`",
    ))
}

const ONE_IDE: &str = "there is one IDE controller, with two buses of two units";
const ONE_FLOPPY: &str = "there is one floppy controller, with two units";

/// The limit of the bus, and the remedy.
fn beyond(
    domain: &Domain,
    disk: &Disk,
    bus: TargetBus,
    place: &DriveAddress,
) -> Option<(&'static str, &'static str)> {
    let DriveAddress {
        controller,
        bus: channel,
        target,
        unit: _,
    } = *place;
    let is_beyond = match bus {
        TargetBus::Scsi if channel != 0 => ("a SCSI controller has one bus", "use `bus='0'`"),
        TargetBus::Scsi if target != 0 && is_lsilogic(domain, disk) => (
            "an LSI controller has one target",
            "use `target='0'` with a `unit` of its own, or `<controller type='scsi' model='virtio-scsi'/>`",
        ),
        TargetBus::Ide if controller != 0 => (
            ONE_IDE,
            "use `controller='0'`, or move the disk to another bus",
        ),
        TargetBus::Ide if target != 0 => ("IDE has no targets", "use `target='0'`"),
        TargetBus::Fdc if controller != 0 => (ONE_FLOPPY, "use `controller='0'`"),
        TargetBus::Fdc if target != 0 => ("floppy drives have no targets", "use `target='0'`"),
        TargetBus::Sata if channel != 0 => (
            "a SATA controller has one bus, with six units",
            "use `bus='0'` and another unit",
        ),
        TargetBus::Sata if target != 0 => ("SATA has no targets", "use `target='0'`"),
        _ => return None,
    };
    Some(is_beyond)
}

/// True if a SCSI disk is attached to an emulated LSI controller; `None` if that is not known.
fn is_lsilogic(domain: &Domain, disk: &Disk) -> bool {
    let written = domain
        .scsi_controller_of(disk)
        .and_then(|controller| controller.scsi_model)
        .filter(|model| *model != ScsiControllerModel::Auto);
    let is_known = written.is_some() || domain.architecture.is_some();
    is_known && domain.scsi_model_of(disk) == ScsiControllerModel::Lsilogic
}
