//! `pci-slot-refused`

use std::collections::BTreeMap;

use vmdisk_fields::phrase;
use vmdisk_model::{DiskField, FieldPath};
use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::xml::{Xml, xml_rule};
use crate::device_address::pci_address;
use crate::xml::Node;

xml_rule! {
    /// A disk is in a PCI slot that its bus does not have.
    ///
    /// ## What it reports
    /// Reports disks with a PCI address on a bus whose controller is in the configuration and has no such slot: a PCIe
    /// root port and a port of a PCIe switch have slot 0 only, and a PCI bridge has the slots 1 to 31. A bus whose
    /// controller is not written is not checked, because libvirt adds it.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest.
    ///
    /// ## Use instead
    /// Remove the `<address>`: libvirt assigns a free slot. Inside the guest, device paths that contain the address can
    /// change.
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
    ///     <controller type='pci' index='1' model='pcie-root-port'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x01' slot='0x02' function='0x0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <controller type='pci' index='1' model='pcie-root-port'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "pci-slot-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt(
            "Invalid PCI address …. slot must be <= …",
            "src/conf/domain_addr.c, virDomainPCIAddressValidate",
        ),
        Evidence::refused_by_libvirt(
            "Invalid PCI address …. slot must be >= …",
            "src/conf/domain_addr.c, virDomainPCIAddressValidate",
        ),
    ],
    check: Text(check),
}

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    let Some(devices) = xml.devices() else {
        return;
    };
    let mut models: Option<BTreeMap<u32, &str>> = None;
    for (nth, disk) in xml.disks() {
        // Bus 0 is the machine's own.
        let Some((element, (0, bus @ 1.., slot, _))) = pci_address(disk) else {
            continue;
        };
        let models = models.get_or_insert_with(|| models_of(devices));
        let missing = models.get(&bus).and_then(|model| missing_slot(model, slot));
        let Some((what, slots)) = missing else {
            continue;
        };
        let at = FieldPath::Disk(nth, DiskField::Address);
        let message = phrase!(
            "{disk} is in PCI slot {slot}, but {what} has {slots}",
            slot,
            what,
            slots
        );
        report
            .finding(at, message)
            .span(element.tag())
            .help("remove the address; libvirt assigns a free one");
    }
}

/// The models of the PCI controllers, by the numbers of their buses.
fn models_of<'d>(devices: Node<'d>) -> BTreeMap<u32, &'d str> {
    let controllers = devices
        .children()
        .filter(|node| node.is_named("controller") && node.attribute("type") == Some("pci"));
    controllers
        .filter_map(|node| {
            let bus = node.attribute("index")?.parse().ok()?;
            Some((bus, node.attribute("model")?))
        })
        .collect()
}

/// The model of a controller and the slots that it has, if this is another.
fn missing_slot(model: &str, slot: u32) -> Option<(&'static str, &'static str)> {
    let (what, slots, is_there) = match model {
        "pcie-root-port" => ("a PCIe root port", "only slot 0", slot == 0),
        "pcie-switch-downstream-port" => ("a port of a PCIe switch", "only slot 0", slot == 0),
        "pci-bridge" => ("a PCI bridge", "the slots 1 to 31", slot > 0),
        "pcie-to-pci-bridge" => ("a PCIe-to-PCI bridge", "the slots 1 to 31", slot > 0),
        _ => return None,
    };
    (!is_there).then_some((what, slots))
}
