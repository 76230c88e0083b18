//! Text made harmless for a terminal and a log, without the secrets that it quotes, and JSON of such text.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use vmdisk_source::sanitize;
pub(crate) use vmdisk_source::sanitize::source_character;
use vmdisk_source::secrets::{mask_lines, mask_message};

/// One line of text: no secret, and every hazard, line ends included, is written as its number.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    harmless(mask_message(text), sanitize::line)
}

/// Text of several lines: line feeds stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    harmless(mask_lines(text), sanitize::lines)
}

fn harmless<'t>(masked: Cow<'t, str>, escape: impl Fn(&str) -> Cow<'_, str>) -> Cow<'t, str> {
    match escape(&masked) {
        Cow::Owned(escaped) => Cow::Owned(escaped),
        Cow::Borrowed(_) => masked,
    }
}

/// A value as JSON of which every string, line ends included, is harmless; for reports whose only line ends are their own.
pub(crate) fn strings(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(clean(serde_json::to_value(value)?).to_string())
}

fn clean(value: Value) -> Value {
    match value {
        Value::String(string) => Value::String(line(&string).into_owned()),
        Value::Array(values) => Value::Array(values.into_iter().map(clean).collect()),
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(key, value)| (line(&key).into_owned(), clean(value)))
                    .collect(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}
