//! Ranges and patterns of values in the JSON Schema, so that an editor marks what the check of a spec refuses.

use serde_json::Value as Schema;
use serde_json::json;
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
        narrow_alternatives(schema, &range, "^0*[1-9][0-9]*$");
    } else if let Some(range) = size(key) {
        // A bare number has three digits at least, and no size is zero.
        let text = r"^\s*(?=.*[1-9])([0-9]{3,}\s*([bB]|[bB]ytes?)?|[0-9]*\.?[0-9]*\s*[kKmMgGtTpPeE]([iI]?[bB])?)\s*$";
        narrow_alternatives(schema, &range, text);
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
fn pattern(key: &str) -> Option<&'static str> {
    Some(match key {
        "path" | "socket" => "^/",
        "uuid" => "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
        "wwn" => "^[0-9a-fA-F]{16}$",
        "serial" => r"^[-a-zA-Z0-9_.+ ]+$",
        "machine" => r"^[-a-zA-Z0-9._+]+$",
        "vendor" => "^[ -~]{1,8}$",
        "product" => "^[ -~]{1,40}$",
        _ => return None,
    })
}

/// The range of a number.
fn number(key: &str) -> Option<Range> {
    let (least, most) = match key {
        "boot" | "vcpus" | "reconnect-timeout" | "namespace" => (1, u32::MAX.into()),
        "queues" => (1, 1024),
        "queue-size" => (4, 1024),
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
        "cluster-size" | "logical-block-size" | "physical-block-size" => (512, 2 << 20, 512),
        "chunk-size" => (64 << 10, Bytes::GIB, 64 << 10),
        "memory" => (Bytes::MIB, u64::MAX, 1),
        _ => return None,
    };
    Some(Range { least, most, step })
}
