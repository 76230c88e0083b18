//! `<iotune>`: throttling, one element per limit.

use vmdisk_fields::{LIMIT_FIELDS, Label};
use vmdisk_model::Iotune;

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::unsigned64;
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("iotune");

/// Reads the limits of a disk.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Option<Iotune> {
    let mut element = reader.child(disk, "iotune")?;
    let iotune = read_limits(reader, &mut element, 0, kept);
    kept.note(AT, reader.close(element));
    Some(iotune)
}

/// Reads the limits in an element; `nth` distinguishes elements of the same name.
pub(crate) fn read_limits(
    reader: &mut Reader<'_>,
    element: &mut Element<'_>,
    nth: usize,
    kept: &mut UnmodeledContent,
) -> Iotune {
    let mut iotune = Iotune::default();
    for (field, slot) in iotune.limits_mut() {
        let name = field.label();
        let Some(node) = element.child(name) else {
            continue;
        };
        match unsigned64(node.text().0.trim()) {
            Some(number) => {
                let inner = reader.open_child(element, node, element.owner);
                kept.note(UnmodeledPath::nth(name, nth), reader.close(inner));
                *slot = Some(number);
            }
            // Reported when the element is closed, and kept.
            None => element.give_back(node),
        }
    }
    if let Some(inner) = reader.child(element, "group_name") {
        iotune.group = Some(inner.content()).filter(|name| !name.is_empty());
        kept.note(UnmodeledPath::nth("group_name", nth), reader.close(inner));
    }
    iotune
}

/// Writes the limits of a disk.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    iotune: Option<&Iotune>,
    kept: &'k UnmodeledContent,
) {
    let Some(iotune) = iotune else {
        return;
    };
    writer.start("iotune", kept.at(AT));
    write_limits(writer, iotune, 0, kept);
    writer.end();
}

/// Writes the limits that are set.
pub(crate) fn write_limits<'k>(
    writer: &mut Writer<'k>,
    iotune: &Iotune,
    nth: usize,
    kept: &'k UnmodeledContent,
) {
    let limits = iotune.limits();
    for field in LIMIT_FIELDS {
        let name = field.label();
        let parts = kept.at(UnmodeledPath::nth(name, nth));
        match limits.iter().find(|(limit, _)| limit == field) {
            Some((_, limit)) => writer.text_element(name, *limit, parts),
            // The only field that is not a limit.
            None => writer.text_element(name, iotune.group.as_ref(), parts),
        }
    }
}
