//! Reads disk controllers.

use vmdisk_fields::{self as fields, CONTROLLER_FIELDS};
use vmdisk_model::{
    Address, Controller, ControllerField, ControllerType, FieldKind, FieldPath, Fields,
    ScsiControllerModel,
};

use super::buses::Buses;
use super::read_value::read_value;
use crate::index::Index;
use crate::members::Members;
use crate::notes::Notes;
use crate::object::read_iothread::{IoThreadIds, read_vq_mapping};
use vmdisk_model::Board;

/// The properties of a controller that follow from its driver.
#[derive(Clone, Copy)]
struct ControllerDriver {
    kind: ControllerType,
    scsi_model: Option<ScsiControllerModel>,
    other_model: Option<&'static str>,
}

/// The type and model of a controller, by its driver.
fn controller_driver(driver: &str) -> Option<ControllerDriver> {
    use ScsiControllerModel as Scsi;
    let kind = |kind| ControllerDriver {
        kind,
        scsi_model: None,
        other_model: None,
    };
    let scsi = |model| {
        Some(ControllerDriver {
            scsi_model: Some(model),
            ..kind(ControllerType::Scsi)
        })
    };
    let usb = |model| {
        Some(ControllerDriver {
            other_model: Some(model),
            ..kind(ControllerType::Usb)
        })
    };
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
        "ahci" | "ich9-ahci" => Some(kind(ControllerType::Sata)),
        "isa-fdc" => Some(kind(ControllerType::Fdc)),
        "nvme" => Some(kind(ControllerType::Nvme)),
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

/// Reads every controller, and the buses of controllers, ports and bridges.
pub(crate) fn read_controllers<'a>(
    board: Board,
    index: &Index<'a>,
    iothreads: &mut IoThreadIds<'a>,
    notes: &mut Notes<'_>,
) -> (Vec<Controller>, Buses<'a>) {
    let mut reader = ControllerReader {
        buses: Buses::new(board, index),
        controllers: Vec::new(),
        iothreads,
        notes,
    };
    let mut unnamed = Vec::new();
    for (option, driver, properties) in index.devices() {
        let Some(driver) = controller_driver(driver) else {
            continue;
        };
        let written = Written {
            option,
            driver,
            properties,
        };
        match reader
            .buses
            .index_in_id(driver.kind, properties.value("id"))
        {
            Some(own) => reader.add(&written, Some(own)),
            None => unnamed.push(written),
        }
    }
    // Controllers without a number in their ids get the remaining indexes.
    for written in unnamed {
        reader.add(&written, None);
    }
    (reader.controllers, reader.buses)
}

/// A controller that is written on the command line.
struct Written<'a> {
    option: usize,
    driver: ControllerDriver,
    properties: Members<'a>,
}

struct ControllerReader<'r, 'a, 'n> {
    buses: Buses<'a>,
    controllers: Vec<Controller>,
    iothreads: &'r mut IoThreadIds<'a>,
    notes: &'r mut Notes<'n>,
}

impl<'a> ControllerReader<'_, 'a, '_> {
    /// Reads a controller; `own` is the index in its id.
    fn add(&mut self, written: &Written<'a>, own: Option<u32>) {
        let Written {
            option,
            driver,
            properties,
        } = *written;
        let ControllerDriver {
            kind,
            scsi_model,
            other_model,
        } = driver;
        let index = self.buses.add_controller(kind, scsi_model, own, properties);
        if kind == ControllerType::Nvme && properties.get("drive").is_some() {
            // Read together with its disk.
            return;
        }
        let nth = self.controllers.len();
        let at = |field| FieldPath::Controller(nth, field);
        let notes = &mut *self.notes;
        notes.own(option, at(ControllerField::Controller));
        notes.slots_mut().controller.insert(nth, option);
        notes.record_option(at(ControllerField::Controller), option);
        properties.accept(&["id"]);
        if kind == ControllerType::Nvme {
            // Belongs to its disks.
            properties.accept(&["serial"]);
        }
        // libvirt has the same number of ports for USB 2 and USB 3.
        if properties.value("p2") == properties.value("p3") {
            properties.accept(&["p3"]);
        }
        let alias = properties
            .get("id")
            .filter(|id| id.value.as_str().starts_with("ua-"));
        if let Some(id) = alias {
            notes.record(at(ControllerField::Alias), id);
        }
        if let Some(driver) = properties.take("driver") {
            notes.record(at(ControllerField::ControllerType), driver);
            notes.record(at(ControllerField::Model), driver);
        }
        let mut controller = Controller {
            scsi_model,
            other_model: other_model.map(str::to_owned),
            alias: alias.map(|id| id.value.as_str().to_owned()),
            ..Controller::new(kind, index)
        };
        if scsi_model.is_some_and(ScsiControllerModel::is_virtio) {
            self.read_virtio(nth, properties, &mut controller);
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
            if let Some(property) = properties.take(key) {
                *slot = self.notes.number32(at(field), property);
            }
        }
        let at = at(ControllerField::Address);
        let register = properties.take("reg");
        controller.address = match register.filter(|_| kind == ControllerType::Scsi) {
            Some(register) => self.notes.number32(at, register).map(Address::SpaprVio),
            None => self.buses.read_pci(properties, at, self.notes),
        };
        self.controllers.push(controller);
    }

    /// The properties that only virtio-scsi controllers have.
    fn read_virtio(&mut self, nth: usize, properties: Members<'a>, controller: &mut Controller) {
        let at = |field| FieldPath::Controller(nth, field);
        for field in CONTROLLER_FIELDS {
            let row = fields::controller(*field);
            let slot = controller.field_mut(*field);
            if let Some(slot) = slot.filter(|slot| slot.kind() != FieldKind::Structure)
                && let Some(property) = row.virtio_scsi.and_then(|key| properties.take(key))
            {
                read_value(at(*field), property, row, slot, self.iothreads, self.notes);
            }
        }
        let at = at(ControllerField::IoThreadMapping);
        controller.iothread_mapping = read_vq_mapping(properties, at, self.iothreads, self.notes);
    }
}
