//! The meaning of the text of a value.

use vmdisk_model::{Bytes, Switch};

use super::properties::Property;

/// A switch in one of QEMU's spellings.
pub(crate) fn switch_of(word: &str) -> Option<Switch> {
    match word {
        "on" | "true" | "yes" | "y" => Some(Switch::On),
        "off" | "false" | "no" | "n" => Some(Switch::Off),
        _ => None,
    }
}

/// True for a property that is on.
pub(crate) fn is_on(property: Option<&Property>) -> bool {
    property.and_then(|property| switch_of(property.value.as_str())) == Some(Switch::On)
}

/// A number, also in hexadecimal.
pub(crate) fn number_of(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None if text.bytes().all(|digit| digit.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// A size with QEMU's units; `default` is the unit of a bare number.
pub(crate) fn size_of(text: &str, default: u64) -> Option<Bytes> {
    let is_bare = text.bytes().all(|digit| digit.is_ascii_digit());
    let size = Bytes::parse(text).ok()?;
    let scale = if is_bare { default } else { 1 };
    size.0.checked_mul(scale).map(Bytes)
}
