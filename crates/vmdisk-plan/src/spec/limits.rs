//! Ranges and patterns of values in the JSON Schema, so that an editor marks what the check of a spec refuses.

use serde_json::Value as Schema;
use serde_json::json;
use vmdisk_fields::{DISK_FIELDS, ValueLimits, Zero, disk};
use vmdisk_model::Bytes;

/// A range of whole numbers or of bytes.
struct Range {
    least: u64,
    most: u64,
    /// Every value is a multiple of this.
    step: u64,
}

/// Narrows the schema of a key's value to what [`crate::Spec::check`] accepts, as far as one value decides.
pub(super) fn narrow(key: &str, schema: &mut Schema) {
    if let Some(pattern) = pattern(key) {
        schema["pattern"] = pattern.into();
    } else if let Some(range) = number(key) {
        let text = if range.least == 0 {
            "^[0-9]+$"
        } else {
            "^0*[1-9][0-9]*$"
        };
        narrow_alternatives(schema, &range, text);
    } else if let Some(range) = size(key) {
        // A bare number has three digits at least; where no size is zero, none is accepted.
        let text = r"^\s*(?=.*[1-9])([0-9]{3,}\s*([bB]|[bB]ytes?)?|[0-9]*\.?[0-9]*\s*[kKmMgGtTpPeE]([iI]?[bB])?)\s*$";
        let text = match range.least {
            0 => format!("{text}|^0$"),
            _ => text.to_owned(),
        };
        narrow_alternatives(schema, &range, &text);
    }
}

/// Sets the range of the number, and the pattern of the same number as text.
fn narrow_alternatives(schema: &mut Schema, range: &Range, text: &str) {
    let Range { least, most, step } = range;
    let mut number = json!({ "type": "integer", "minimum": least, "maximum": most });
    if *step > 1 {
        number["multipleOf"] = json!(step);
    }
    let text = json!({ "type": "string", "pattern": text });
    schema["oneOf"] = json!([number, text]);
}

/// The pattern of a text.
fn pattern(key: &str) -> Option<String> {
    if let Some(pattern) = values(key).pattern() {
        return Some(pattern);
    }
    let pattern = match key {
        "path" | "socket" => "^/",
        "uuid" => "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
        "machine" => r"^[-a-zA-Z0-9._+]+$",
        _ => return None,
    };
    Some(pattern.to_owned())
}

/// What the table of fields says about the values of a key of a disk.
fn values(key: &str) -> ValueLimits {
    let mut rows = DISK_FIELDS.iter().map(|field| disk(*field));
    rows.find(|row| row.spec == Some(key))
        .map_or(ValueLimits::Any, |row| row.values)
}

/// The range of a number in the table of fields, with 0 where that says that nothing is set.
fn of_table(key: &str) -> Option<(u64, u64)> {
    match values(key) {
        ValueLimits::Number {
            least, most, zero, ..
        } => {
            let least = if zero == Zero::Number { least } else { 0 };
            Some((least.into(), most.into()))
        }
        _ => None,
    }
}

/// The range of a number.
fn number(key: &str) -> Option<Range> {
    let (least, most) = match key {
        "boot" | "queues" | "queue-size" => of_table(key)?,
        "vcpus" | "reconnect-timeout" | "namespace" => (1, u32::MAX.into()),
        "rotation-rate" => (1, 65534),
        _ => return None,
    };
    Some(Range {
        least,
        most,
        step: 1,
    })
}

/// The range of a size in bytes.
fn size(key: &str) -> Option<Range> {
    let (least, most, step) = match key {
        "size" | "pool-size" => (512, i64::MAX.unsigned_abs(), 512),
        "logical-block-size" | "physical-block-size" => {
            let (least, most) = of_table(key)?;
            (least, most, 512)
        }
        "cluster-size" => (512, 2 << 20, 512),
        "chunk-size" => (64 << 10, Bytes::GIB, 64 << 10),
        "memory" => (Bytes::MIB, u64::MAX, 1),
        _ => return None,
    };
    Some(Range { least, most, step })
}
