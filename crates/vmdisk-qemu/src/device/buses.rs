//! The buses of a machine, and the address of a disk on them.

use std::collections::{HashMap, HashSet};

use vmdisk_fields::DeviceModel;
use vmdisk_model::{
    Address, CcwAddress, ControllerType, DiskField, DriveAddress, FieldPath, Frontend, PciAddress,
    ScsiControllerModel, Switch, TargetBus, UsbAddress,
};

use super::driver::DiskDriver;
use crate::index::Index;
use crate::interface::DefaultInterface;
use crate::members::Members;
use crate::notes::Notes;
use crate::syntax::properties::Property;
use crate::syntax::value::{is_on, number_of};
use vmdisk_model::Board;

/// The buses of a machine, by the id of their device.
#[derive(Debug)]
pub(crate) struct Buses<'a> {
    board: Board,
    /// The interface of a `-drive` without `if`.
    pub(crate) default_interface: DefaultInterface,
    /// Controllers: their kind and their index.
    controllers: HashMap<&'a str, (ControllerType, u32)>,
    /// Controllers that have an index, and the start of the search for the next free one.
    indexes: HashSet<(ControllerType, u32)>,
    next: HashMap<ControllerType, u32>,
    /// Models of SCSI controllers.
    scsi_models: HashMap<u32, ScsiControllerModel>,
    /// Serial numbers of NVMe controllers, which their namespaces share.
    serials: HashMap<&'a str, &'a str>,
    /// SCSI devices on USB, by id.
    bridges: HashMap<&'a str, Members<'a>>,
    /// Numbers of additional PCI buses, by the id of their port or bridge.
    pci: HashMap<&'a str, u32>,
    /// Bridges behind other bridges, by id: libvirt does not create them, so addresses on them are dropped.
    deeper: HashSet<&'a str>,
    /// Addresses in use on SCSI controllers: controller, channel, target, unit.
    scsi: HashSet<(u32, u32, u32, u32)>,
    /// The start of the search for the next free target of a controller.
    next_target: HashMap<(u32, u32), u32>,
    /// Other addresses, assigned in order.
    next_unit: HashMap<ControllerType, u32>,
    taken_units: HashSet<(ControllerType, u32, u32, u32)>,
}

impl<'a> Buses<'a> {
    /// The buses of a board: its built-in ports and bridges, and no controllers yet.
    pub(super) fn new(board: Board, index: &Index<'a>) -> Self {
        let mut buses = Buses {
            board,
            default_interface: DefaultInterface::Unknown,
            controllers: HashMap::new(),
            indexes: HashSet::new(),
            next: HashMap::new(),
            scsi_models: HashMap::new(),
            serials: HashMap::new(),
            bridges: HashMap::new(),
            pci: HashMap::new(),
            deeper: HashSet::new(),
            scsi: HashSet::new(),
            next_target: HashMap::new(),
            next_unit: HashMap::new(),
            taken_units: HashSet::new(),
        };
        for (_, driver, properties) in index.devices() {
            let Some(id) = properties.value("id") else {
                continue;
            };
            if matches!(driver, "usb-bot" | "usb-uas") {
                buses.bridges.insert(id, properties);
            } else if is_port_or_bridge(driver) {
                let own = id
                    .strip_prefix("pci.")
                    .and_then(|number| number.parse().ok())
                    .filter(|number| *number > 0);
                let next = u32::try_from(buses.pci.len()).unwrap_or_default() + 1;
                if is_on_root(properties) {
                    buses.pci.insert(id, own.unwrap_or(next));
                } else {
                    buses.deeper.insert(id);
                }
            }
        }
        buses
    }

    /// The index in the id of a controller, if it is free.
    pub(super) fn index_in_id(&self, kind: ControllerType, id: Option<&str>) -> Option<u32> {
        let rest = id?.strip_prefix(kind.as_str())?;
        let number = if rest.is_empty() && kind == ControllerType::Usb {
            0
        } else {
            rest.parse().ok()?
        };
        let is_taken =
            (self.is_built_in(kind) && number == 0) || self.indexes.contains(&(kind, number));
        (!is_taken).then_some(number)
    }

    /// Adds a controller with the index in its id, with the index of the controller that it is a companion of, or with
    /// the next free one. Returns the index.
    pub(super) fn add_controller(
        &mut self,
        kind: ControllerType,
        scsi_model: Option<ScsiControllerModel>,
        own: Option<u32>,
        properties: Members<'a>,
    ) -> u32 {
        let master = properties.value("masterbus");
        let master = master.and_then(|bus| self.controllers.get(device_of(bus)));
        if master.is_some() {
            properties.accept(&["masterbus"]);
        }
        let master = master.map(|(_, index)| *index);
        let index = master.or(own).unwrap_or_else(|| self.next_index(kind));
        self.indexes.insert((kind, index));
        if let Some(model) = scsi_model {
            self.scsi_models.entry(index).or_insert(model);
        }
        if let Some(id) = properties.value("id") {
            self.controllers.entry(id).or_insert((kind, index));
            if let Some(serial) = properties.value("serial") {
                self.serials.insert(id, serial);
            }
        }
        index
    }

