//! Values of another type than a property takes.

use vmdisk_facts::ValueKind;

use crate::syntax::properties::{Kind, Property};
use crate::syntax::value::{number_of, size_of, switch_of};

/// The expected value, if the actual one is of another type; QEMU refuses it then.
pub(super) fn expected(
    kind: ValueKind,
    may_be_negative: bool,
    property: &Property,
) -> Option<&'static str> {
    let text = property.value.as_str();
    if property.is_open() {
        return None;
    }
    let is_plain = property.kind == Kind::Plain;
    let digits = text.strip_prefix('-').unwrap_or(text);
    match kind {
        ValueKind::Any => None,
        ValueKind::Bool if is_plain => switch_of(text).is_none().then_some("on or off"),
        ValueKind::Bool => (property.kind != Kind::Bool).then_some("true or false without quotes"),
        ValueKind::OnOffAuto if is_plain => {
            (!matches!(text, "on" | "off" | "auto")).then_some("on, off or auto")
        }
        ValueKind::OnOffAuto => {
            let is_word = property.kind == Kind::Text && matches!(text, "on" | "off" | "auto");
            (!is_word).then_some("\"on\", \"off\" or \"auto\" between quotes")
        }
        ValueKind::Text => {
            (!is_plain && property.kind != Kind::Text).then_some("text between quotes")
        }
        ValueKind::Size if is_plain => size_of(text, 1).is_none().then_some("a size"),
        ValueKind::Number if !may_be_negative && text.starts_with('-') => {
            Some("a number that is not negative")
        }
        ValueKind::Number if is_plain => number_of(digits).is_none().then_some("a number"),
        ValueKind::Number | ValueKind::Size => {
            (property.kind != Kind::Number).then_some("a number without quotes")
        }
    }
}
