//! `<throttlegroups>`: groups of limits that disks share.

use vmdisk_model::Iotune;

use crate::element::Element;
use crate::iotune;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::vocabulary::FieldOwner;
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("throttlegroups");
const GROUP: &str = "throttlegroups/throttlegroup";

/// Reads the groups of a guest.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    domain: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Vec<Iotune> {
    let mut groups = Vec::new();
    let Some(mut element) = reader.child(domain, "throttlegroups") else {
        return groups;
    };
    for node in element.children("throttlegroup") {
        let nth = groups.len();
        let owner = FieldOwner::nth(nth);
        let mut group = reader.open_child(&element, node, owner);
        groups.push(iotune::read_limits(reader, &mut group, nth, kept));
        kept.note(UnmodeledPath::nth(GROUP, nth), reader.close(group));
    }
    kept.note(AT, reader.close(element));
    groups
}

/// Writes the groups of a guest.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, groups: &[Iotune], kept: &'k UnmodeledContent) {
    if groups.is_empty() && kept.at(AT).is_empty() {
        return;
    }
    writer.start("throttlegroups", kept.at(AT));
    for (nth, group) in groups.iter().enumerate() {
        writer.start("throttlegroup", kept.at(UnmodeledPath::nth(GROUP, nth)));
        iotune::write_limits(writer, group, nth, kept);
        writer.end();
    }
    writer.end();
}
