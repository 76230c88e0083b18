//! Hands nodes to serde, with the place of each mistake.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use vmdisk_source::{Span, nearest};

use crate::path::Path;
use crate::{Entry, Node, Value};

/// A key that a type does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The path of its value, such as `files[2].sise`.
    pub path: String,
    /// The place of the key.
    pub span: Span,
    /// The key that was probably meant.
    pub meant: Option<&'static str>,
}

/// A value that a type cannot be read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// The path of the value, such as `files[2].size`; `None` at the top.
    pub path: Option<String>,
    /// The place of the value.
    pub span: Span,
    /// The mistake: lower case, no full stop. It does not repeat text of the document.
    pub message: String,
}

/// Reads a type from a node, and returns with it the keys that the type does not read, except keys with a leading
/// underscore.
///
/// # Errors
/// The first value that the type cannot be read from.
pub fn from_node<'de, T: Deserialize<'de>>(node: &Node) -> Result<(T, Vec<Ignored>), ValueError> {
    let ignored = RefCell::new(Vec::new());
    let value = T::deserialize(NodeReader {
        node,
        path: Path::Root,
        known: &[],
        key_span: node.span,
        ignored: &ignored,
    })
    .map_err(|mut error| {
        error.path = error.path.filter(|path| !path.is_empty());
        error
    })?;
    Ok((value, ignored.into_inner()))
}

impl ValueError {
    /// The same error with its place, unless it has one from further inside.
    fn at(mut self, path: &Path<'_>, span: Span) -> Self {
        if self.path.is_none() {
            self.path = Some(path.to_string());
            self.span = span;
        }
        self
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ValueError {}

impl serde::de::Error for ValueError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            path: None,
            span: Span::default(),
            message: message.to_string(),
        }
    }

    // Values are not repeated: with a wrong path, the file may be anything and private.
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
        _ => "another kind of value",
    }
}

/// Hands a node to a type, and notes the keys that the type does not read.
#[derive(Clone, Copy)]
struct NodeReader<'a> {
    node: &'a Node,
    path: Path<'a>,
    /// The keys that the struct around it reads.
    known: &'static [&'static str],
    /// Where its key is written.
    key_span: Span,
    ignored: &'a RefCell<Vec<Ignored>>,
}

impl<'de> Deserializer<'de> for NodeReader<'_> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Signed(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(list) => visitor.visit_seq(ListReader {
                at: self,
                rest: list,
                index: 0,
            }),
            Value::Map(map) => visitor.visit_map(MapReader {
                at: self,
                rest: map,
                known: &[],
                current: None,
            }),
        }
        .map_err(|error| error.at(&self.path, self.node.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match &self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        match &self.node.value {
            Value::Map(map) => visitor.visit_map(MapReader {
                at: self,
                rest: map,
                known,
                current: None,
            }),
            // A derived reader would take a list for its fields in order, which nobody means.
            Value::List(_) => Err(ValueError::invalid_type(Unexpected::Seq, &visitor)),
            _ => return self.deserialize_any(visitor),
        }
        .map_err(|error| error.at(&self.path, self.node.span))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        match &self.node.value {
            Value::Text(word) => {
                let word: StrDeserializer<'_, ValueError> = word.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            _ => Err(ValueError::custom("expected a word")),
        }
        .map_err(|error| error.at(&self.path, self.node.span))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        // A key that starts with an underscore is a note to people, and is not warned about.
        if let Path::Key(_, key) = self.path
            && !key.starts_with('_')
        {
            self.ignored.borrow_mut().push(Ignored {
                path: self.path.to_string(),
                span: self.key_span,
                meant: nearest(key, self.known.iter().copied()),
            });
        }
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

struct ListReader<'a> {
    at: NodeReader<'a>,
    rest: &'a [Node],
    index: usize,
}

impl<'de> SeqAccess<'de> for ListReader<'_> {
    type Error = ValueError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ValueError> {
        let Some((first, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        let path = Path::Index(&self.at.path, self.index);
        self.rest = rest;
        self.index += 1;
        seed.deserialize(NodeReader {
            node: first,
            path,
            known: &[],
            key_span: first.span,
            ignored: self.at.ignored,
        })
        .map(Some)
        .map_err(|error| error.at(&path, first.span))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct MapReader<'a> {
    at: NodeReader<'a>,
    rest: &'a [Entry],
    known: &'static [&'static str],
    current: Option<&'a Entry>,
}

impl<'de> MapAccess<'de> for MapReader<'_> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ValueError> {
        let Some((member, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.current = Some(member);
        self.rest = rest;
        let path = Path::Key(&self.at.path, &member.key);
        seed.deserialize(KeyReader(&member.key))
            .map(Some)
            .map_err(|error| error.at(&path, member.key_span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ValueError> {
        let Some(member) = self.current.take() else {
            return Err(ValueError::custom("a value was requested before its key"));
        };
        let path = Path::Key(&self.at.path, &member.key);
        seed.deserialize(NodeReader {
            node: &member.node,
            path,
            known: self.known,
            key_span: member.key_span,
            ignored: self.at.ignored,
        })
        .map_err(|error| error.at(&path, member.node.span))
    }
}

/// A key: text, and a number to a map that is keyed by numbers.
struct KeyReader<'a>(&'a str);

impl<'de> Deserializer<'de> for KeyReader<'_> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_str(self.0)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let digits = self.0.bytes().all(|b| b.is_ascii_digit());
        match self.0.parse() {
            Ok(number) if digits => visitor.visit_u64(number),
            Ok(_) | Err(_) => Err(ValueError::custom("expected a number as the key")),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
