//! One fact: known, absent, unknown with a reason, or never asked for.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeSeed, Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use crate::reason::{Reason, Unknown};

/// The knowledge about one value, in four states that are never confused.
///
/// In JSON: the plain value, `null`, `{"unknown": "permission", "detail": "…"}`, and a missing key.
/// A value that is an object must not itself have a first key `unknown` or `detail`; no type in this crate does.
///
/// ```
/// use vmdisk_facts::{Fact, Reason};
/// let sector = Fact::Known(4096);
/// assert_eq!(sector.map(|bytes| bytes / 512), Fact::Known(8));
/// let hidden: Fact<u32> = Fact::unknown(Reason::Permission, "the image belongs to libvirt-qemu");
/// assert_eq!(hidden.known(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact<T> {
    /// It was collected, and this is the value.
    Known(T),
    /// It was collected, and does not exist here (no partition, no such file on this kernel).
    Absent,
    /// It was requested, and could not be collected.
    Unknown(Unknown),
    /// It was not requested: an older collector, or a group that was not selected.
    #[default]
    NotCollected,
}

impl<T> Fact<T> {
    /// The value, or that there is none.
    pub fn or_absent(value: Option<T>) -> Self {
        value.map_or(Fact::Absent, Fact::Known)
    }

    /// An unknown value with the reason and the details.
    pub fn unknown(reason: Reason, detail: impl Into<String>) -> Self {
        Self::Unknown(Unknown::new(reason, detail))
    }

    /// The value, when it is known.
    pub fn known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown(_) | Self::NotCollected => None,
        }
    }

    /// The value by reference, when it is known.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown(_) | Self::NotCollected => None,
        }
    }

    /// True if the value is known.
    pub const fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// True if it was collected and does not exist.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// True if collecting it failed.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// True if it was not collected.
    pub const fn is_not_collected(&self) -> bool {
        matches!(self, Self::NotCollected)
    }

    /// True if a rule can use it: known, or known to be absent.
    pub const fn is_settled(&self) -> bool {
        matches!(self, Self::Known(_) | Self::Absent)
    }

    /// The same fact with a borrowed value.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Known(value) => Fact::Known(value),
            Self::Absent => Fact::Absent,
            Self::Unknown(unknown) => Fact::Unknown(unknown.clone()),
            Self::NotCollected => Fact::NotCollected,
        }
    }

    /// Another value from a known one; every other state stays what it is.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        self.and_then(|value| Fact::Known(f(value)))
    }

    /// Another fact from a known value; every other state stays what it is.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Known(value) => f(value),
            Self::Absent => Fact::Absent,
            Self::Unknown(unknown) => Fact::Unknown(unknown),
            Self::NotCollected => Fact::NotCollected,
        }
    }

    /// This fact when it settles the question, otherwise the other one when that does; else the better excuse.
    pub fn or(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Known(_) | Self::Absent, _) => self,
            (Self::Unknown(_) | Self::NotCollected, Self::Known(_) | Self::Absent) => other,
            (Self::NotCollected, Self::Unknown(_)) => other,
            (Self::Unknown(_) | Self::NotCollected, Self::Unknown(_) | Self::NotCollected) => self,
        }
    }

    /// The value as an option, or the reason why it is not known; usually the first question of a rule.
    ///
    /// `Ok(Some(value))` is known, `Ok(None)` is absent, `Err` says why the rule cannot be checked.
    pub fn settled(self) -> Result<Option<T>, Unknown> {
        match self {
            Self::Known(value) => Ok(Some(value)),
            Self::Absent => Ok(None),
            Self::Unknown(unknown) => Err(unknown),
            Self::NotCollected => Err(Unknown::new(Reason::NotCollected, "")),
        }
    }
}

impl<T: Copy> Fact<&T> {
    /// The same fact with its value copied out.
    pub fn copied(self) -> Fact<T> {
        self.map(|value| *value)
    }
}

impl<T: Clone> Fact<&T> {
    /// The same fact with its value cloned out.
    pub fn cloned(self) -> Fact<T> {
        self.map(Clone::clone)
    }
}

impl Fact<String> {
    /// The same fact with the text borrowed.
    pub fn as_str(&self) -> Fact<&str> {
        self.as_ref().map(String::as_str)
    }
}

impl<T: PartialEq> Fact<T> {
    /// Whether the value is known and is this one.
    pub fn is(&self, value: &T) -> bool {
        match self {
            Self::Known(known) => known == value,
            Self::Absent | Self::Unknown(_) | Self::NotCollected => false,
        }
    }
}

impl Fact<bool> {
    /// Whether it is known to be so.
    pub const fn is_true(&self) -> bool {
        matches!(self, Self::Known(true))
    }

    /// Whether it is known not to be so; absent counts as no.
    pub const fn is_false(&self) -> bool {
        matches!(self, Self::Known(false) | Self::Absent)
    }
}

impl<T> From<T> for Fact<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: Serialize> Serialize for Fact<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Absent => serializer.serialize_unit(),
            Self::Unknown(unknown) => {
                let mut map = serializer.serialize_map(None)?;
                if !unknown.detail().is_empty() {
                    map.serialize_entry("detail", unknown.detail())?;
                }
                map.serialize_entry("unknown", unknown.reason().as_str())?;
                map.end()
            }
            // A field of this type is skipped if it was not collected. Only a place that cannot be skipped (an
            // element of a list) is serialized here.
            Self::NotCollected => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("unknown", Reason::NotCollected.as_str())?;
                map.end()
            }
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fact<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FactVisitor(PhantomData))
    }
}

