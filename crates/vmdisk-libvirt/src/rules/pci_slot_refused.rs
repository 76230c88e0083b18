//! `pci-slot-refused`

use vmdisk_model::{DiskField, FieldPath};
use vmdisk_rule::{Evidence, Group, Problem, Severity, declare_rule};

use super::device_address::{name_of, pci_address};
use super::xml::Xml;

declare_rule! {
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
    pub(super) static RULE = {
        name: "pci-slot-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
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
        supersedes: &[],
        check: Text,
    }
}

pub(super) fn check(xml: &Xml<'_>, problems: &mut Vec<Problem>) {
    let Some(devices) = xml.devices() else {
        return;
    };
    let disks = devices.children().filter(|node| node.name() == "disk");
    for (nth, disk) in disks.enumerate() {
        let Some((element, (0, bus, slot, _))) = pci_address(disk) else {
            continue;
        };
        let mut controllers = devices.children().filter(|node| {
            let index = node.attribute("index").and_then(|index| index.parse().ok());
            node.name() == "controller"
                && node.attribute("type") == Some("pci")
                && index == Some(bus)
        });
        let model = controllers.next().and_then(|node| node.attribute("model"));
        let Some((what, slots)) = missing_slot(model, slot) else {
            continue;
        };
        let at = FieldPath::Disk(nth, DiskField::Address);
        let message = format!(
            "{} is in PCI slot {slot}, but {what} has {slots}",
            name_of(disk)
        );
        let mut problem = Problem::new(&RULE, at, element.tag(), message);
        problem.help = Some("remove the address; libvirt assigns a free one".to_owned());
        problems.push(problem);
    }
}

/// The model of a controller and the slots that it has, if this is another.
fn missing_slot(model: Option<&str>, slot: u32) -> Option<(&'static str, &'static str)> {
    let (what, slots, is_there) = match model? {
        "pcie-root-port" => ("a PCIe root port", "only slot 0", slot == 0),
        "pcie-switch-downstream-port" => ("a port of a PCIe switch", "only slot 0", slot == 0),
        "pci-bridge" => ("a PCI bridge", "the slots 1 to 31", slot > 0),
        "pcie-to-pci-bridge" => ("a PCIe-to-PCI bridge", "the slots 1 to 31", slot > 0),
        _ => return None,
    };
    (!is_there).then_some((what, slots))
}
