//! A tree that JSON and YAML are both read into, and a deserializer over it that knows where it is.
//!
//! Both syntaxes meet here, so that a mistake is reported by the path of the value (`files[2].size`)
//! and a key nobody reads is noticed, in either of them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A value as JSON and YAML have it in common, its keys sorted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Map(BTreeMap<String, Tree>),
}

/// Builds a [`Tree`], with a limit on its size: a few YAML aliases can describe a tree that fits no memory.
pub(crate) struct TreeSeed<'a> {
    /// How many more values may be built.
    pub(crate) budget: &'a Cell<usize>,
}

impl TreeSeed<'_> {
    fn spend<E: serde::de::Error>(&self) -> Result<(), E> {
        match self.budget.get().checked_sub(1) {
            Some(left) => {
                self.budget.set(left);
                Ok(())
            }
            None => Err(E::custom("too many values")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for TreeSeed<'_> {
    type Value = Tree;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        self.spend()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TreeSeed<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(u64::try_from(value).map_or(Tree::Signed(value), Tree::Unsigned))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(TreeSeed {
            budget: self.budget,
        })? {
            list.push(value);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(key) = map.next_key_seed(KeySeed)? {
            let value = map.next_value_seed(TreeSeed {
                budget: self.budget,
            })?;
            if entries.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key \"{key}\" is written twice"
                )));
            }
            entries.insert(key, value);
        }
        Ok(Tree::Map(entries))
    }
}

/// Reads a key as text. YAML reads `2048:` as a number, and a person means the text.
struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, value: &str) -> Result<String, E> {
        Ok(value.to_owned())
    }

    fn visit_bool<E>(self, value: bool) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_u64<E>(self, value: u64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_i64<E>(self, value: i64) -> Result<String, E> {
        Ok(value.to_string())
    }
}

impl From<serde_json::Value> for Tree {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), _, _) => Self::Unsigned(value),
                (None, Some(value), _) => Self::Signed(value),
                (None, None, Some(value)) => Self::Float(value),
                (None, None, None) => Self::Text(number.to_string()),
            },
            Value::String(text) => Self::Text(text),
            Value::Array(list) => Self::List(list.into_iter().map(Self::from).collect()),
            Value::Object(map) => Self::Map(
                map.into_iter()
                    .map(|(key, value)| (key, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => serializer.collect_seq(list),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

/// Where a value is in the tree; kept as a chain on the stack, written out only when it is needed.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Key(parent, key) => {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                if key.is_empty() || !key.bytes().all(plain) {
                    write!(f, "{parent}[{key:?}]")
                } else if matches!(parent, Self::Root) {
                    f.write_str(key)
                } else {
                    write!(f, "{parent}.{key}")
                }
            }
        }
    }
}

/// A mistake and where it is; the place is filled in on the way up from the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedError {
    pub(crate) path: Option<String>,
    pub(crate) message: String,
}

impl PlacedError {
    fn at(mut self, path: &Path<'_>) -> Self {
        self.path.get_or_insert_with(|| path.to_string());
        self
    }
}

impl fmt::Display for PlacedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PlacedError {}

impl serde::de::Error for PlacedError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            path: None,
            message: message.to_string(),
        }
    }

    // What is in the file may be anything, and is not repeated: a wrong path leads to other people's files.
    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Self::custom(format!(
            "expected {expected}, found {}",
            kind_of(unexpected)
        ))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Self::custom(format!(
            "expected {expected}, found another value of {}",
            kind_of(unexpected)
        ))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let is_word = variant.len() <= 32
            && variant
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let word = if is_word {
            format!(" `{variant}`")
        } else {
            String::new()
        };
        Self::custom(format!(
            "unknown variant{word}, expected one of: {}",
            expected.join(", ")
        ))
    }
}

/// The kind of a value, without the value.
fn kind_of(unexpected: Unexpected<'_>) -> &'static str {
    match unexpected {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::Bytes(_) => "text",
        Unexpected::Unit | Unexpected::Option => "nothing",
        Unexpected::Seq => "a list",
        Unexpected::Map => "keys with values",
        Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant
        | Unexpected::NewtypeStruct
        | Unexpected::Other(_) => "another kind of value",
    }
}

/// Hands a tree to a type, noting the keys the type does not read.
#[derive(Clone, Copy)]
pub(crate) struct TreeReader<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) path: Path<'a>,
    pub(crate) ignored: &'a RefCell<Vec<String>>,
}

