//! `taken-by-other-device`

use std::collections::BTreeMap;

use vmdisk_fields::phrase;
use vmdisk_model::{DiskField, DomainField, FieldPath};
use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::xml::{Xml, xml_rule};
use crate::device_address::{PciPlace, pci_address};
use crate::passthrough::part;
use crate::xml::Node;

xml_rule! {
    /// A disk has the PCI address or the place in the boot order of a device that is not a disk.
    ///
    /// ## What it reports
    /// Reports disks with a PCI address that a network interface, a host device or another device of the guest has, and
    /// disks with the `<boot order='…'/>` of such a device. Also reports two devices in `<qemu:commandline>` with the same
    /// `bus=` and `addr=`. `address-twice` and `boot-order-twice` compare disks with one
    /// another and with their controllers.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest. It does not read `<qemu:commandline>`: there QEMU refuses the second device, `PCI: slot 6
    /// function 0 not available for nvme, in use by nvme`.
    ///
    /// ## Use instead
    /// Remove one of the addresses: libvirt assigns a free one. Give each device its own place in the boot order.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <boot order='1'/>
    ///     </disk>
    ///     <interface type='user'>
    ///       <model type='virtio'/>
    ///       <boot order='1'/>
    ///     </interface>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ```xml,reported
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-device'/>
    ///     <qemu:arg value='nvme,drive=a,serial=a,bus=pcie.0,addr=6'/>
    ///     <qemu:arg value='-device'/>
    ///     <qemu:arg value='nvme,drive=b,serial=b,bus=pcie.0,addr=0x6.0'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,hidden
    /// <domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <qemu:commandline>
    ///     <qemu:arg value='-device'/>
    ///     <qemu:arg value='nvme,drive=a,serial=a,bus=pcie.0,addr=6,multifunction=on'/>
    ///     <qemu:arg value='-device'/>
    ///     <qemu:arg value='nvme,drive=b,serial=b,bus=pcie.0,addr=6.1'/>
    ///     <qemu:arg value='-device'/>
    ///     <qemu:arg value='nvme,drive=c,serial=c,bus=rp1,addr=6'/>
    ///   </qemu:commandline>
    /// </domain>
    /// ```
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <boot order='1'/>
    ///     </disk>
    ///     <interface type='user'>
    ///       <model type='virtio'/>
    ///       <boot order='2'/>
    ///     </interface>
    ///   </devices>
    /// </domain>
    /// ```
    name: "taken-by-other-device",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt(
            "Attempted double use of PCI Address …",
            "src/conf/domain_addr.c, virDomainPCIAddressReserveAddrInternal",
        ),
        Evidence::refused_by_libvirt(
            "boot order '…' used for more than one device",
            "src/conf/domain_postparse.c, virDomainDefCollectBootOrder",
        ),
    ],
    check: Text(check),
}

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    passed_through(xml, report);
    let Some(devices) = xml.devices() else {
        return;
    };
    let mut others: Option<Others<'_>> = None;
    for (nth, disk) in xml.disks() {
        let (address, order) = (pci_address(disk), boot_order(disk));
        if address.is_none() && order.is_none() {
            continue;
        }
        let others = others.get_or_insert_with(|| Others::of(devices));
        if let Some((element, place)) = address
            && let Some(other) = others.by_address.get(&place)
        {
            let message = phrase!(
                "{disk} has the PCI address of `<{other}>`",
                other = other.name().to_owned()
            );
            let at = FieldPath::Disk(nth, DiskField::Address);
            report
                .finding(at, message)
                .span(element.tag())
                .help("remove one of the addresses; libvirt assigns a free one");
        }
        if let Some((element, order)) = order
            && let Some(other) = others.by_order.get(order)
        {
            let message = phrase!(
                "{disk} has the boot order of `<{other}>`",
                other = other.name().to_owned()
            );
            let at = FieldPath::Disk(nth, DiskField::BootOrder);
            report
                .finding(at, message)
                .span(element.tag())
                .help("give each device its own number");
        }
    }
}

/// Devices in `<qemu:commandline>` with one place.
fn passed_through(xml: &Xml<'_>, report: &mut Report) {
    let mut taken: BTreeMap<(&str, u32, u32), &str> = BTreeMap::new();
    for (device, span) in &xml.passthrough.devices {
        let Some((slot, function)) = part(device, "addr").and_then(slot_of) else {
            continue;
        };
        let driver = device.split(',').next().unwrap_or_default();
        let place = (part(device, "bus").unwrap_or_default(), slot, function);
        let Some(other) = taken.insert(place, driver) else {
            continue;
        };
        let message =
            format!("`{driver}` in `<qemu:commandline>` has the slot {slot:#x} of `{other}`");
        report
            .finding(FieldPath::Domain(DomainField::Domain), message)
            .span(*span)
            .note("QEMU says `slot … function … not available`, and does not start")
            .help("give it another `addr=`");
    }
}

/// Slot and function of `addr=`, in hexadecimal.
fn slot_of(address: &str) -> Option<(u32, u32)> {
    let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    match address.split_once('.') {
        Some((slot, function)) => Some((number(slot)?, number(function)?)),
        None => Some((number(address)?, 0)),
    }
}

/// The devices that are neither disks nor their controllers.
struct Others<'d> {
    by_address: BTreeMap<PciPlace, Node<'d>>,
    by_order: BTreeMap<&'d str, Node<'d>>,
}

impl<'d> Others<'d> {
    fn of(devices: Node<'d>) -> Self {
        let mut others = Others {
            by_address: BTreeMap::new(),
            by_order: BTreeMap::new(),
        };
        for device in devices.children() {
            if matches!(device.name(), "disk" | "controller") {
                continue;
            }
            if let Some((_, place)) = pci_address(device) {
                others.by_address.entry(place).or_insert(device);
            }
            if let Some((_, order)) = boot_order(device) {
                others.by_order.entry(order).or_insert(device);
            }
        }
        others
    }
}

/// The place of a device in the boot order, with its element.
fn boot_order(device: Node<'_>) -> Option<(Node<'_>, &str)> {
    let boot = device.child("boot")?;
    Some((boot, boot.attribute("order")?))
}
