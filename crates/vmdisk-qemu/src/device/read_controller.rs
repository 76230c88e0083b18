//! Reads disk controllers, and which one a disk hangs on.

use std::collections::{HashMap, HashSet};

use vmdisk_fields::{self as fields, CONTROLLER_FIELDS, DeviceModel};
use vmdisk_model::{
    Address, CcwAddress, Controller, ControllerField, ControllerType, DiskField, DriveAddress,
    FieldKind, FieldPath, Fields, Frontend, PciAddress, ScsiControllerModel, Switch, TargetBus,
    UsbAddress,
};

use super::read::{DiskDriver, is_on};
use crate::board::Board;
use crate::reader::{Reader, number_of};
use crate::syntax::properties::{Properties, Property};

/// The buses of a machine by the id of the device that has them.
#[derive(Debug, Default)]
pub(crate) struct Buses<'a> {
    /// Controllers: their kind and their index.
    controllers: HashMap<&'a str, (ControllerType, u32)>,
    /// Options that are read.
    seen: HashSet<usize>,
    indexes: HashSet<(ControllerType, u32)>,
    next: HashMap<ControllerType, u32>,
    /// Serial numbers of NVMe controllers, which their namespaces share.
    serials: HashMap<&'a str, &'a str>,
    /// SCSI devices on USB, by id.
    bridges: HashMap<&'a str, &'a Properties>,
    /// Numbers of further PCI buses, by the id of their port or bridge.
    pci: HashMap<&'a str, u32>,
    /// Places on SCSI controllers that are taken: controller, channel, target, unit.
    scsi: HashSet<(u32, u32, u32, u32)>,
    /// Where to look for the next free target of a controller.
    next_target: HashMap<(u32, u32), u32>,
    /// Places of other kinds that are handed out in order.
    next_unit: HashMap<ControllerType, u32>,
    taken_units: HashSet<(ControllerType, u32, u32, u32)>,
}

/// The kind and model of a controller by its driver.
fn controller_driver(
    driver: &str,
) -> Option<(
    ControllerType,
    Option<ScsiControllerModel>,
    Option<&'static str>,
)> {
    use ScsiControllerModel as Scsi;
    let scsi = |model| Some((ControllerType::Scsi, Some(model), None));
    let usb = |model| Some((ControllerType::Usb, None, Some(model)));
    match driver {
        "virtio-scsi-pci" | "virtio-scsi-ccw" | "virtio-scsi-device" | "virtio-scsi" => {
            scsi(Scsi::VirtioScsi)
        }
        "virtio-scsi-pci-transitional" => scsi(Scsi::VirtioTransitional),
        "virtio-scsi-pci-non-transitional" => scsi(Scsi::VirtioNonTransitional),
        "lsi" | "lsi53c895a" => scsi(Scsi::Lsilogic),
        "mptsas1068" => scsi(Scsi::Lsisas1068),
        "megasas" => scsi(Scsi::Lsisas1078),
        "pvscsi" => scsi(Scsi::Vmpvscsi),
        "spapr-vscsi" => scsi(Scsi::Ibmvscsi),
        "dc390" => scsi(Scsi::Dc390),
        "am53c974" => scsi(Scsi::Am53c974),
        "ahci" | "ich9-ahci" => Some((ControllerType::Sata, None, None)),
        "isa-fdc" => Some((ControllerType::Fdc, None, None)),
        "nvme" => Some((ControllerType::Nvme, None, None)),
        "qemu-xhci" => usb("qemu-xhci"),
        "nec-usb-xhci" => usb("nec-xhci"),
        "usb-ehci" => usb("ehci"),
        "ich9-usb-ehci1" => usb("ich9-ehci1"),
        "ich9-usb-uhci1" => usb("ich9-uhci1"),
        "ich9-usb-uhci2" => usb("ich9-uhci2"),
        "ich9-usb-uhci3" => usb("ich9-uhci3"),
        "pci-ohci" => usb("pci-ohci"),
        "piix3-usb-uhci" => usb("piix3-uhci"),
        "piix4-usb-uhci" => usb("piix4-uhci"),
        "vt82c686b-usb-uhci" => usb("vt82c686b-uhci"),
        _ => None,
    }
}

