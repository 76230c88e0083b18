//! Places of devices: buses that nothing makes, units that a bus does not have, two devices at one place.

use std::collections::{HashMap, HashSet};

use vmdisk_model::Scope;
use vmdisk_source::{ProblemKind, Span};

use super::check::{Check, base_of};
use crate::board::Board;
use crate::index::Index;
use crate::syntax::properties::{Properties, Property, Syntax};
use crate::syntax::value::{is_on, is_open, number_of};

/// Buses that machines bring along, by the beginning of their names.
const BUILT_IN: &[&str] = &[
    "pci",
    "pcie",
    "ide",
    "isa",
    "usb-bus",
    "usb",
    "scsi",
    "main-system-bus",
    "virtio-mmio-bus",
    "sd-bus",
    "i2c",
    "spi",
    "floppy-bus",
    "vmbus",
    "xen-bus",
    "virtual-css-bus",
];

/// Places on the root bus of a PC that are left for devices with -nodefaults; counted with QEMU 7.2.
const ROOT_SLOTS: usize = 30;

/// A PCI address that is said: bus, slot and function.
type Slot<'a> = (&'a str, u64, u64);

/// What is taken so far.
#[derive(Default)]
struct Taken<'a> {
    ide: HashSet<(&'a str, u64)>,
    scsi: HashSet<(&'a str, u64, u64, u64)>,
    namespaces: HashSet<(&'a str, u64)>,
    slots: HashSet<Slot<'a>>,
    ports: HashMap<&'a str, usize>,
    root: usize,
}

/// What a guest has that places depend on.
struct Present<'a> {
    ids: HashSet<&'a str>,
    /// Devices in JSON, which QEMU makes after all others, wherever they are written.
    late: HashSet<&'a str>,
    root_ports: HashSet<&'a str>,
    drivers: HashSet<&'a str>,
    has_scsi: bool,
    has_emulated_scsi: bool,
    has_usb: bool,
    /// True if a board without PCI is asked for one.
    has_pcie: bool,
}

impl<'a> Present<'a> {
    fn of(index: &Index<'a>) -> Self {
        let is_root_port = |driver: &str| matches!(driver, "pcie-root-port" | "ioh3420");
        let is_json = |device: &Properties| matches!(device.syntax, Syntax::Json { .. });
        let ids = |is_wanted: &dyn Fn(&str, &Properties) -> bool| -> HashSet<&'a str> {
            let devices = index.devices();
            devices
                .filter(|(_, driver, device)| is_wanted(driver, device))
                .filter_map(|(_, _, device)| device.value("id"))
                .collect()
        };
        let drivers: HashSet<&'a str> = index
            .devices()
            .map(|(_, driver, _)| base_of(driver))
            .collect();
        let has = |wanted: &[&str]| wanted.iter().any(|name| drivers.contains(name));
        let has_emulated_scsi = has(&EMULATED_SCSI);
        let is_usb = |driver: &&str| {
            let kinds = ["xhci", "ehci", "uhci", "ohci"];
            kinds.iter().any(|kind| driver.contains(kind))
        };
        let is_machine_with = |key| {
            let mut machines = index.machines();
            machines.any(|(_, machine)| is_on(machine.peek(key)))
        };
        Present {
            ids: ids(&|_, _| true),
            late: ids(&|_, device| is_json(device)),
            root_ports: ids(&|driver, _| is_root_port(driver)),
            has_scsi: has_emulated_scsi || has(&OTHER_SCSI),
            has_emulated_scsi,
            has_usb: index.has("usb")
                || index.has("usbdevice")
                || is_machine_with("usb")
                || drivers.iter().any(is_usb),
            has_pcie: is_machine_with("pcie"),
            drivers,
        }
    }
}

fn number(device: &Properties, key: &str) -> Option<(u64, Span)> {
    let property = device.peek(key)?;
    Some((number_of(property.value.as_str())?, property.span))
}

/// SCSI controllers of other makes than virtio's.
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

/// SCSI controllers of other kinds.
const OTHER_SCSI: [&str; 5] = [
    "virtio-scsi",
    "vhost-scsi",
    "vhost-user-scsi",
    "usb-bot",
    "usb-uas",
];