    fn next_index(&mut self, kind: ControllerType) -> u32 {
        let first = u32::from(self.is_built_in(kind));
        let next = self.next.entry(kind).or_insert(first);
        while self.indexes.contains(&(kind, *next)) {
            *next += 1;
        }
        *next
    }

    /// True for controllers that are built into the board.
    fn is_built_in(&self, kind: ControllerType) -> bool {
        kind == ControllerType::Sata && self.board == Board::Q35
    }

    /// An address on a PCI bus, or on the channel subsystem of an IBM Z.
    pub(super) fn read_pci(
        &self,
        properties: Members<'a>,
        at: FieldPath,
        notes: &mut Notes<'_>,
    ) -> Option<Address> {
        if let Some(property) = properties.take("devno") {
            notes.record(at, property);
            return channel(property.value.as_str()).map(Address::Ccw);
        }
        let bus = properties.get("bus");
        let addr = properties.get("addr");
        let is_multifunction = properties.get("multifunction");
        if let Some(property) = addr.or(bus) {
            notes.record(at, property);
        }
        let name = bus.map(|bus| bus.value.as_str());
        let port = name.and_then(|name| self.pci.get(name)).copied();
        let is_deeper = name.is_some_and(|name| self.deeper.contains(name));
        let number = match (port, name) {
            (None, Some(_)) if is_deeper => return None,
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
            None if port.is_none() && number == 0 => {
                // The root bus, on any slot.
                properties.accept(&["bus"]);
                return None;
            }
            None => port.map(|_| (0, 0))?,
        };
        properties.accept(&["bus", "addr", "multifunction"]);
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

    /// The address of a disk on its bus. Also returns the bus, which for IDE depends on the controller.
    pub(super) fn read_place(
        &mut self,
        nth: usize,
        properties: Members<'a>,
        driver: DiskDriver,
        frontend: &mut Frontend,
        notes: &mut Notes<'_>,
    ) -> TargetBus {
        let at = FieldPath::Disk(nth, DiskField::Address);
        let name = properties.get("bus").map(|bus| bus.value.as_str());
        let place = match driver.model {
            DeviceModel::VirtioBlk | DeviceModel::VhostUserBlk => {
                frontend.address = self.read_pci(properties, at, notes);
                return TargetBus::Virtio;
            }
            DeviceModel::ScsiHd | DeviceModel::ScsiCd | DeviceModel::ScsiBlock => {
                let bridge = name.and_then(|name| self.bridges.get(device_of(name)));
                if let Some(bridge) = bridge.copied() {
                    frontend.address = self.usb_place(bridge, at, notes);
                    properties.accept(&["bus", "lun", "scsi-id", "channel"]);
                    return TargetBus::Usb;
                }
                self.scsi_place(properties)
            }
            DeviceModel::IdeHd | DeviceModel::IdeCd => {
                let (bus, place) = self.ide_place(properties);
                if let Some(property) = properties.take("bus") {
                    notes.record(at, property);
                }
                frontend.address = place.map(Address::Drive);
                return bus;
            }
            DeviceModel::UsbStorage => {
                properties.accept(&["bus"]);
                frontend.address = self.usb_place(properties, at, notes);
                return driver.bus;
            }
            DeviceModel::Floppy => {
                properties.accept(&["bus"]);
                let unit = number(properties.take("unit"));
                Some(self.next_place(ControllerType::Fdc, unit.map(|unit| (0, 0, unit)), 1))
            }
            DeviceModel::NvmeNamespace if driver.is_whole_nvme => {
                let id = properties.get("id").map(|id| id.value.as_str());
                let found = id.and_then(|id| self.controllers.get(id));
                let controller = found.map_or(0, |(_, index)| *index);
                Some(DriveAddress::of_unit(controller, 0))
            }
            DeviceModel::NvmeNamespace => {
                properties.accept(&["bus"]);
                let found = name.and_then(|name| self.controllers.get(device_of(name)));
                let controller = found.map_or(0, |(_, index)| *index);
                let unit = number(properties.take("nsid")).map_or(0, |nsid| nsid.saturating_sub(1));
                let serial = name.and_then(|name| self.serials.get(device_of(name)));
                frontend.serial = serial.map(|serial| (*serial).to_owned());
                Some(DriveAddress::of_unit(controller, unit))
            }
        };
        if let Some(property) = properties.get("lun").or(properties.get("bus")) {
            notes.record(at, property);
        }
        frontend.address = place.map(Address::Drive);
        driver.bus
    }

    /// A port of a USB controller.
    fn usb_place(
        &self,
        properties: Members<'a>,
        at: FieldPath,
        notes: &mut Notes<'_>,
    ) -> Option<Address> {
        let port = properties.take("port")?;
        notes.record(at, port);
        let bus = properties.get("bus").map(|bus| bus.value.as_str());
        let found = bus.and_then(|bus| self.controllers.get(device_of(bus)));
        Some(Address::Usb(UsbAddress {
            bus: found.map_or(0, |(_, index)| *index),
            port: port.value.as_str().to_owned(),
        }))
    }

    /// An address on a SCSI controller; unset parts are assigned as QEMU does (`scsi_bus_check_address`).
    fn scsi_place(&mut self, properties: Members<'a>) -> Option<DriveAddress> {
        let bus = properties.take("bus").map(|bus| bus.value.as_str());
        let channel = number(properties.take("channel"));
        let target = number(properties.take("scsi-id"));
        let unit = number(properties.take("lun"));
        let found = bus.and_then(|bus| self.controllers.get(device_of(bus)).copied());
        let controller = match (bus, found) {
            (_, Some((_, index))) => index,
            (None, None) => 0,
            (Some(_), None) => return None,
        };
        let channel = channel.unwrap_or(0);
        let model = self.scsi_models.get(&controller).copied();
        let taken = &mut self.scsi;
        let (target, unit) = match (target, unit) {
            (Some(target), Some(unit)) => (target, unit),
            (Some(target), None) => {
                let free = |unit: &u32| !taken.contains(&(controller, channel, target, *unit));
                (target, (0..=255).find(free).unwrap_or(0))
            }
            (None, unit) => {
                let unit = unit.unwrap_or(0);
                let next = self.next_target.entry((controller, unit)).or_default();
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
            // On this model, QEMU's targets are the units of libvirt's addresses.
            Some(ScsiControllerModel::Lsilogic) => DriveAddress {
                target: 0,
                unit: target,
                ..place
            },
            Some(_) | None => place,
        })
    }

    /// An address on an IDE or AHCI controller.
    fn ide_place(&mut self, properties: Members<'a>) -> (TargetBus, Option<DriveAddress>) {
        let unit = number(properties.get("unit"));
        if unit == Some(0) {
            properties.accept(&["unit"]);
        }
        let Some(name) = properties.get("bus").map(|bus| bus.value.as_str()) else {
            let (kind, bus) = self.default_ide();
            let units = if kind == ControllerType::Ide { 2 } else { 1 };
            return (bus, Some(self.next_place(kind, None, units)));
        };
        let port = name
            .rsplit_once('.')
            .and_then(|(_, port)| port.parse::<u32>().ok());
        let found = self.controllers.get(device_of(name)).copied();
        let Some(port) = port else {
            return (self.default_ide().1, None);
        };
        match found {
            Some((ControllerType::Sata, controller)) => (
                TargetBus::Sata,
                Some(DriveAddress::of_unit(controller, port)),
            ),
            // IDE has two buses, AHCI more. The older PC has no built-in AHCI.
            None if port > 1 && !matches!(self.board, Board::I440fx) => {
                let place = self.next_place(ControllerType::Sata, Some((0, 0, port)), 1);
                (TargetBus::Sata, Some(place))
            }
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
                    properties.accept(&["unit"]);
                    let unit = unit.unwrap_or(0);
                    let place = self.next_place(ControllerType::Ide, Some((0, port, unit)), 2);
                    (TargetBus::Ide, Some(place))
                }
            },
        }
    }

    /// The controller of `ide.0` on this board.
    pub(super) const fn default_ide(&self) -> (ControllerType, TargetBus) {
        match self.board {
            Board::Q35 => (ControllerType::Sata, TargetBus::Sata),
            Board::I440fx
            | Board::PcieVirt
            | Board::Pseries
            | Board::Ccw
            | Board::Isa
            | Board::Microvm
            | Board::Mmio
            | Board::OtherPci
            | Board::Unknown => (ControllerType::Ide, TargetBus::Ide),
        }
    }

    /// The configured address, or the next free one; `units` is the size of a bus.
    pub(super) fn next_place(
        &mut self,
        kind: ControllerType,
        said: Option<(u32, u32, u32)>,
        units: u32,
    ) -> DriveAddress {
        let (controller, bus, unit) = said.unwrap_or_else(|| {
            let next = self.next_unit.entry(kind).or_default();
            loop {
                let place = if units > 1 {
                    (0, *next / units, *next % units)
                } else {
                    (0, 0, *next)
                };
                if !self
                    .taken_units
                    .contains(&(kind, place.0, place.1, place.2))
                {
                    return place;
                }
                *next += 1;
            }
        });
        self.taken_units.insert((kind, controller, bus, unit));
        let place = DriveAddress::of_unit(controller, unit);
        DriveAddress { bus, ..place }
    }
}

/// True for a port or bridge on the root bus.
fn is_on_root(properties: Members<'_>) -> bool {
    matches!(properties.value("bus"), None | Some("pcie.0" | "pci.0"))
}

/// True for ports and bridges, which provide PCI buses.
pub(crate) fn is_port_or_bridge(driver: &str) -> bool {
    matches!(
        driver,
        "pcie-root-port" | "pcie-pci-bridge" | "pci-bridge" | "ioh3420" | "i82801b11-bridge"
    )
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

/// The device of a bus: the name of the bus without the number at the end.
fn device_of(bus: &str) -> &str {
    match bus.rsplit_once('.') {
        Some((device, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => device,
        Some(_) | None => bus,
    }
}

fn number(property: Option<&Property>) -> Option<u32> {
    u32::try_from(number_of(property?.value.as_str())?).ok()
}
