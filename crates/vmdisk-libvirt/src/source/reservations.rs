//! `<reservations>`: the manager of persistent reservations on a device.

use vmdisk_model::Reservations;

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::vocabulary::{switch_from_yes_no, switch_to_yes_no};
use crate::writer::Writer;

const AT: &str = "source/reservations";
const SOCKET: &str = "source/reservations/source";

/// Reads a `<reservations>`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    source: &mut Element<'_>,
    depth: usize,
    kept: &mut UnmodeledContent,
) -> Option<Reservations> {
    let mut element = reader.child(source, "reservations")?;
    let managed = element.take("managed", switch_from_yes_no);
    let migration = element.take("migration", switch_from_yes_no);
    let socket = reader.child(&mut element, "source").and_then(|mut inner| {
        let path = inner.take("path", |path| (!path.is_empty()).then(|| path.to_owned()));
        if path.is_some() {
            inner.take("type", |word| (word == "unix").then_some(()));
            inner.take("mode", |word| (word == "client").then_some(()));
        }
        kept.note(UnmodeledPath::deep(SOCKET, depth), reader.close(inner));
        path
    });
    kept.note(UnmodeledPath::deep(AT, depth), reader.close(element));
    Some(Reservations {
        managed,
        socket,
        migration,
    })
}

/// Writes a `<reservations>`.
pub(super) fn write<'k>(
    writer: &mut Writer<'k>,
    reservations: Option<&Reservations>,
    depth: usize,
    kept: &'k UnmodeledContent,
) {
    let Some(reservations) = reservations else {
        return;
    };
    let Reservations {
        managed,
        socket,
        migration,
    } = reservations;
    writer.start("reservations", kept.at(UnmodeledPath::deep(AT, depth)));
    writer.optional("managed", managed.map(switch_to_yes_no));
    writer.optional("migration", migration.map(switch_to_yes_no));
    let parts = kept.at(UnmodeledPath::deep(SOCKET, depth));
    match socket {
        Some(path) => {
            writer.start("source", parts);
            writer.attribute("type", "unix");
            writer.attribute("path", path);
            writer.attribute("mode", "client");
            writer.end();
        }
        None if parts.is_empty() => {}
        None => {
            writer.start("source", parts);
            writer.end();
        }
    }
    writer.end();
}