impl<'a> Check<'a> {
    pub(super) fn find_refused_places(&mut self) {
        let present = Present::of(self.index);
        let mut taken = Taken::default();
        for (option, driver, device) in self.index.devices() {
            let base = base_of(driver);
            let span = device
                .peek("driver")
                .map_or(self.index.span(option), |it| it.span);
            self.check_bus(option, driver, device, span, &present);
            self.check_bus_of_json(option, device, &present.late);
            match base {
                "scsi-hd" | "scsi-cd" | "scsi-disk" | "scsi-block" | "scsi-generic" => {
                    self.check_scsi_place(option, device, span, &present, &mut taken);
                }
                "ide-hd" | "ide-cd" | "ide-drive" => {
                    self.check_ide_place(option, device, span, &present.ids, &mut taken)
                }
                "nvme" if device.peek("drive").is_some() => {
                    if let Some(id) = device.peek("id") {
                        taken.namespaces.insert((id.value.as_str(), 1));
                    }
                }
                "nvme-ns" => self.check_namespace(option, device, &mut taken),
                _ => {}
            }
            if is_pci(driver) {
                self.check_pci_place(option, device, span, &present.root_ports, &mut taken);
            }
        }
    }

    /// Whether a bus of the kind is there, and the one that is named.
    fn check_bus(
        &mut self,
        option: usize,
        driver: &str,
        device: &'a Properties,
        span: Span,
        present: &Present<'a>,
    ) {
        if let Some(bus) = device.peek("bus") {
            let name = bus.value.as_str();
            let owner = match name.rsplit_once('.') {
                Some((owner, number)) if number.bytes().all(|it| it.is_ascii_digit()) => owner,
                Some(_) | None => name,
            };
            let is_known = present.ids.contains(name)
                || present.ids.contains(owner)
                || BUILT_IN.contains(&owner)
                || is_open(name)
                // A bus of the device's own path.
                || name.starts_with('/');
            let is_disk = crate::device::driver::disk_driver(driver).is_some();
            if !is_known && is_disk && self.lowered.domain().scope == Scope::WholeGuest {
                let message = format!("no device has a bus `{name}`");
                let help = format!("write the device that has it, with id={owner}, or another bus");
                self.refuse(ProblemKind::BusMissing, option, bus.span, message, help);
            }
            return;
        }
        let is_pc = matches!(self.lowered.board(), Board::Q35 | Board::I440fx);
        let has_pci = matches!(
            self.lowered.board(),
            Board::Q35 | Board::I440fx | Board::PcieVirt | Board::Pseries
        );
        let (missing, help) = match base_of(driver) {
            "scsi-hd" | "scsi-cd" | "scsi-block" | "scsi-generic" if is_pc && !present.has_scsi => {
                ("SCSI", "write -device virtio-scsi-pci in front")
            }
            "usb-storage" | "usb-bot" | "usb-uas" if is_pc && !present.has_usb => {
                ("USB", "write -device qemu-xhci in front")
            }
            "nvme-ns" if !present.drivers.contains("nvme") => (
                "NVMe",
                "write -device nvme,serial=… in front, and its id as bus",
            ),
            "floppy"
                if self.lowered.board() == Board::Q35 && !present.drivers.contains("isa-fdc") =>
            {
                ("floppy", "write -device isa-fdc in front")
            }
            _ if driver.ends_with("-device") && driver.starts_with("virtio-") && has_pci => {
                ("virtio MMIO", "write the same device with -pci at its end")
            }
            _ if driver.ends_with("-pci")
                && self.lowered.board() == Board::Mmio
                && !present.has_pcie =>
            {
                ("PCI", "write the same device with -device at its end")
            }
            _ => return,
        };
        if self.lowered.domain().scope == Scope::WholeGuest
            && self.lowered.domain().machine.is_some()
        {
            let message = format!("nothing makes the {missing} bus that `{driver}` hangs on");
            self.refuse(ProblemKind::BusMissing, option, span, message, help);
        }
    }

