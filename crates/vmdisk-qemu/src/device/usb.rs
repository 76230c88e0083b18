//! USB storage, and USB controllers.

use vmdisk_fields::DeviceModel;
use vmdisk_model::{
    Address, Controller, ControllerField, ControllerType, Device, DiskField, FieldPath,
};

use super::DiskDevice;
use crate::json::JsonObject;
use crate::placement::{Plan, PlannedController};
use crate::writer::Writer;

/// QEMU's device for one of libvirt's models of a USB controller.
fn usb_controller_driver(model: &str) -> Option<&'static str> {
    Some(match model {
        "qemu-xhci" => "qemu-xhci",
        "nec-xhci" => "nec-usb-xhci",
        "ehci" => "usb-ehci",
        "ich9-ehci1" => "ich9-usb-ehci1",
        "pci-ohci" => "pci-ohci",
        "piix3-uhci" => "piix3-usb-uhci",
        "piix4-uhci" => "piix4-usb-uhci",
        "vt82c686b-uhci" => "vt82c686b-usb-uhci",
        _ => return None,
    })
}

impl Writer<'_> {
    /// libvirt's default model for a controller in the configuration (`qemuDomainDefaultUSBControllerModel`).
    fn libvirts_usb_controller(&self) -> &'static str {
        if self.machine().is_x86() {
            "piix3-usb-uhci"
        } else {
            "qemu-xhci"
        }
    }

    /// Writes a USB controller and returns its id.
    pub(crate) fn write_usb_controller(
        &mut self,
        index: u32,
        planned: &PlannedController,
        written: Option<&Controller>,
    ) -> String {
        let usual = match index {
            0 => "usb".to_owned(),
            index => format!("usb{index}"),
        };
        let id = self.controller_id(written, &usual);
        let model = written.and_then(|controller| controller.other_model.as_deref());
        let driver = match (written, model) {
            // The default is xHCI, which every current guest supports.
            (None, _) => Some("qemu-xhci"),
            (Some(_), None) => Some(self.libvirts_usb_controller()),
            (Some(_), Some("none")) => {
                let has_disks = self
                    .domain()
                    .disks
                    .iter()
                    .any(|disk| disk.frontend.effective_bus() == vmdisk_model::TargetBus::Usb);
                if has_disks {
                    let at = self.controller_field(planned, ControllerField::Model);
                    self.problem(at, "the guest has a USB disk, but USB is disabled");
                }
                return id;
            }
            (Some(_), Some(model)) => usb_controller_driver(model),
        };
        let Some(driver) = driver else {
            let at = self.controller_field(planned, ControllerField::Model);
            let model = model.unwrap_or_default();
            self.problem(
                at,
                format!("a USB controller of model '{model}' cannot be written"),
            );
            return id;
        };
        let mut object = JsonObject::new()
            .with("driver", driver)
            .with("id", id.as_str());
        if let Some(ports) = written.and_then(|controller| controller.ports) {
            if matches!(driver, "qemu-xhci" | "nec-usb-xhci") {
                // Each port is a pair of USB 2 and USB 3.
                object.push("p2", ports);
                object.push("p3", ports);
            } else {
                let at = self.controller_field(planned, ControllerField::Ports);
                self.problem(
                    at,
                    "only xHCI controllers have a configurable number of ports",
                );
            }
        }
        let address = written.and_then(|controller| controller.address.as_ref());
        let at = self.controller_field(planned, ControllerField::Address);
        self.pci_place(&mut object, address, at);
        let acpi_index = written.and_then(|controller| controller.acpi_index);
        object.push_some("acpi-index", acpi_index);
        self.device(object, planned.origin);
        id
    }

    /// Writes the UHCI companions of an EHCI controller.
    pub(crate) fn write_usb_companions(&mut self, index: u32, master: &str, plan: &Plan) {
        for nth in plan.companions.get(&index).into_iter().flatten().copied() {
            let controller = &self.domain().controllers[nth];
            let model = controller.other_model.as_deref().unwrap_or_default();
            let at = |field| FieldPath::Controller(nth, field);
            let mut object = JsonObject::new()
                .with("driver", model.replacen("ich9-", "ich9-usb-", 1))
                .with("masterbus", format!("{master}.0"))
                .with("firstport", controller.start_port.unwrap_or_default());
            let address = controller.address.as_ref();
            self.pci_place(&mut object, address, at(ControllerField::Address));
            object.push_some("acpi-index", controller.acpi_index);
            self.device(object, at(ControllerField::Controller));
        }
    }

    /// Writes a disk or CD drive on USB.
    pub(crate) fn write_usb_disk(&mut self, device: &DiskDevice<'_>) {
        let bus = format!("{}.0", device.controller(ControllerType::Usb));
        let port = match &device.disk.frontend.address {
            Some(Address::Usb(address)) => Some(address.port.as_str()),
            _ => None,
        };
        if device.disk.frontend.effective_device() == Device::Cdrom {
            // `usb-storage` is always a disk; the bridge supports any SCSI device.
            let bridge = self.places().take_id(&format!("{}-bridge", device.stem));
            let mut bot = JsonObject::new()
                .with("driver", "usb-bot")
                .with("id", bridge.as_str())
                .with("bus", bus);
            bot.push_some("port", port);
            self.device(bot, device.at(DiskField::TargetBus));
            let mut object = self.begin_device("scsi-cd", device);
            object.push("bus", format!("{bridge}.0"));
            object.push_some("drive", device.node.as_deref());
            self.disk_properties(&mut object, device, DeviceModel::ScsiCd);
            self.device(object, device.at(DiskField::Disk));
            return;
        }
        let mut object = self.begin_device("usb-storage", device);
        object.push("bus", bus);
        object.push_some("port", port);
        object.push_some("drive", device.node.as_deref());
        self.disk_properties(&mut object, device, DeviceModel::UsbStorage);
        self.device(object, device.at(DiskField::Disk));
    }
}
