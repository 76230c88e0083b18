//! Buses of a guest, and the addresses on them that devices use.

use std::collections::{HashMap, HashSet};

use vmdisk_source::Span;

use super::line::{Line, base_of};
use crate::index::Index;
use crate::members::Members;
use crate::syntax::properties::{Property, Syntax};
use crate::syntax::value::{is_on, number_of};
use vmdisk_model::{Architecture, Board};

/// The parts of a guest that addresses depend on.
pub(super) struct Present<'a> {
    /// The devices with an id.
    pub(super) ids: HashMap<&'a str, PresentDevice<'a>>,
    /// The kinds of buses whose names QEMU chooses, because their devices have no id.
    pub(super) unnamed: HashSet<BusKind>,
    /// When the first SCSI controller is created, and the first USB controller that is a `-device`.
    pub(super) first_scsi: Option<CreationOrder>,
    pub(super) first_usb: Option<CreationOrder>,
    pub(super) root_ports: HashSet<&'a str>,
    pub(super) drivers: HashSet<&'a str>,
    pub(super) has_emulated_scsi: bool,
    pub(super) has_usb_option: bool,
    /// True if a device needs PCI on a board without it.
    pub(super) has_pcie: bool,
}

impl<'a> Present<'a> {
    pub(super) fn of(index: &Index<'a>) -> Self {
        let is_root_port = |driver: &str| matches!(driver, "pcie-root-port" | "ioh3420");
        let ids = |is_wanted: &dyn Fn(&str) -> bool| -> HashSet<&'a str> {
            let devices = index.devices();
            devices
                .filter(|(_, driver, _)| is_wanted(driver))
                .filter_map(|(_, _, device)| device.value("id"))
                .collect()
        };
        let drivers: HashSet<&'a str> = index
            .devices()
            .map(|(_, driver, _)| base_of(driver))
            .collect();
        let has = |wanted: &[&str]| wanted.iter().any(|name| drivers.contains(name));
        let has_emulated_scsi = has(&EMULATED_SCSI);
        let is_machine_with = |key| {
            let mut machines = index.machines();
            machines.any(|(_, machine)| is_on(machine.get(key)))
        };
        let has_usb_option = index.has("usb") || index.has("usbdevice") || is_machine_with("usb");
        let first = |is_wanted: &dyn Fn(&str) -> bool| {
            // Seldom one, and then of many devices.
            drivers.iter().find(|driver| is_wanted(driver))?;
            let devices = index.devices();
            let wanted = devices.filter(|(_, driver, _)| is_wanted(base_of(driver)));
            wanted
                .map(|(nth, _, device)| CreationOrder::of(nth, device))
                .min()
        };
        let is_scsi = |base: &str| EMULATED_SCSI.contains(&base) || OTHER_SCSI.contains(&base);
        Present {
            first_scsi: first(&is_scsi),
            first_usb: first(&is_usb),
            ids: index
                .devices()
                .filter_map(|(nth, driver, device)| {
                    let created = CreationOrder::of(nth, device);
                    Some((device.value("id")?, PresentDevice { driver, created }))
                })
                .collect(),
            unnamed: index
                .devices()
                .filter(|(_, _, device)| device.get("id").is_none())
                .filter_map(|(_, driver, _)| BusKind::provided_by(driver))
                .chain(has_usb_option.then_some(BusKind::Usb))
                .collect(),
            root_ports: ids(&is_root_port),
            has_emulated_scsi,
            has_usb_option,
            has_pcie: is_machine_with("pcie"),
            drivers,
        }
    }
}

/// A device with an id.
#[derive(Clone, Copy)]
pub(super) struct PresentDevice<'a> {
    pub(super) driver: &'a str,
    pub(super) created: CreationOrder,
}

/// The order in which QEMU creates devices: in the order of the options, and devices in JSON after all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CreationOrder {
    pub(super) is_json: bool,
    option: usize,
}

impl CreationOrder {
    pub(super) fn of(option: usize, device: Members<'_>) -> Self {
        CreationOrder {
            is_json: matches!(device.properties().syntax, Syntax::Json { .. }),
            option,
        }
    }
}

vmdisk_source::words! {
    /// The kind of a bus for disks and their controllers.
    pub(super) enum BusKind as name {
        Pci = "PCI",
        Ide = "IDE",
        Scsi = "SCSI",
        Usb = "USB",
        Nvme = "NVMe",
        Floppy = "floppy",
        Isa = "ISA",
    }
}

