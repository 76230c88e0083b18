//! Elements that are a number with a `unit`.

use vmdisk_model::{Bytes, FieldPath};
use vmdisk_rule::reading::INVALID_VALUE;

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::{scaled, unsigned64};
use crate::writer::Writer;

/// Reads a number with a `unit`: the size, otherwise the text to keep.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    element: &mut Element<'_>,
    default_unit: &str,
    at: FieldPath,
) -> (Option<Bytes>, Option<String>) {
    let text = element.content();
    let unit = element.peek("unit").unwrap_or(default_unit);
    if let Some(size) = scaled(text.trim(), unit) {
        element.take_known("unit");
        return (Some(size), None);
    }
    if let Err(error) = Bytes::scale(unit) {
        let span = element.value_span("unit").unwrap_or(element.tag);
        reader.problem(&INVALID_VALUE, at, span, error.to_string());
    } else if unsigned64(text.trim()).is_some() {
        let message = format!("{} {unit} are more than 2^64 - 1 bytes", text.trim());
        reader.problem(&INVALID_VALUE, at, element.tag, message);
    }
    // An invalid number has already been reported.
    (None, Some(text).filter(|text| !text.is_empty()))
}

/// Writes a size, in KiB if it is a multiple of them.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    name: &'static str,
    size: Option<Bytes>,
    kept: &'k UnmodeledContent,
    at: UnmodeledPath,
) {
    let parts = kept.at(at);
    match size {
        Some(Bytes(bytes)) => {
            writer.start(name, parts);
            let (unit, count) = if bytes.is_multiple_of(Bytes::KIB) {
                ("KiB", bytes / Bytes::KIB)
            } else {
                ("bytes", bytes)
            };
            writer.attribute("unit", unit);
            writer.end_with_text(Some(count.to_string()));
        }
        None if parts.is_empty() => {}
        None => {
            writer.start(name, parts);
            writer.end_with_text(parts.text.clone());
        }
    }
}
