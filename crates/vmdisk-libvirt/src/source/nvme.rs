//! `<source type='pci' namespace='…'>`: an NVMe controller of the host.

use vmdisk_model::{NvmeSource, PciAddress};
use vmdisk_rule::reading::MISSING_VALUE;

use crate::address::pci_part;
use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::any_base;
use crate::vocabulary::{switch_from_yes_no, switch_to_yes_no};
use crate::writer::Writer;

const ADDRESS: &str = "source/address";

/// Reads a controller; `None` if the controller or the namespace is not set.
pub(super) fn read(
    reader: &mut Reader<'_>,
    source: &mut Element<'_>,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Option<NvmeSource> {
    let has_address = source
        .children
        .iter()
        .any(|child| child.is_named("address"));
    let namespace = source.peek("namespace").and_then(any_base);
    let missing = match (namespace, has_address) {
        (Some(_), true) => None,
        (None, _) => Some("`namespace`"),
        (Some(_), false) => Some("`<address>`"),
    };
    if let Some(missing) = missing {
        let message = format!("{missing} of the NVMe controller is missing");
        let (at, tag) = (source.at, source.tag);
        reader.problem(&MISSING_VALUE, at, tag, message);
        return None;
    }
    let namespace = u64::from(source.take("namespace", any_base)?);
    let node = source.child("address")?;
    source.take("type", |word| (word == "pci").then_some(()));
    let managed = source.take("managed", switch_from_yes_no);
    let mut element = reader.open_child(source, node, source.owner);
    element.take("type", |word| (word == "pci").then_some(()));
    let mut number = |name| pci_part(reader, &mut element, name);
    let address = PciAddress {
        domain: number("domain"),
        bus: number("bus"),
        slot: number("slot"),
        function: number("function"),
        ..PciAddress::default()
    };
    kept.note(UnmodeledPath::deep(ADDRESS, depth), reader.close(element));
    Some(NvmeSource {
        address,
        namespace,
        managed,
    })
}

/// Writes the attributes of a controller.
pub(super) fn write_attributes(writer: &mut Writer<'_>, source: &NvmeSource) {
    let NvmeSource {
        address: _, // a child
        namespace,
        managed,
    } = source;
    writer.attribute("type", "pci");
    writer.optional("managed", managed.map(switch_to_yes_no));
    writer.attribute("namespace", namespace);
}

/// Writes the address of a controller.
pub(super) fn write_children<'k>(
    writer: &mut Writer<'k>,
    source: &NvmeSource,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    let PciAddress {
        domain,
        bus,
        slot,
        function,
        multifunction: _, // the host's device is where it is
    } = source.address;
    writer.start("address", kept.at(UnmodeledPath::deep(ADDRESS, depth)));
    writer.attribute("domain", format_args!("{domain:#06x}"));
    writer.attribute("bus", format_args!("{bus:#04x}"));
    writer.attribute("slot", format_args!("{slot:#04x}"));
    writer.attribute("function", format_args!("{function:#x}"));
    writer.end();
}
