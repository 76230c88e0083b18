//! `disk-address-refused`

use std::collections::{HashMap, HashSet};

use vmdisk_fields::{DiskName, phrase};
use vmdisk_model::{Address, Disk, DiskField, DriveAddress, FieldPath, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The address of a disk does not fit its bus, or another disk has the same address.
    ///
    /// ## What it reports
    /// Reports addresses of a type that the bus does not support (ide, scsi, sata and fdc need drive addresses, usb
    /// needs ports, virtio needs PCI or CCW slots), the type `unassigned` on a PC, and two disks with the same drive
    /// address on one bus, set in the configuration or derived from their target names.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest. A disk without an address gets one from its target name, so `sdb` can collide with
    /// the address of another disk.
    ///
    /// ## Use instead
    /// Remove the address, and libvirt assigns one. Inside the guest, device paths that contain the address can change.
    /// Otherwise use an unused unit of the same controller.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <address type='drive' controller='0' bus='0' target='0' unit='0'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <address type='drive' controller='0' bus='0' target='0' unit='0'/>
    /// </disk>
    /// ```
    name: "disk-address-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("Invalid address type '…' for the disk '…' with the bus type '…'", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("unexpected address type for … disk", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
        Evidence::refused_by_libvirt("CCW addresses are not supported by machine type '…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddress"),
        Evidence::refused_by_libvirt("cannot use CCW address type for device", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddress (9.0)"),
        Evidence::refused_by_libvirt("virtio disk cannot have an address of type '…'", "src/qemu/qemu_domain_address.c, qemuDomainAssignDevicePCISlots"),
        Evidence::refused_by_libvirt("using disk target name '…' conflicts with SCSI host device address", "src/conf/domain_conf.c, virDomainDiskDefAssignAddress"),
        Evidence::refused_by_libvirt("SCSI host address controller='…' bus='…' target='…' unit='…' in use by a SCSI disk", "src/conf/domain_postparse.c, virDomainHostdevDefPostParse"),
        Evidence::refused_by_libvirt_in_documents("SCSI host address controller='…' bus='…' target='…' unit='…' in use by another SCSI disk", "src/conf/domain_validate.c, virDomainDefDuplicateDriveAddressesValidate; an earlier check reports it with another message"),
        Evidence::refused_by_libvirt("Found duplicate drive address for disk with target name '…' controller='…' bus='…' target='…' unit='…'", "src/conf/domain_validate.c, virDomainDefDuplicateDriveAddressesValidate"),
    ],
    check: Model(check),
}

/// The reason why two disks can collide.
const DERIVED: &str =
    "libvirt refuses the guest; a disk without an address gets one from its target name";

fn check(context: &Context<'_>, report: &mut Report) {
    let mut taken: HashMap<(TargetBus, DriveAddress), usize> = HashMap::new();
    let of_host: HashSet<DriveAddress> = context.domain.scsi_host_devices.iter().copied().collect();
    for (index, disk) in context.disks() {
        let bus = disk.frontend.effective_bus();
        let at = FieldPath::Disk(index, DiskField::Address);
        if let Some(address) = &disk.frontend.address
            && let Some(needed) = needed_type(bus, address).or_else(|| on_pc(context, address))
        {
            report
                .finding(
                    at,
                    phrase!(
                        "{disk} has an address of a type that bus `{bus}` does not support",
                        bus = bus.as_str(),
                    ),
                )
                .label(phrase!("this needs a {needed} address", needed))
                .help(phrase!(
                    "use a {needed} address, or remove {address} and let libvirt assign one",
                    needed,
                    address = at,
                ));
            continue;
        }
        let Some(place) = place_of(disk, bus) else {
            continue;
        };
        let at = written_place(index, disk);
        if bus == TargetBus::Scsi && of_host.contains(&place) {
            report
                .finding(
                    at,
                    phrase!("{disk} and a SCSI device of the host have the same address"),
                )
                .label(format!(
                    "controller {}, unit {}",
                    place.controller, place.unit
                ))
                .note(DERIVED)
                .help("use another unit for one of them");
            continue;
        }
        let Some(first) = taken.insert((bus, place), index) else {
            continue;
        };
        let other_disk = &context.domain.disks[first];
        let DriveAddress {
            controller,
            bus: channel,
            target,
            unit,
        } = place;
        report
            .finding(
                at,
                phrase!(
                    "{disk} and {other} have the same address on bus `{bus}`",
                    other = DiskName(first),
                    bus = bus.as_str(),
                ),
            )
            .label(format!(
                "controller {controller}, bus {channel}, target {target}, unit {unit}"
            ))
            .related(
                written_place(first, other_disk),
                phrase!("also used by {other}", other = DiskName(first)),
            )
            .note(DERIVED)
            .help("use another unit for one of them, or remove both addresses");
    }
}

/// The type of address that the bus needs, if this is another.
fn needed_type(bus: TargetBus, address: &Address) -> Option<&'static str> {
    let (is_supported, needed) = match bus {
        TargetBus::Ide | TargetBus::Scsi | TargetBus::Sata | TargetBus::Fdc => {
            (matches!(address, Address::Drive(_)), "drive")
        }
        TargetBus::Usb => (matches!(address, Address::Usb(_)), "USB"),
        TargetBus::Virtio => {
            let is_refused = matches!(
                address,
                Address::Drive(_) | Address::Usb(_) | Address::SpaprVio(_)
            );
            (!is_refused, "PCI")
        }
        _ => return None,
    };
    (!is_supported).then_some(needed)
}

/// The type of address that a PC needs instead of a CCW address or one of type `unassigned`, which only passed-through
/// devices can have.
fn on_pc(context: &Context<'_>, address: &Address) -> Option<&'static str> {
    let machine = context.domain.machine.as_ref();
    let is_pc = machine.is_some_and(|machine| machine.is_q35() || machine.is_i440fx());
    (is_pc && matches!(address, Address::Ccw(_) | Address::Unassigned)).then_some("PCI")
}

/// The field that decides the address of a disk: the address, or the target name if there is none.
fn written_place(index: usize, disk: &Disk) -> FieldPath {
    let field = match disk.frontend.address {
        Some(_) => DiskField::Address,
        None => DiskField::TargetDev,
    };
    FieldPath::Disk(index, field)
}

/// The place of a disk on its controller.
fn place_of(disk: &Disk, bus: TargetBus) -> Option<DriveAddress> {
    match &disk.frontend.address {
        Some(Address::Drive(place)) => Some(*place),
        Some(_) => None,
        None => DriveAddress::of_target(bus, disk.frontend.target.as_deref()?),
    }
}