impl<'a> Reader<'a> {
    /// Reads every controller, port and bridge.
    pub(crate) fn read_controllers(&mut self) {
        let devices = self.of_name("device");
        for (_, properties) in &devices {
            let driver = properties
                .peek("driver")
                .map(|driver| driver.value.as_str());
            let id = properties.peek("id").map(|id| id.value.as_str());
            match (driver, id) {
                (Some("usb-bot" | "usb-uas"), Some(id)) => {
                    self.buses.bridges.insert(id, properties);
                }
                (
                    Some("pcie-root-port" | "pcie-pci-bridge" | "pci-bridge" | "ioh3420"),
                    Some(id),
                ) => {
                    let own = id
                        .strip_prefix("pci.")
                        .and_then(|number| number.parse().ok());
                    let next = u32::try_from(self.buses.pci.len()).unwrap_or_default() + 1;
                    self.buses.pci.insert(id, own.unwrap_or(next));
                }
                _ => {}
            }
        }
        // Ids with a number in them first: the others take what is left.
        for named in [true, false] {
            for (option, properties) in &devices {
                self.read_controller(*option, properties, named);
            }
        }
    }

    fn read_controller(&mut self, option: usize, properties: &'a Properties, named: bool) {
        let Some((kind, scsi_model, other_model)) = properties
            .peek("driver")
            .and_then(|driver| controller_driver(driver.value.as_str()))
        else {
            return;
        };
        let id = properties.peek("id").map(|id| id.value.as_str());
        let master = properties
            .get("masterbus")
            .and_then(|bus| self.buses.controllers.get(device_of(bus.value.as_str())))
            .map(|(_, index)| *index);
        let is_built_in = kind == ControllerType::Sata && self.board == Board::Q35;
        let own = id.and_then(|id| {
            let rest = id.strip_prefix(kind.as_wire())?;
            let number = if rest.is_empty() && kind == ControllerType::Usb {
                Ok(0)
            } else {
                rest.parse()
            };
            number.ok().filter(|number| !(is_built_in && *number == 0))
        });
        let own = own.filter(|number| !self.buses.indexes.contains(&(kind, *number)));
        if own.is_some() != named || !self.buses.seen.insert(option) {
            return;
        }
        let index = master.or(own).unwrap_or_else(|| {
            let next = self
                .buses
                .next
                .entry(kind)
                .or_insert(u32::from(is_built_in));
            while self.buses.indexes.contains(&(kind, *next)) {
                *next += 1;
            }
            *next
        });
        self.buses.indexes.insert((kind, index));
        if let Some(id) = id {
            self.buses.controllers.entry(id).or_insert((kind, index));
            if let Some(serial) = properties.peek("serial") {
                self.buses.serials.insert(id, serial.value.as_str());
            }
        }
        if kind == ControllerType::Nvme && properties.peek("drive").is_some() {
            // Its disk is read with it.
            return;
        }
        let nth = self.domain.controllers.len();
        let at = |field| FieldPath::Controller(nth, field);
        self.owners.insert(option, at(ControllerField::Controller));
        self.slots.controller.insert(nth, option);
        self.record_option(at(ControllerField::Controller), option);
        for key in ["id", "serial", "p3", "streams"] {
            // The serial number is that of the disks.
            properties.get(key);
        }
        let own_name = properties
            .peek("id")
            .filter(|id| id.value.as_str().starts_with("ua-"));
        if let Some(id) = own_name {
            self.record(at(ControllerField::Alias), id);
        }
        if let Some(driver) = properties.get("driver") {
            self.record(at(ControllerField::ControllerType), driver);
            self.record(at(ControllerField::Model), driver);
        }
        let mut controller = Controller {
            scsi_model,
            other_model: other_model.map(str::to_owned),
            alias: own_name.map(|id| id.value.as_str().to_owned()),
            ..Controller::new(kind, index)
        };
        if scsi_model.is_some_and(ScsiControllerModel::is_virtio) {
            for field in CONTROLLER_FIELDS {
                let row = fields::controller(*field);
                let slot = controller.field_mut(*field);
                if let Some(slot) = slot.filter(|slot| slot.kind() != FieldKind::Structure)
                    && let Some(property) = row.virtio_scsi.and_then(|key| properties.get(key))
                {
                    self.read_value(at(*field), property, row, slot);
                }
            }
            controller.iothread_mapping =
                self.read_vq_mapping(properties, at(ControllerField::IoThreadMapping));
        }
        let numbers: [(ControllerField, &str, &mut Option<u32>); 3] = [
            (ControllerField::Ports, "p2", &mut controller.ports),
            (
                ControllerField::StartPort,
                "firstport",
                &mut controller.start_port,
            ),
            (
                ControllerField::AcpiIndex,
                "acpi-index",
                &mut controller.acpi_index,
            ),
        ];
        for (field, key, slot) in numbers {
            if let Some(property) = properties.get(key) {
                *slot = self.number32(at(field), property);
            }
        }
        if let Some(register) = properties
            .get("reg")
            .filter(|_| kind == ControllerType::Scsi)
        {
            let register = self.number32(at(ControllerField::Address), register);
            controller.address = register.map(Address::SpaprVio);
        } else {
            controller.address = self.read_pci(properties, at(ControllerField::Address));
        }
        self.domain.controllers.push(controller);
    }

