//! Text made harmless for a terminal and a log, and JSON of such text.

use serde::Serialize;
use serde_json::Value;
pub(crate) use vmdisk_source::sanitize::{line, lines, source_character};

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
