//! `<address>`.

use vmdisk_model::{Address, DriveAddress, PciAddress, Switch};
use vmdisk_source::ProblemKind;

use crate::element::Element;
use crate::kept::{KeptAt, KeptInside};
use crate::reader::Reader;
use crate::value::{any_base, unsigned32};
use crate::writer::Writer;

const AT: KeptAt = KeptAt::path("address");

/// Reads the address of a disk or controller.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_, '_>,
    kept: &mut KeptInside,
) -> Option<Address> {
    let node = parent.child("address")?;
    let mut element = reader.open_child(parent, node, parent.whose);
    let address = match element.peek("type") {
        Some("pci") => {
            element.take_text("type");
            Some(Address::Pci(PciAddress {
                domain: element.take("domain", any_base).unwrap_or_default(),
                bus: element.take("bus", any_base).unwrap_or_default(),
                slot: element.take("slot", any_base).unwrap_or_default(),
                function: element.take("function", any_base).unwrap_or_default(),
                multifunction: element.take("multifunction", Switch::from_wire),
            }))
        }
        Some("drive") => {
            element.take_text("type");
            Some(Address::Drive(DriveAddress {
                controller: element.take("controller", unsigned32).unwrap_or_default(),
                bus: element.take("bus", unsigned32).unwrap_or_default(),
                target: element.take("target", unsigned32).unwrap_or_default(),
                unit: element.take("unit", unsigned32).unwrap_or_default(),
            }))
        }
        Some(_) => element.take_text("type").map(Address::Other),
        None => {
            let (at, tag) = (element.at, element.tag);
            let message = "`<address>` has no `type`".to_owned();
            reader.problem(ProblemKind::MissingValue, at, tag, message);
            None
        }
    };
    kept.note(AT, reader.close(element));
    address
}

/// Writes the address of a disk or controller.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, address: Option<&Address>, kept: &'k KeptInside) {
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
        Address::Other(word) => writer.attribute("type", word),
    }
    writer.end();
}
