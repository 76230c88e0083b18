//! JSON whose members keep their order, because people read the command lines this crate writes.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// A JSON value of the kinds that QEMU's options take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; every number this crate writes is a count or a size.
    Number(u64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(JsonObject),
}

/// A JSON object whose members keep the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonObject {
    members: Vec<(Cow<'static, str>, Json)>,
}

impl JsonObject {
    /// An object without members.
    pub const fn new() -> Self {
        JsonObject {
            members: Vec::new(),
        }
    }

    /// Adds a member at the end.
    pub fn push(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Json>) {
        self.members.push((key.into(), value.into()));
    }

    /// Inserts a member after the first `at` members.
    pub(crate) fn insert(&mut self, at: usize, key: &'static str, value: impl Into<Json>) {
        let at = at.min(self.members.len());
        self.members.insert(at, (key.into(), value.into()));
    }

    /// Adds a member at the end, if there is a value for it.
    pub fn push_some(&mut self, key: &'static str, value: Option<impl Into<Json>>) {
        if let Some(value) = value {
            self.push(key, value);
        }
    }

    /// The same object with one more member.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Json>) -> Self {
        self.push(key, value);
        self
    }

    /// The value of a member.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.members
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// The text of a member that is a string.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The members, in order.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.members.iter().map(|(key, value)| (&**key, value))
    }
}

impl Json {
    /// The object, if the value is one.
    pub const fn as_object(&self) -> Option<&JsonObject> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident)*) => {
        $(impl From<$source> for Json {
            fn from(value: $source) -> Self {
                Json::$variant(value.into())
            }
        })*
    };
}

from! {
    bool => Bool
    u32 => Number
    u64 => Number
    &str => String
    String => String
    JsonObject => Object
    Vec<Json> => Array
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => value.serialize(serializer),
            Json::Number(value) => value.serialize(serializer),
            Json::String(text) => text.serialize(serializer),
            Json::Array(items) => items.serialize(serializer),
            Json::Object(object) => object.serialize(serializer),
        }
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.members())
    }
}

/// The value in one line, without spaces.
fn write(f: &mut fmt::Formatter<'_>, value: &impl Serialize) -> fmt::Result {
    f.write_str(&serde_json::to_string(value).map_err(|_| fmt::Error)?)
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self)
    }
}

impl fmt::Display for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_come_out_in_the_order_they_went_in() {
        let object = JsonObject::new()
            .with("driver", "raw")
            .with("b", 7_u32)
            .with("a", Json::Null)
            .with(
                "cache",
                JsonObject::new()
                    .with("direct", true)
                    .with("no-flush", false),
            )
            .with(
                "list",
                vec![Json::Number(0), Json::Array(vec![]), Json::Bool(true)],
            );
        assert_eq!(
            object.to_string(),
            r#"{"driver":"raw","b":7,"a":null,"cache":{"direct":true,"no-flush":false},"list":[0,[],true]}"#
        );
        assert_eq!(object.text("driver"), Some("raw"));
        assert_eq!(object.text("b"), None);
    }

    proptest! {
        #[test]
        fn any_string_is_read_back_the_same_by_another_json_parser(text in any::<String>()) {
            let written = Json::String(text.clone()).to_string();
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
            prop_assert!(!written.contains('\n'), "a value stays on its line");
        }
    }
}
