//! `<poll>` of an iothread.

use vmdisk_model::Polling;

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::unsigned64;
use crate::writer::Writer;

const AT: &str = "iothreadids/iothread/poll";

/// Reads the polling options of the nth iothread.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    thread: &mut Element<'_>,
    nth: usize,
    kept: &mut UnmodeledContent,
) -> Polling {
    let Some(mut element) = reader.child(thread, "poll") else {
        return Polling::default();
    };
    let polling = Polling {
        max: element.take("max", unsigned64),
        grow: element.take("grow", unsigned64),
        shrink: element.take("shrink", unsigned64),
    };
    kept.note(UnmodeledPath::nth(AT, nth), reader.close(element));
    polling
}

/// Writes the polling options of the nth iothread.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    polling: &Polling,
    nth: usize,
    kept: &'k UnmodeledContent,
) {
    let parts = kept.at(UnmodeledPath::nth(AT, nth));
    if *polling == Polling::default() && parts.is_empty() {
        return;
    }
    let Polling { max, grow, shrink } = polling;
    writer.start("poll", parts);
    writer.optional("max", *max);
    writer.optional("grow", *grow);
    writer.optional("shrink", *shrink);
    writer.end();
}