impl BusKind {
    /// The bus that a device provides, if vmdisk knows the device.
    pub(super) fn provided_by(driver: &str) -> Option<Self> {
        Some(match base_of(driver) {
            "pcie-root-port" | "ioh3420" | "x3130-upstream" | "xio3130-downstream"
            | "pci-bridge" | "pcie-pci-bridge" | "i82801b11-bridge" | "pxb" | "pxb-pcie" => {
                BusKind::Pci
            }
            "ahci" | "ich9-ahci" => BusKind::Ide,
            "nvme" => BusKind::Nvme,
            "isa-fdc" => BusKind::Floppy,
            base if EMULATED_SCSI.contains(&base) || OTHER_SCSI.contains(&base) => BusKind::Scsi,
            _ if is_usb(driver) => BusKind::Usb,
            _ => return None,
        })
    }

    /// The bus that a device is attached to.
    pub(super) fn of_device(line: &Line<'_>, driver: &str) -> Option<Self> {
        Some(match base_of(driver) {
            _ if is_pci(line, driver) => BusKind::Pci,
            "floppy" => BusKind::Floppy,
            "nvme-ns" => BusKind::Nvme,
            "usb-storage" | "usb-bot" | "usb-uas" => BusKind::Usb,
            base if is_scsi_disk(base) => BusKind::Scsi,
            base if is_ide_disk(base) => BusKind::Ide,
            _ => return None,
        })
    }

    /// The kind of a bus with a name that QEMU chose, without its number.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "pci" | "pcie" => BusKind::Pci,
            "ide" => BusKind::Ide,
            "scsi" => BusKind::Scsi,
            "usb-bus" => BusKind::Usb,
            "nvme-bus" => BusKind::Nvme,
            "floppy-bus" => BusKind::Floppy,
            "isa" => BusKind::Isa,
            _ => return None,
        })
    }

    /// True if the bus of a device with an id has that name; otherwise a number follows.
    pub(super) const fn is_named_by_id(self) -> bool {
        matches!(self, BusKind::Pci | BusKind::Nvme)
    }
}

/// True for USB controllers.
fn is_usb(driver: &str) -> bool {
    let kinds = ["xhci", "ehci", "uhci", "ohci"];
    kinds.iter().any(|kind| driver.contains(kind))
}

/// A number of a device, with its span.
pub(super) fn number(device: Members<'_>, key: &str) -> Option<(u64, Span)> {
    let property = device.get(key)?;
    Some((number_of(property.value.as_str())?, property.span))
}

/// SCSI controllers other than virtio-scsi.
const EMULATED_SCSI: [&str; 11] = [
    "lsi",
    "lsi53c895a",
    "lsi53c810",
    "megasas",
    "megasas-gen2",
    "mptsas1068",
    "pvscsi",
    "dc390",
    "am53c974",
    "esp",
    "spapr-vscsi",
];

/// SCSI controllers other than virtio-scsi.
const OTHER_SCSI: [&str; 5] = [
    "virtio-scsi",
    "vhost-scsi",
    "vhost-user-scsi",
    "usb-bot",
    "usb-uas",
];

/// An address on an IDE or SATA bus.
pub(super) struct IdePlace<'a> {
    /// The bus.
    pub(super) bus: &'a str,
    /// True if the option names the bus.
    pub(super) names_bus: bool,
    /// The span of the bus, or of the device.
    pub(super) span: Span,
    port: Option<u64>,
    /// The unit, with its span.
    pub(super) unit: Option<(u64, Span)>,
    /// The number of units of the bus.
    pub(super) units: u64,
    buses: u64,
}

impl<'a> IdePlace<'a> {
    /// The address of a device; `None` for a machine whose buses are not known.
    pub(super) fn of(
        line: &Line<'a>,
        device: Members<'a>,
        present: &Present<'a>,
        span: Span,
    ) -> Option<Self> {
        let (units, buses) = match line.board() {
            Board::Q35 => (1, 6),
            Board::I440fx => (2, 2),
            _ => return None,
        };
        if !line.has_machine() {
            return None;
        }
        let bus = device.get("bus");
        // Without a bus QEMU uses the first one, even if it is full.
        let name = bus.map_or("ide.0", |bus| bus.value.as_str());
        let (owner, port) = name.rsplit_once('.')?;
        // A disk has an id, and no bus.
        let has_bus = |owner: &PresentDevice<'_>| BusKind::provided_by(owner.driver).is_some();
        let (units, buses) = if present.ids.get(owner).is_some_and(has_bus) {
            (1, 6)
        } else {
            (units, buses)
        };
        let port = port.parse().ok();
        // The buses of a controller without an id continue the numbers of the built-in ones.
        let is_built_in = port.is_none_or(|port| port < buses);
        if !is_built_in && present.unnamed.contains(&BusKind::Ide) {
            return None;
        }
        Some(IdePlace {
            bus: name,
            names_bus: bus.is_some(),
            span: bus.map_or(span, |bus| bus.span),
            port,
            unit: number(device, "unit"),
            units,
            buses,
        })
    }

