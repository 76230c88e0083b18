//! Values and their places. The places of values that were made and not read are empty.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use vmdisk_source::Span;

/// A value that YAML and JSON have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Nothing: an empty value, `null` or `~`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that is not negative.
    Unsigned(u64),
    /// A negative whole number.
    Signed(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the order of the text; a key may occur twice.
    Map(Vec<Entry>),
}

impl Value {
    /// A map of these keys and values.
    pub fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        let member = |(key, value): (K, Value)| Entry {
            key: key.into(),
            key_span: Span::default(),
            node: value.into(),
        };
        Value::Map(entries.into_iter().map(member).collect())
    }

    /// A list of these values.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Self {
        Value::List(items.into_iter().map(Node::from).collect())
    }

    /// The value that serde makes of something, with the keys of each map sorted: equal things give equal values.
    ///
    /// # Errors
    /// If serde cannot express it as JSON.
    pub fn sorted(from: &impl Serialize) -> Result<Self, serde_json::Error> {
        let mut value = Value::deserialize(serde_json::to_value(from)?)?;
        value.sort_keys();
        Ok(value)
    }

    fn sort_keys(&mut self) {
        match self {
            Value::List(items) => items.iter_mut().for_each(|item| item.value.sort_keys()),
            Value::Map(members) => {
                members.sort_by(|a, b| a.key.cmp(&b.key));
                members
                    .iter_mut()
                    .for_each(|member| member.node.value.sort_keys());
            }
            _ => {}
        }
    }

    /// The text, if the value is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Unsigned(value) => serializer.serialize_u64(*value),
            Value::Signed(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(text) => serializer.serialize_str(text),
            Value::List(items) => serializer.collect_seq(items.iter().map(|item| &item.value)),
            Value::Map(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for member in members {
                    map.serialize_entry(&member.key, &member.node.value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or(Value::Signed(value), Value::Unsigned))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Value>()? {
            items.push(item);
        }
        Ok(Value::list(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry::<String, Value>()? {
            entries.push(entry);
        }
        Ok(Value::map(entries))
    }
}

/// A value and its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its place, from its first to its last byte; of a missing value, the place after its key.
    pub span: Span,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub key_span: Span,
    /// The value.
    pub node: Node,
}

/// One step from a value to one inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStep<'a> {
    /// To the value of a key.
    Key(&'a str),
    /// To the nth item of a list, from 0.
    Index(usize),
}

impl From<Value> for Node {
    /// A value that is not written anywhere.
    fn from(value: Value) -> Self {
        Node {
            value,
            span: Span::default(),
        }
    }
}

impl Node {
    /// The members of a map; empty for every other value.
    pub fn members(&self) -> &[Entry] {
        if let Value::Map(members) = &self.value {
            members
        } else {
            &[]
        }
    }

    /// The first member of a map with this key.
    pub fn member(&self, key: &str) -> Option<&Entry> {
        self.members().iter().find(|member| member.key == key)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.member(key).map(|member| &member.node)
    }

    /// The items of a list; empty for every other value.
    pub fn items(&self) -> &[Node] {
        if let Value::List(items) = &self.value {
            items
        } else {
            &[]
        }
    }

    /// The nth item of a list, from 0.
    pub fn item(&self, index: usize) -> Option<&Node> {
        self.items().get(index)
    }

    fn step(&self, step: PathStep<'_>) -> Option<&Node> {
        match step {
            PathStep::Key(key) => self.get(key),
            PathStep::Index(index) => self.item(index),
        }
    }

    /// The value at the end of a path.
    pub fn find<'a>(&self, path: impl IntoIterator<Item = PathStep<'a>>) -> Option<&Node> {
        path.into_iter().try_fold(self, Node::step)
    }

    /// The value at the end of a path, or the last one on the way that exists.
    pub fn nearest<'a>(&self, path: impl IntoIterator<Item = PathStep<'a>>) -> &Node {
        let mut node = self;
        for step in path {
            match node.step(step) {
                Some(below) => node = below,
                None => break,
            }
        }
        node
    }

    /// A key that is written twice in one map, if there is one.
    pub fn duplicate_key(&self) -> Option<&Entry> {
        let mut seen = std::collections::HashSet::new();
        let in_map = self.members().iter().find_map(|member| {
            if seen.insert(&member.key) {
                member.node.duplicate_key()
            } else {
                Some(member)
            }
        });
        in_map.or_else(|| self.items().iter().find_map(Node::duplicate_key))
    }
}