struct FactVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FactVisitor<T> {
    type Value = Fact<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, null, or {\"unknown\": reason}")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Fact::Absent)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Fact::Absent)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Fact::Known)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Fact::Known)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Fact::Known)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Fact::Known)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Fact::Known)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        T::deserialize(ListOnly(seq)).map(Fact::Known)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let first = map.next_key::<String>()?;
        match first.as_deref() {
            Some("unknown" | "detail") => read_unknown(first, map).map(Fact::Unknown),
            Some(_) | None => {
                T::deserialize(MapAccessDeserializer::new(Replay { first, map })).map(Fact::Known)
            }
        }
    }
}

/// Reads `{"unknown": reason, "detail": text}` in any order, its first key already taken.
fn read_unknown<'de, A: MapAccess<'de>>(
    first: Option<String>,
    mut map: A,
) -> Result<Unknown, A::Error> {
    let mut reason: Option<String> = None;
    let mut detail = String::new();
    let mut key = first;
    while let Some(name) = key {
        match name.as_str() {
            "unknown" => reason = Some(map.next_value()?),
            "detail" => detail = map.next_value()?,
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        key = map.next_key()?;
    }
    match reason {
        Some(word) => Ok(Unknown::new(Reason::from(word.as_str()), detail)),
        None => Err(A::Error::custom(
            "a detail without the reason it explains (add \"unknown\": \"…\")",
        )),
    }
}

/// A list. A derived reader would accept it as the fields of a struct in order.
struct ListOnly<A>(A);

impl<'de, A: SeqAccess<'de>> Deserializer<'de> for ListOnly<A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_seq(self.0)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &visitor))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A map whose first key was inspected and is returned again, without a buffer.
struct Replay<A> {
    first: Option<String>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Replay<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(key) => seed.deserialize(key.into_deserializer()).map(Some),
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for Fact<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Fact_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        let unknown = generator.subschema_for::<UnknownShape>();
        json_schema!({ "anyOf": [value, { "type": "null" }, unknown] })
    }
}

/// How an unanswered question is written.
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Unknown"))]
#[expect(dead_code, reason = "only its schema is used")]
struct UnknownShape {
    /// permission, tool-missing, unsupported-kernel, timeout, parse, namespace, conflict, redacted or undecided.
    unknown: String,
    /// What exactly went wrong, for a person.
    detail: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Pair {
        a: u32,
        b: String,
    }

    fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Fact<T> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn each_state_has_its_own_spelling() {
        assert_eq!(read::<u32>("7"), Fact::Known(7));
        assert_eq!(read::<u32>("null"), Fact::Absent);
        assert_eq!(
            read::<u32>(r#"{"detail":"0600","unknown":"permission"}"#),
            Fact::unknown(Reason::Permission, "0600")
        );
        assert_eq!(serde_json::to_string(&Fact::<u32>::Absent).unwrap(), "null");
        assert_eq!(
            serde_json::to_string(&Fact::<u32>::unknown(Reason::Timeout, "")).unwrap(),
            r#"{"unknown":"timeout"}"#
        );
    }

    #[test]
    fn an_object_value_keeps_its_first_key() {
        assert_eq!(
            read::<Pair>(r#"{"a":1,"b":"x"}"#),
            Fact::Known(Pair {
                a: 1,
                b: "x".to_owned()
            })
        );
        assert_eq!(
            read::<Pair>(r#"{"unknown":"redacted"}"#),
            Fact::unknown(Reason::Redacted, "")
        );
    }

    #[test]
    fn a_reason_from_the_future_is_kept_word_for_word() {
        let fact = read::<u32>(r#"{"unknown":"solar-flare"}"#);
        assert_eq!(
            fact,
            Fact::unknown(Reason::Other("solar-flare".to_owned()), "")
        );
        assert_eq!(
            serde_json::to_string(&fact).unwrap(),
            r#"{"unknown":"solar-flare"}"#
        );
    }

    #[test]
    fn a_detail_alone_is_refused() {
        let error = serde_json::from_str::<Fact<u32>>(r#"{"detail":"x"}"#).unwrap_err();
        assert!(error.to_string().contains("without the reason"), "{error}");
    }

    #[test]
    fn a_settled_fact_takes_precedence_over_a_reason() {
        let excuse: Fact<u32> = Fact::unknown(Reason::Permission, "x");
        assert_eq!(excuse.clone().or(Fact::Known(1)), Fact::Known(1));
        assert_eq!(Fact::Known(1).or(excuse.clone()), Fact::Known(1));
        assert_eq!(Fact::NotCollected.or(excuse.clone()), excuse);
        assert_eq!(Fact::Absent.or(Fact::Known(1)), Fact::Absent);
    }

    #[test]
    fn a_fact_is_hardly_larger_than_its_value() {
        assert!(size_of::<Fact<bool>>() <= 16 && size_of::<Fact<String>>() <= 24);
    }

    #[test]
    fn a_fact_that_was_not_collected_is_a_reason_for_a_rule() {
        assert_eq!(
            Fact::<u32>::NotCollected.settled().unwrap_err().reason(),
            &Reason::NotCollected
        );
        assert_eq!(Fact::<u32>::Absent.settled(), Ok(None));
    }
}