impl<'de> Deserializer<'de> for TreeReader<'_> {
    type Error = PlacedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlacedError> {
        match self.tree {
            Tree::Null => visitor.visit_unit(),
            Tree::Bool(value) => visitor.visit_bool(*value),
            Tree::Unsigned(value) => visitor.visit_u64(*value),
            Tree::Signed(value) => visitor.visit_i64(*value),
            Tree::Float(value) => visitor.visit_f64(*value),
            Tree::Text(text) => visitor.visit_str(text),
            Tree::List(list) => visitor.visit_seq(ListReader {
                at: self,
                rest: list,
                index: 0,
            }),
            Tree::Map(map) => visitor.visit_map(MapReader {
                at: self,
                rest: map.iter(),
                current: None,
            }),
        }
        .map_err(|error| error.at(&self.path))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlacedError> {
        match self.tree {
            Tree::Null => visitor.visit_none(),
            Tree::Bool(_)
            | Tree::Unsigned(_)
            | Tree::Signed(_)
            | Tree::Float(_)
            | Tree::Text(_)
            | Tree::List(_)
            | Tree::Map(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PlacedError> {
        // A derived reader would take a list for its fields in order, which nobody means.
        match self.tree {
            Tree::List(_) => {
                Err(PlacedError::invalid_type(Unexpected::Seq, &visitor).at(&self.path))
            }
            Tree::Null
            | Tree::Bool(_)
            | Tree::Unsigned(_)
            | Tree::Signed(_)
            | Tree::Float(_)
            | Tree::Text(_)
            | Tree::Map(_) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, PlacedError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PlacedError> {
        match self.tree {
            Tree::Text(word) => {
                let word: StrDeserializer<'_, PlacedError> = word.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            Tree::Null
            | Tree::Bool(_)
            | Tree::Unsigned(_)
            | Tree::Signed(_)
            | Tree::Float(_)
            | Tree::List(_)
            | Tree::Map(_) => Err(PlacedError::custom("expected a word")),
        }
        .map_err(|error| error.at(&self.path))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlacedError> {
        // A key that starts with an underscore is a note to people, and is not warned about.
        if !matches!(self.path, Path::Key(_, key) if key.starts_with('_')) {
            self.ignored.borrow_mut().push(self.path.to_string());
        }
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

struct ListReader<'a> {
    at: TreeReader<'a>,
    rest: &'a [Tree],
    index: usize,
}

impl<'de> SeqAccess<'de> for ListReader<'_> {
    type Error = PlacedError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, PlacedError> {
        let Some((first, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        let path = Path::Index(&self.at.path, self.index);
        self.rest = rest;
        self.index += 1;
        seed.deserialize(TreeReader {
            tree: first,
            path,
            ignored: self.at.ignored,
        })
        .map(Some)
        .map_err(|error| error.at(&path))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct MapReader<'a> {
    at: TreeReader<'a>,
    rest: std::collections::btree_map::Iter<'a, String, Tree>,
    current: Option<(&'a str, &'a Tree)>,
}

impl<'de> MapAccess<'de> for MapReader<'_> {
    type Error = PlacedError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, PlacedError> {
        let Some((key, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.current = Some((key, value));
        let path = Path::Key(&self.at.path, key);
        seed.deserialize(KeyReader(key))
            .map(Some)
            .map_err(|error| error.at(&path))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, PlacedError> {
        let Some((key, tree)) = self.current.take() else {
            return Err(PlacedError::custom("a value was asked for before its key"));
        };
        let path = Path::Key(&self.at.path, key);
        seed.deserialize(TreeReader {
            tree,
            path,
            ignored: self.at.ignored,
        })
        .map_err(|error| error.at(&path))
    }
}

/// A key: text, and a number to a map that is keyed by numbers.
struct KeyReader<'a>(&'a str);

impl<'de> Deserializer<'de> for KeyReader<'_> {
    type Error = PlacedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlacedError> {
        visitor.visit_str(self.0)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlacedError> {
        let digits = self.0.bytes().all(|b| b.is_ascii_digit());
        match self.0.parse() {
            Ok(number) if digits => visitor.visit_u64(number),
            Ok(_) | Err(_) => Err(PlacedError::custom("expected a number as the key")),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