    /// A place on a PCI bus, or on a channel of an IBM Z.
    pub(crate) fn read_pci(
        &mut self,
        properties: &'a Properties,
        at: FieldPath,
    ) -> Option<Address> {
        if let Some(property) = properties.get("devno") {
            self.record(at, property);
            return channel(property.value.as_str()).map(Address::Ccw);
        }
        let bus = properties.get("bus");
        let addr = properties.get("addr");
        let is_multifunction = properties.get("multifunction");
        if let Some(property) = addr.or(bus) {
            self.record(at, property);
        }
        let name = bus.map(|bus| bus.value.as_str());
        let port = name.and_then(|name| self.buses.pci.get(name)).copied();
        let number = match (port, name) {
            (Some(number), _) => number,
            (None, Some("pcie.0" | "pci.0") | None) => 0,
            (None, Some(other)) => other.strip_prefix("pci.")?.parse().ok()?,
        };
        let (slot, function) = match addr {
            Some(addr) => {
                let text = addr.value.as_str();
                let (slot, function) = text.split_once('.').unwrap_or((text, "0"));
                let part = |text: &str| {
                    let digits = text.strip_prefix("0x").unwrap_or(text);
                    u32::from_str_radix(digits, 16).ok()
                };
                (part(slot)?, part(function)?)
            }
            // A port has one slot.
            None => port.map(|_| (0, 0))?,
        };
        Some(Address::Pci(PciAddress {
            domain: 0,
            bus: number,
            slot,
            function,
            multifunction: is_multifunction.map(|property| {
                if is_on(Some(property)) {
                    Switch::On
                } else {
                    Switch::Off
                }
            }),
        }))
    }

