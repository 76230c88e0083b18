//! `<address>`.

use vmdisk_model::{Address, CcwAddress, DriveAddress, PciAddress, Switch, UsbAddress};
use vmdisk_rule::reading::{INVALID_VALUE, MISSING_VALUE};

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::{any_base, pci_max, unsigned32};
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("address");

/// Reads the address of a disk or controller.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Option<Address> {
    let mut element = reader.child(parent, "address")?;
    let address = match element.peek("type") {
        // Without values libvirt chooses an address on the bus.
        Some("pci")
            if ["bus", "slot", "function"]
                .iter()
                .all(|part| element.peek(part).is_none()) =>
        {
            other(&mut element)
        }
        Some("pci") => {
            element.take_known("type");
            Some(Address::Pci(PciAddress {
                domain: pci_part(reader, &mut element, "domain"),
                bus: pci_part(reader, &mut element, "bus"),
                slot: pci_part(reader, &mut element, "slot"),
                function: pci_part(reader, &mut element, "function"),
                multifunction: element.take("multifunction", Switch::from_word),
            }))
        }
        Some("drive") => {
            element.take_known("type");
            Some(Address::Drive(DriveAddress {
                controller: element.take("controller", unsigned32).unwrap_or_default(),
                bus: element.take("bus", unsigned32).unwrap_or_default(),
                target: element.take("target", unsigned32).unwrap_or_default(),
                unit: element.take("unit", unsigned32).unwrap_or_default(),
            }))
        }
        Some("usb") => read_usb(&mut element).or_else(|| other(&mut element)),
        Some("ccw") => read_ccw(&mut element).or_else(|| other(&mut element)),
        Some("virtio-mmio") => element.take("type", |_| Some(Address::VirtioMmio)),
        Some("unassigned") => element.take("type", |_| Some(Address::Unassigned)),
        Some("spapr-vio") => {
            let register = element.take("reg", any_base);
            if register.is_some() {
                element.take_known("type");
            }
            let address = register.map(Address::SpaprVio);
            address.or_else(|| other(&mut element))
        }
        Some(_) => other(&mut element),
        None => {
            let (at, tag) = (element.at, element.tag);
            let message = "`<address>` has no `type`".to_owned();
            reader.problem(&MISSING_VALUE, at, tag, message);
            None
        }
    };
    kept.note(AT, reader.close(element));
    address
}

/// A number of a PCI address; libvirt refuses numbers that PCI does not have.
pub(crate) fn pci_part(reader: &mut Reader<'_>, element: &mut Element<'_>, name: &str) -> u32 {
    let max = pci_max(name);
    let number = element.take(name, |text| any_base(text).filter(|number| *number <= max));
    let mut attributes = element.node.attributes();
    if number.is_none()
        && let Some(written) = attributes.find(|written| written.is_named(name))
        && any_base(written.value()).is_some()
    {
        let message = format!(
            "invalid value `{}` for `{name}`, expected a number from 0 to {max:#x}",
            written.value()
        );
        reader.problem(&INVALID_VALUE, element.at, written.value_span(), message);
    }
    number.unwrap_or_default()
}

fn other(element: &mut Element<'_>) -> Option<Address> {
    element.take_text("type").map(Address::Other)
}

/// A port of a USB bus; without a number, libvirt chooses one.
fn read_usb(element: &mut Element<'_>) -> Option<Address> {
    element.peek("bus").and_then(unsigned32)?;
    element.peek("port").filter(|port| !port.is_empty())?;
    element.take_known("type");
    Some(Address::Usb(UsbAddress {
        bus: element.take("bus", unsigned32)?,
        port: element.take_text("port")?,
    }))
}

/// A CCW address; libvirt requires all three parts or none.
fn read_ccw(element: &mut Element<'_>) -> Option<Address> {
    for part in ["cssid", "ssid", "devno"] {
        element.peek(part).and_then(any_base)?;
    }
    element.take_known("type");
    Some(Address::Ccw(CcwAddress {
        cssid: element.take("cssid", any_base)?,
        ssid: element.take("ssid", any_base)?,
        devno: element.take("devno", any_base)?,
    }))
}

/// Writes the address of a disk or controller.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    address: Option<&Address>,
    kept: &'k UnmodeledContent,
) {
    let parts = kept.at(AT);
    let Some(address) = address else {
        if !parts.is_empty() {
            writer.start("address", parts);
            writer.end();
        }
        return;
    };
    writer.start("address", parts);
    match address {
        Address::Pci(pci) => {
            let PciAddress {
                domain,
                bus,
                slot,
                function,
                multifunction,
            } = pci;
            writer.attribute("type", "pci");
            writer.attribute("domain", format_args!("{domain:#06x}"));
            writer.attribute("bus", format_args!("{bus:#04x}"));
            writer.attribute("slot", format_args!("{slot:#04x}"));
            writer.attribute("function", format_args!("{function:#x}"));
            writer.optional("multifunction", *multifunction);
        }
        Address::Drive(drive) => {
            let DriveAddress {
                controller,
                bus,
                target,
                unit,
            } = drive;
            writer.attribute("type", "drive");
            writer.attribute("controller", controller);
            writer.attribute("bus", bus);
            writer.attribute("target", target);
            writer.attribute("unit", unit);
        }
        Address::Usb(UsbAddress { bus, port }) => {
            writer.attribute("type", "usb");
            writer.attribute("bus", bus);
            writer.attribute("port", port);
        }
        Address::Ccw(CcwAddress { cssid, ssid, devno }) => {
            writer.attribute("type", "ccw");
            writer.attribute("cssid", format_args!("{cssid:#x}"));
            writer.attribute("ssid", format_args!("{ssid:#x}"));
            writer.attribute("devno", format_args!("{devno:#06x}"));
        }
        Address::VirtioMmio => writer.attribute("type", "virtio-mmio"),
        Address::Unassigned => writer.attribute("type", "unassigned"),
        Address::SpaprVio(register) => {
            writer.attribute("type", "spapr-vio");
            writer.attribute("reg", format_args!("{register:#010x}"));
        }
        Address::Other(word) => writer.attribute("type", word),
    }
    writer.end();
}