    /// Whether the bus is there when the device is made.
    fn check_bus_of_json(&mut self, option: usize, device: &Properties, late: &HashSet<&'a str>) {
        let Some(bus) = device.peek("bus") else {
            return;
        };
        let name = bus.value.as_str();
        let owner = name.rsplit_once('.').map_or(name, |(owner, _)| owner);
        let is_pairs = !matches!(device.syntax, Syntax::Json { .. });
        let Some(owner) = [name, owner]
            .into_iter()
            .find(|it| late.contains(it))
            .filter(|_| is_pairs)
        else {
            return;
        };
        let message =
            format!("`{owner}` is written in JSON, and QEMU makes such devices behind all others");
        let help = format!("write this -device in JSON too, or `{owner}` as key=value");
        self.refuse(ProblemKind::BusMissing, option, bus.span, message, help);
    }

    fn out_of_range(&mut self, option: usize, span: Span, message: String, most: u64) {
        let help = format!("write a number from 0 to {most}");
        self.refuse(ProblemKind::UnitOutOfRange, option, span, message, help);
    }

    fn taken(&mut self, option: usize, span: Span, message: String) {
        let help = "give each device a place of its own, or leave the place open";
        self.refuse(ProblemKind::SlotTaken, option, span, message, help);
    }

    fn check_scsi_place(
        &mut self,
        option: usize,
        device: &'a Properties,
        span: Span,
        present: &Present<'a>,
        taken: &mut Taken<'a>,
    ) {
        // The limits are the controller's; those of virtio-scsi are the largest.
        for (key, most) in [("lun", 16_383), ("scsi-id", 255)] {
            if let Some((number, span)) = number(device, key)
                && number > most
            {
                self.out_of_range(
                    option,
                    span,
                    format!("{key} {number} is more than SCSI controllers have"),
                    most,
                );
            }
        }
        let is_virtio_alone = present.drivers.contains("virtio-scsi") && !present.has_emulated_scsi;
        if let Some((channel, span)) =
            number(device, "channel").filter(|(channel, _)| *channel > 0 && is_virtio_alone)
        {
            self.out_of_range(
                option,
                span,
                format!("channel {channel}: virtio-scsi has one channel"),
                0,
            );
        }
        let (Some((target, _)), Some((unit, at))) =
            (number(device, "scsi-id"), number(device, "lun"))
        else {
            return;
        };
        let bus = device.peek("bus").map_or("", |bus| bus.value.as_str());
        let channel = number(device, "channel").map_or(0, |(channel, _)| channel);
        if !taken.scsi.insert((bus, channel, target, unit)) {
            let at = if at.is_empty() { span } else { at };
            self.taken(
                option,
                at,
                format!("another disk has SCSI target {target}, unit {unit}"),
            );
        }
    }

    fn check_ide_place(
        &mut self,
        option: usize,
        device: &'a Properties,
        span: Span,
        ids: &HashSet<&'a str>,
        taken: &mut Taken<'a>,
    ) {
        let (units, buses) = match self.lowered.board() {
            Board::Q35 => (1, 6),
            Board::I440fx => (2, 2),
            Board::PcieVirt
            | Board::Pseries
            | Board::Ccw
            | Board::Mmio
            | Board::OtherPci
            | Board::Unknown => return,
        };
        if self.lowered.domain().machine.is_none() {
            return;
        }
        let unit = number(device, "unit");
        let bus = device.peek("bus");
        // Without a bus QEMU takes the first one, whether or not it is full.
        let name = bus.map_or("ide.0", |bus| bus.value.as_str());
        let at = bus.map_or(span, |bus| bus.span);
        let Some((owner, port)) = name.rsplit_once('.') else {
            return;
        };
        let is_own = ids.contains(owner);
        let (units, buses) = if is_own { (1, 6) } else { (units, buses) };
        if let Ok(port) = port.parse::<u64>()
            && port >= buses
        {
            self.out_of_range(option, at, format!("there is no bus `{name}`"), buses - 1);
        } else if let Some((number, at)) = unit.filter(|(unit, _)| *unit >= units) {
            let plural = if units == 1 { "unit" } else { "units" };
            self.out_of_range(
                option,
                at,
                format!("`{name}` has {units} {plural}, and no unit {number}"),
                units - 1,
            );
        } else {
            let first_free = (0..units).find(|unit| !taken.ide.contains(&(name, *unit)));
            let place = unit.map(|(unit, _)| unit).or(first_free);
            if !place.is_some_and(|unit| taken.ide.insert((name, unit))) {
                let message = match bus {
                    Some(_) => format!("another disk is at that place of `{name}`"),
                    None => format!("without a bus the disk goes to `{name}`, which is full"),
                };
                self.taken(option, at, message);
            }
        }
    }

