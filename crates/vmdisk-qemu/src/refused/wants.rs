//! What kind of value a property takes.

use crate::syntax::properties::{Kind, Property};
use crate::syntax::value::{is_open, number_of, size_of, switch_of};

/// What kind of value a property takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// Not looked at here: words, lists, objects.
    Any,
    /// A switch; in JSON `true` or `false`.
    Bool,
    /// `on`, `off` or `auto`, in JSON too.
    OnOffAuto,
    /// Text.
    Text,
    /// A number.
    Number,
    /// A number of bytes, in key=value with a unit.
    Size,
    /// A number that has no unit in key=value either.
    Integer,
}

impl Wants {
    /// What should have been written, if the value is of another type; QEMU refuses it then.
    pub(super) fn refusal(self, property: &Property) -> Option<&'static str> {
        let text = property.value.as_str();
        if is_open(text) {
            return None;
        }
        let is_plain = property.kind == Kind::Plain;
        let digits = text.strip_prefix('-').unwrap_or(text);
        match self {
            Wants::Any => None,
            Wants::Bool if is_plain => switch_of(text).is_none().then_some("on or off"),
            Wants::Bool => (property.kind != Kind::Bool).then_some("true or false without quotes"),
            Wants::OnOffAuto if is_plain => {
                (!matches!(text, "on" | "off" | "auto")).then_some("on, off or auto")
            }
            Wants::OnOffAuto => {
                let is_word = property.kind == Kind::Text && matches!(text, "on" | "off" | "auto");
                (!is_word).then_some("\"on\", \"off\" or \"auto\" between quotes")
            }
            Wants::Text => {
                (!is_plain && property.kind != Kind::Text).then_some("text between quotes")
            }
            Wants::Size if is_plain => size_of(text, 1).is_none().then_some("a size"),
            // The numbers of nodes are sizes and times.
            Wants::Integer if text.starts_with('-') => Some("a number that is not negative"),
            Wants::Number | Wants::Integer if is_plain => {
                number_of(digits).is_none().then_some("a number")
            }
            Wants::Number | Wants::Integer | Wants::Size => {
                (property.kind != Kind::Number).then_some("a number without quotes")
            }
        }
    }
}
