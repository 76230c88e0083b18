//! `<throttlefilters>`: the throttle groups that a disk uses.

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("throttlefilters");
const FILTER: &str = "throttlefilters/throttlefilter";

/// Reads the names of the groups; a filter without one is kept unchanged.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Vec<String> {
    let mut groups = Vec::new();
    let Some(mut element) = reader.child(disk, "throttlefilters") else {
        return groups;
    };
    for node in element.children("throttlefilter") {
        if node.attribute("group").is_none_or(str::is_empty) {
            element.give_back(node);
            continue;
        }
        let mut filter = reader.open_child(&element, node, element.owner);
        let group = filter.take_text("group").unwrap_or_default();
        kept.note(
            UnmodeledPath::nth(FILTER, groups.len()),
            reader.close(filter),
        );
        groups.push(group);
    }
    kept.note(AT, reader.close(element));
    groups
}

/// Writes the filters.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, groups: &[String], kept: &'k UnmodeledContent) {
    if groups.is_empty() && kept.at(AT).is_empty() {
        return;
    }
    writer.start("throttlefilters", kept.at(AT));
    for (nth, group) in groups.iter().enumerate() {
        writer.start("throttlefilter", kept.at(UnmodeledPath::nth(FILTER, nth)));
        writer.attribute("group", group);
        writer.end();
    }
    writer.end();
}