    /// The place of a disk on its bus; hands back the bus, which for IDE depends on the controller.
    pub(crate) fn read_place(
        &mut self,
        nth: usize,
        properties: &'a Properties,
        driver: DiskDriver,
        frontend: &mut Frontend,
    ) -> TargetBus {
        let at = FieldPath::Disk(nth, DiskField::Address);
        let name = properties.peek("bus").map(|bus| bus.value.as_str());
        let place = match driver.model {
            DeviceModel::VirtioBlk | DeviceModel::VhostUserBlk => {
                frontend.address = self.read_pci(properties, at);
                return TargetBus::Virtio;
            }
            DeviceModel::ScsiHd | DeviceModel::ScsiCd | DeviceModel::ScsiBlock => {
                let bridge = name.and_then(|name| self.buses.bridges.get(device_of(name)));
                if let Some(bridge) = bridge.copied() {
                    frontend.address = self.usb_place(bridge, at);
                    for key in ["bus", "lun", "scsi-id", "channel"] {
                        properties.get(key);
                    }
                    return TargetBus::Usb;
                }
                self.scsi_place(properties)
            }
            DeviceModel::IdeHd | DeviceModel::IdeCd => {
                let (bus, place) = self.ide_place(properties);
                if let Some(property) = properties.get("bus") {
                    self.record(at, property);
                }
                frontend.address = place.map(Address::Drive);
                return bus;
            }
            DeviceModel::UsbStorage => {
                properties.get("bus");
                frontend.address = self.usb_place(properties, at);
                return driver.bus;
            }
            DeviceModel::Floppy => {
                properties.get("bus");
                let unit = number(properties.get("unit"));
                Some(self.next_place(ControllerType::Fdc, unit.map(|unit| (0, 0, unit)), 1))
            }
            DeviceModel::NvmeNamespace if driver.is_whole_nvme => {
                let id = properties.peek("id").map(|id| id.value.as_str());
                let found = id.and_then(|id| self.buses.controllers.get(id));
                let controller = found.map_or(0, |(_, index)| *index);
                for key in ["bus", "addr"] {
                    properties.get(key);
                }
                Some(DriveAddress {
                    controller,
                    ..DriveAddress::default()
                })
            }
            DeviceModel::NvmeNamespace => {
                properties.get("bus");
                let found = name.and_then(|name| self.buses.controllers.get(device_of(name)));
                let controller = found.map_or(0, |(_, index)| *index);
                let unit = number(properties.get("nsid")).map_or(0, |nsid| nsid.saturating_sub(1));
                let serial = name.and_then(|name| self.buses.serials.get(device_of(name)));
                frontend.serial = serial.map(|serial| (*serial).to_owned());
                Some(DriveAddress {
                    controller,
                    unit,
                    ..DriveAddress::default()
                })
            }
        };
        if let Some(property) = properties.peek("lun").or(properties.peek("bus")) {
            self.record(at, property);
        }
        frontend.address = place.map(Address::Drive);
        driver.bus
    }

    /// A port of a USB controller.
    fn usb_place(&mut self, properties: &'a Properties, at: FieldPath) -> Option<Address> {
        let port = properties.get("port")?;
        self.record(at, port);
        let bus = properties.peek("bus").map(|bus| bus.value.as_str());
        let found = bus.and_then(|bus| self.buses.controllers.get(device_of(bus)));
        Some(Address::Usb(UsbAddress {
            bus: found.map_or(0, |(_, index)| *index),
            port: port.value.as_str().to_owned(),
        }))
    }

    /// A place on a SCSI controller; what is not said is counted as QEMU counts it
    /// (`scsi_bus_check_address`).
    fn scsi_place(&mut self, properties: &'a Properties) -> Option<DriveAddress> {
        let bus = properties.get("bus").map(|bus| bus.value.as_str());
        let channel = number(properties.get("channel"));
        let target = number(properties.get("scsi-id"));
        let unit = number(properties.get("lun"));
        let found = bus.and_then(|bus| self.buses.controllers.get(device_of(bus)).copied());
        let controller = match (bus, found) {
            (_, Some((_, index))) => index,
            (None, None) => 0,
            (Some(_), None) => return None,
        };
        let channel = channel.unwrap_or(0);
        let model = self
            .domain
            .controllers
            .iter()
            .find(|it| it.controller_type == ControllerType::Scsi && it.index == Some(controller))
            .and_then(|controller| controller.scsi_model);
        let taken = &mut self.buses.scsi;
        let (target, unit) = match (target, unit) {
            (Some(target), Some(unit)) => (target, unit),
            (Some(target), None) => {
                let free = |unit: &u32| !taken.contains(&(controller, channel, target, *unit));
                (target, (0..=255).find(free).unwrap_or(0))
            }
            (None, unit) => {
                let unit = unit.unwrap_or(0);
                let next = self
                    .buses
                    .next_target
                    .entry((controller, unit))
                    .or_default();
                while taken.contains(&(controller, channel, *next, unit)) {
                    *next += 1;
                }
                (*next, unit)
            }
        };
        taken.insert((controller, channel, target, unit));
        let place = DriveAddress {
            controller,
            bus: channel,
            target,
            unit,
        };
        Some(match model {
            // The targets of this model are what addresses call units.
            Some(ScsiControllerModel::Lsilogic) => DriveAddress {
                target: 0,
                unit: target,
                ..place
            },
            Some(_) | None => place,
        })
    }