    /// A number that is out of range: the span, the message and the largest valid number.
    pub(super) fn excess(&self) -> Option<(Span, String, u64)> {
        let IdePlace {
            bus, units, buses, ..
        } = self;
        if self.port.is_some_and(|port| port >= *buses) {
            return Some((self.span, format!("bus `{bus}` does not exist"), buses - 1));
        }
        let (number, at) = self.unit.filter(|(unit, _)| unit >= units)?;
        let plural = if *units == 1 { "unit" } else { "units" };
        let message = format!("`{bus}` has {units} {plural}, but no unit {number}");
        Some((at, message, units - 1))
    }
}

/// True for drivers of disks on SCSI, IDE or SATA.
pub(super) fn is_scsi_disk(base: &str) -> bool {
    matches!(
        base,
        "scsi-hd" | "scsi-cd" | "scsi-disk" | "scsi-block" | "scsi-generic"
    )
}

/// True for disks on IDE or SATA.
pub(super) fn is_ide_disk(base: &str) -> bool {
    matches!(base, "ide-hd" | "ide-cd" | "ide-drive")
}

/// The maximum number of namespaces of an NVMe controller.
pub(super) const MAX_NAMESPACE: u64 = 256;

/// The last slot of a PCI bus.
pub(super) const MAX_PCI_SLOT: u64 = 31;

/// The virtio devices that QEMU also knows without a transport, from its `qdev_alias_table`.
const VIRTIO_ALIASES: [&str; 15] = [
    "virtio-9p",
    "virtio-balloon",
    "virtio-blk",
    "virtio-gpu",
    "virtio-gpu-gl",
    "virtio-input-host",
    "virtio-iommu",
    "virtio-keyboard",
    "virtio-mouse",
    "virtio-net",
    "virtio-rng",
    "virtio-scsi",
    "virtio-serial",
    "virtio-sound",
    "virtio-tablet",
];

/// True for a name whose transport depends on the machine, and is PCI on this one.
fn is_pci_alias(line: &Line<'_>, driver: &str) -> bool {
    let is_other = line.board() == Board::Ccw
        || line.domain().architecture == Some(Architecture::M68k)
        || !line.has_machine();
    !is_other && VIRTIO_ALIASES.contains(&driver)
}

/// True for a device whose name, or whose alias on this machine, says that it is on PCI.
pub(super) fn is_pci_by_name(line: &Line<'_>, driver: &str) -> bool {
    let ends = ["-pci", "-pci-transitional", "-pci-non-transitional"];
    ends.iter().any(|end| driver.ends_with(end)) || is_pci_alias(line, driver)
}

/// True for devices that are certainly on PCI; others are not counted.
pub(super) fn is_pci(line: &Line<'_>, driver: &str) -> bool {
    is_pci_by_name(line, driver)
        || matches!(
            driver,
            "nvme"
                | "pcie-root-port"
                | "ioh3420"
                | "qemu-xhci"
                | "nec-usb-xhci"
                | "lsi53c895a"
                | "megasas"
                | "mptsas1068"
                | "pvscsi"
                | "e1000"
                | "e1000e"
        )
}

/// The slot and function of an address.
pub(super) fn slot_of(property: &Property) -> Option<(u64, u64)> {
    let text = property.value.as_str();
    let (slot, function) = text.split_once('.').unwrap_or((text, "0"));
    let part = |text: &str| {
        // QEMU parses the parts as hexadecimal, with or without a prefix.
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u64::from_str_radix(digits, 16).ok()
    };
    Some((part(slot)?, part(function)?))
}

/// The span of a device: its driver, or the whole option.
pub(super) fn span_of(line: &Line<'_>, option: usize, device: Members<'_>) -> Span {
    let driver = device.get("driver");
    driver.map_or(line.index.span(option), |driver| driver.span)
}

/// The span of a device on PCI: its address, if it is set.
pub(super) fn pci_span(device: Members<'_>, span: Span) -> Span {
    let said = device.get("addr").or(device.get("bus"));
    said.map_or(span, |said| said.span)
}
