//! `disk-address-refused`

use std::collections::{HashMap, HashSet};

use vmdisk_model::{Address, Disk, DiskField, DriveAddress, FieldPath, TargetBus};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// The address of a disk is of a kind that its bus does not have, or another disk has it.
    ///
    /// ## What it does
    /// Reports addresses of another kind than the bus has (drive on ide, scsi, sata and fdc, a port on usb, a slot
    /// on virtio), and two disks on one bus at one drive address, written or counted out from their names.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest. A disk without an address gets the one its name stands for, so that `sdb` and an
    /// address written for another disk can meet.
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
    pub(super) static RULE = {
        name: "disk-address-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("Invalid address type '…' for the disk '…' with the bus type '…'", "src/conf/domain_validate.c, virDomainDiskAddressDiskBusCompatibility"),
            Evidence::refused_by_libvirt("unexpected address type for … disk", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
            Evidence::refused_by_libvirt("CCW addresses are not supported by machine type '…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefAddress"),
            Evidence::refused_by_libvirt("cannot use CCW address type for device", "src/qemu/qemu_domain_address.c, qemuDomainAssignCCWAddresses"),
            Evidence::refused_by_libvirt("virtio disk cannot have an address of type '…'", "src/qemu/qemu_domain_address.c, qemuDomainAssignDevicePCISlots"),
            Evidence::refused_by_libvirt("using disk target name '…' conflicts with SCSI host device address", "src/conf/domain_conf.c, virDomainDiskDefAssignAddress"),
            Evidence::refused_by_libvirt("SCSI host address controller='…' bus='…' target='…' unit='…' in use by a SCSI disk", "src/conf/domain_postparse.c, virDomainHostdevDefPostParse"),
            Evidence::refused_by_libvirt_in_documents("SCSI host address controller='…' bus='…' target='…' unit='…' in use by another SCSI disk", "src/conf/domain_validate.c, virDomainDefDuplicateDriveAddressesValidate; an earlier check says it in other words"),
            Evidence::refused_by_libvirt("Found duplicate drive address for disk with target name '…' controller='…' bus='…' target='…' unit='…'", "src/conf/domain_validate.c, virDomainDefDuplicateDriveAddressesValidate"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut taken: HashMap<(TargetBus, DriveAddress), usize> = HashMap::new();
    let of_host: HashSet<DriveAddress> = context.domain.scsi_host_devices.iter().copied().collect();
    for (index, disk) in context.disks() {
        let bus = disk.frontend.effective_bus();
        let at = FieldPath::Disk(index, DiskField::Address);
        if let Some(address) = &disk.frontend.address
            && let Some(kinds) = wrong(bus, address).or_else(|| not_on_a_pc(context, address))
        {
            report
                .finding(
                    at,
                    format!(
                        "the address of `{}` is of a kind that bus '{bus}' does not have",
                        disk.name()
                    ),
                )
                .label(format!("bus '{bus}' has {kinds}"))
                .note("libvirt refuses the guest for it")
                .help(format!(
                    "write {kinds}, or no address, and libvirt finds one"
                ));
            continue;
        }
        let Some(place) = place_of(disk, bus) else {
            continue;
        };
        let at = written_place(index, disk);
        if bus == TargetBus::Scsi && of_host.contains(&place) {
            report
                .finding(at, format!("`{}` and a SCSI device of the host are at one place", disk.name()))
                .label(format!("controller {}, unit {}", place.controller, place.unit))
                .note("libvirt refuses the guest for it; a disk without an address is at the place its name stands for")
                .help("give one of them another unit");
            continue;
        }
        let Some(first) = taken.insert((bus, place), index) else {
            continue;
        };
        let other_disk = &context.domain.disks[first];
        let other = other_disk.name();
        let DriveAddress {
            controller,
            bus: channel,
            target,
            unit,
        } = place;
        report
            .finding(
                at,
                format!("`{}` and `{other}` are at one place of bus '{bus}'", disk.name()),
            )
            .label(format!("controller {controller}, bus {channel}, target {target}, unit {unit}"))
            .related(written_place(first, other_disk), format!("`{other}` is there"))
            .note("libvirt refuses the guest for it; a disk without an address is at the place its name stands for")
            .help("give one of them another unit, or leave both addresses to libvirt");
    }
}

/// The kinds of address that the bus has, if this is none.
fn wrong(bus: TargetBus, address: &Address) -> Option<&'static str> {
    match bus {
        TargetBus::Ide | TargetBus::Scsi | TargetBus::Sata | TargetBus::Fdc => match address {
            Address::Drive(_) => None,
            Address::Pci(_)
            | Address::Usb(_)
            | Address::Ccw(_)
            | Address::VirtioMmio
            | Address::SpaprVio(_)
            | Address::Unassigned
            | Address::Other(_) => Some("addresses of type 'drive'"),
        },
        TargetBus::Usb => match address {
            Address::Usb(_) => None,
            Address::Drive(_)
            | Address::Pci(_)
            | Address::Ccw(_)
            | Address::VirtioMmio
            | Address::SpaprVio(_)
            | Address::Unassigned
            | Address::Other(_) => Some("addresses of type 'usb'"),
        },
        TargetBus::Virtio => match address {
            Address::Pci(_)
            | Address::Ccw(_)
            | Address::VirtioMmio
            | Address::Unassigned
            | Address::Other(_) => None,
            Address::Drive(_) | Address::Usb(_) | Address::SpaprVio(_) => {
                Some("addresses of type 'pci'")
            }
        },
        TargetBus::Sd | TargetBus::Nvme | TargetBus::Xen | TargetBus::Uml => None,
    }
}

/// The kinds of address that the machine has, if it is a PC and this is none of a PC's.
fn not_on_a_pc(context: &Context<'_>, address: &Address) -> Option<&'static str> {
    let is_pc = context
        .domain
        .machine
        .as_ref()
        .is_some_and(|machine| machine.is_q35() || machine.is_i440fx());
    (is_pc && matches!(address, Address::Ccw(_))).then_some("addresses of type 'pci' on a PC")
}

/// What says where a disk is: its address, or its name where it has none.
fn written_place(index: usize, disk: &Disk) -> FieldPath {
    let field = match disk.frontend.address {
        Some(_) => DiskField::Address,
        None => DiskField::TargetDev,
    };
    FieldPath::Disk(index, field)
}

/// Where a disk sits on a controller.
fn place_of(disk: &Disk, bus: TargetBus) -> Option<DriveAddress> {
    match &disk.frontend.address {
        Some(Address::Drive(place)) => Some(*place),
        Some(_) => None,
        None => DriveAddress::of_target(bus, disk.frontend.target.as_deref()?),
    }
}