    fn check_namespace(&mut self, option: usize, device: &'a Properties, taken: &mut Taken<'a>) {
        let Some((number, span)) = number(device, "nsid") else {
            return;
        };
        if number > 256 {
            self.out_of_range(
                option,
                span,
                format!("an NVMe controller has no namespace {number}"),
                256,
            );
        } else if number > 0
            && let Some(bus) = device.peek("bus")
            && !taken.namespaces.insert((bus.value.as_str(), number))
        {
            self.taken(
                option,
                span,
                format!(
                    "another disk is namespace {number} of `{}`",
                    bus.value.as_str()
                ),
            );
        }
    }

    fn check_pci_place(
        &mut self,
        option: usize,
        device: &'a Properties,
        span: Span,
        root_ports: &HashSet<&'a str>,
        taken: &mut Taken<'a>,
    ) {
        let bus = device.peek("bus").map_or("", |bus| bus.value.as_str());
        let slot = device.peek("addr").and_then(slot_of);
        let at = device
            .peek("addr")
            .or(device.peek("bus"))
            .map_or(span, |it| it.span);
        if let Some((slot, _)) = slot.filter(|(slot, _)| *slot > 31) {
            self.out_of_range(option, at, format!("a PCI bus has no slot {slot}"), 31);
            return;
        }
        let function = slot.map_or(0, |(_, function)| function);
        if root_ports.contains(bus) {
            let port = taken.ports.entry(bus).or_default();
            *port += usize::from(function == 0);
            if *port > 1 {
                self.taken(
                    option,
                    at,
                    format!("the port `{bus}` has one slot, and another device is in it"),
                );
            }
            return;
        }
        let is_pc = matches!(self.lowered.board(), Board::Q35 | Board::I440fx)
            && self.lowered.domain().machine.is_some();
        let is_on_root = matches!(bus, "" | "pcie.0" | "pci.0");
        let own: &[u64] = if self.lowered.board() == Board::Q35 {
            &[0, 31]
        } else {
            &[0, 1]
        };
        if let Some((slot, 0)) = slot.filter(|(slot, _)| is_pc && is_on_root && own.contains(slot))
        {
            self.taken(option, at, format!("slot {slot} is the machine's own"));
            return;
        }
        if let Some((slot, function)) = slot
            && !taken.slots.insert((bus, slot, function))
        {
            self.taken(
                option,
                at,
                format!("another device is in slot {slot}, function {function} of that bus"),
            );
            return;
        }
        let is_root = is_on_root && function == 0;
        taken.root += usize::from(is_root);
        if is_pc && is_root && taken.root > ROOT_SLOTS {
            let message = format!(
                "the machine's own PCI bus has {ROOT_SLOTS} slots at most, and this device is one more"
            );
            self.taken(option, span, message);
        }
    }
}

/// True for the devices that are surely on PCI; the others are not counted.
fn is_pci(driver: &str) -> bool {
    let is_by_name = ["-pci", "-pci-transitional", "-pci-non-transitional"]
        .iter()
        .any(|end| driver.ends_with(end));
    is_by_name
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
fn slot_of(property: &Property) -> Option<(u64, u64)> {
    let text = property.value.as_str();
    let (slot, function) = text.split_once('.').unwrap_or((text, "0"));
    let part = |text: &str| {
        // QEMU reads the parts as hexadecimal, with or without a mark.
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u64::from_str_radix(digits, 16).ok()
    };
    Some((part(slot)?, part(function)?))
}