    /// A place on an IDE or AHCI controller.
    fn ide_place(&mut self, properties: &'a Properties) -> (TargetBus, Option<DriveAddress>) {
        let unit = number(properties.get("unit"));
        let Some(name) = properties.peek("bus").map(|bus| bus.value.as_str()) else {
            let (kind, bus) = self.default_ide();
            let units = if kind == ControllerType::Ide { 2 } else { 1 };
            return (bus, Some(self.next_place(kind, None, units)));
        };
        let port = name
            .rsplit_once('.')
            .and_then(|(_, port)| port.parse::<u32>().ok());
        let found = self.buses.controllers.get(device_of(name)).copied();
        let Some(port) = port else {
            return (self.default_ide().1, None);
        };
        let place = DriveAddress::default();
        match found {
            Some((ControllerType::Sata, controller)) => (
                TargetBus::Sata,
                Some(DriveAddress {
                    controller,
                    unit: port,
                    ..place
                }),
            ),
            Some(_) | None => match self.default_ide().0 {
                ControllerType::Sata => {
                    let place = self.next_place(ControllerType::Sata, Some((0, 0, port)), 1);
                    (TargetBus::Sata, Some(place))
                }
                ControllerType::Ide
                | ControllerType::Scsi
                | ControllerType::Fdc
                | ControllerType::Usb
                | ControllerType::Nvme => {
                    let unit = unit.unwrap_or(0);
                    let place = self.next_place(ControllerType::Ide, Some((0, port, unit)), 2);
                    (TargetBus::Ide, Some(place))
                }
            },
        }
    }

    /// What `ide.0` is on this board.
    pub(crate) const fn default_ide(&self) -> (ControllerType, TargetBus) {
        match self.board {
            Board::Q35 => (ControllerType::Sata, TargetBus::Sata),
            Board::I440fx
            | Board::PcieVirt
            | Board::Pseries
            | Board::Ccw
            | Board::Mmio
            | Board::OtherPci
            | Board::Unknown => (ControllerType::Ide, TargetBus::Ide),
        }
    }

    /// A place that is said, or the next free one; `units` is how many a bus has.
    pub(crate) fn next_place(
        &mut self,
        kind: ControllerType,
        said: Option<(u32, u32, u32)>,
        units: u32,
    ) -> DriveAddress {
        let (controller, bus, unit) = said.unwrap_or_else(|| {
            let next = self.buses.next_unit.entry(kind).or_default();
            loop {
                let place = if units > 1 {
                    (0, *next / units, *next % units)
                } else {
                    (0, 0, *next)
                };
                if !self
                    .buses
                    .taken_units
                    .contains(&(kind, place.0, place.1, place.2))
                {
                    return place;
                }
                *next += 1;
            }
        });
        self.buses.taken_units.insert((kind, controller, bus, unit));
        DriveAddress {
            controller,
            bus,
            target: 0,
            unit,
        }
    }
}

/// Reads `fe.0.0001`.
fn channel(text: &str) -> Option<CcwAddress> {
    let mut parts = text
        .split('.')
        .map(|part| u32::from_str_radix(part, 16).ok());
    let address = CcwAddress {
        cssid: parts.next()??,
        ssid: parts.next()??,
        devno: parts.next()??,
    };
    parts.next().is_none().then_some(address)
}

/// The device that a bus belongs to: its name without the number at the end.
fn device_of(bus: &str) -> &str {
    match bus.rsplit_once('.') {
        Some((device, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => device,
        Some(_) | None => bus,
    }
}

fn number(property: Option<&Property>) -> Option<u32> {
    u32::try_from(number_of(property?.value.as_str())?).ok()
}
