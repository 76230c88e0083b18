//! The plain values of a spec: text, numbers, switches, sizes and words.

use serde_json::{Value as Schema, json};
use vmdisk_document::Value;
use vmdisk_model::{
    AioMode, Architecture, Bytes, CacheMode, CpuMode, DetectZeroes, Discard, ErrorPolicy, Firmware,
    Format, Preallocation, Qcow2Preallocation, ReadErrorPolicy, VolumeMode,
};

use super::node::describe;
use super::section::{Reader, SpecValue, list_of};
use super::suggest::nearest;

impl SpecValue for String {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        match node {
            Value::Text(text) if text.contains('\0') => {
                reader.refuse("a path or name cannot contain a zero byte");
                None
            }
            Value::Text(text) if text.is_empty() => {
                reader.refuse("expected text, found none");
                None
            }
            Value::Text(text) => Some(text),
            // A value that YAML reads as a number or a boolean has lost its spelling.
            Value::Bool(_) | Value::Unsigned(_) | Value::Signed(_) | Value::Float(_) => {
                let message = format!("expected text, found {}", describe(&node));
                reader.refuse(message).help = Some("put it in quotes".to_owned());
                None
            }
            Value::Null | Value::List(_) | Value::Map(_) => {
                reader.refuse(format!("expected text, found {}", describe(&node)));
                None
            }
        }
    }

    fn write(&self) -> Value {
        Value::Text(self.clone())
    }

    fn schema() -> Schema {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl SpecValue for bool {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        match &node {
            Value::Bool(value) => Some(*value),
            Value::Text(text) if ["true", "on", "yes"].contains(&text.as_str()) => Some(true),
            Value::Text(text) if ["false", "off", "no"].contains(&text.as_str()) => Some(false),
            _ => {
                let message = format!("expected `true` or `false`, found {}", describe(&node));
                reader.refuse(message);
                None
            }
        }
    }

    fn write(&self) -> Value {
        Value::Bool(*self)
    }

    fn schema() -> Schema {
        json!({
            "oneOf": [{ "type": "boolean" }, { "enum": ["on", "off", "yes", "no", "true", "false"] }]
        })
    }
}

/// A whole number as written, also in quotes or in a one-liner.
fn whole_number(node: &Value) -> Option<u64> {
    match node {
        Value::Unsigned(value) => Some(*value),
        // `parse` alone would let a sign through.
        Value::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

impl SpecValue for u64 {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        let value = whole_number(&node);
        if value.is_none() {
            reader.refuse(format!(
                "expected a whole number, found {}",
                describe(&node)
            ));
        }
        value
    }

    fn write(&self) -> Value {
        Value::Unsigned(*self)
    }

    fn schema() -> Schema {
        json!({
            "oneOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": "^[0-9]+$" }]
        })
    }
}

impl SpecValue for u32 {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        let value = u64::read(node, reader)?;
        if u32::try_from(value).is_err() {
            reader.refuse(format!("{value} is more than {}", u32::MAX));
        }
        u32::try_from(value).ok()
    }

    fn write(&self) -> Value {
        Value::Unsigned((*self).into())
    }

    fn schema() -> Schema {
        json!({
            "oneOf": [
                { "type": "integer", "minimum": 0, "maximum": u32::MAX },
                { "type": "string", "pattern": "^[0-9]+$" }
            ]
        })
    }
}

impl SpecValue for Bytes {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        match &node {
            Value::Unsigned(bytes) => Some(Bytes(*bytes)),
            Value::Text(text) => match Bytes::parse(text) {
                Ok(bytes) => Some(bytes),
                Err(error) => {
                    reader.refuse(format!("{} is not a valid size: {error}", describe(&node)));
                    None
                }
            },
            _ => {
                let message = format!(
                    "expected a size such as 40G or a whole number of bytes, found {}",
                    describe(&node)
                );
                reader.refuse(message);
                None
            }
        }
    }

    fn write(&self) -> Value {
        Value::Text(size_text(*self))
    }

    fn schema() -> Schema {
        json!({
            "oneOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": r"^\s*[0-9]*\.?[0-9]*\s*([bB]|[bB]ytes?|[kKmMgGtTpPeE]([iI]?[bB])?)?\s*$" }
            ]
        })
    }
}

/// A size as qemu-img, lvcreate and this spec read it: `40G`, `513`.
pub(crate) fn size_text(size: Bytes) -> String {
    for (letter, power) in [('T', 4), ('G', 3), ('M', 2), ('K', 1)] {
        let unit = 1024_u64.pow(power);
        if size.0 != 0 && size.0.is_multiple_of(unit) {
            return format!("{}{letter}", size.0 / unit);
        }
    }
    size.0.to_string()
}

/// An enum whose values are words.
pub(crate) trait Word: Copy + 'static {
    /// Every word.
    const ALL_WORDS: &'static [&'static str];

    /// The subject of the enum, for `expected …`.
    fn word(self) -> &'static str;

    /// The value of a word.
    fn from_word(word: &str) -> Option<Self>;
}

/// Reads a word.
pub(crate) fn read_word<T: Word>(node: &Value, reader: &mut Reader) -> Option<T> {
    let written = match node {
        Value::Text(text) => text.as_str(),
        // `off` and `on` are words of several options, and truth values to some YAML tools.
        Value::Bool(false) => "off",
        Value::Bool(true) => "on",
        _ => "",
    };
    let value = T::from_word(written);
    if value.is_none() {
        let help = nearest(written, T::ALL_WORDS).map(|meant| format!("did you mean `{meant}`?"));
        let expected = list_of(T::ALL_WORDS);
        reader
            .refuse(format!("expected {expected}, found {}", describe(node)))
            .help = help;
    }
    value
}

/// Makes an enum of words a value of a spec.
macro_rules! word_value {
    ($type:ty) => {
        impl $crate::spec::section::SpecValue for $type {
            fn read(
                node: vmdisk_document::Value,
                reader: &mut $crate::spec::section::Reader,
            ) -> Option<Self> {
                $crate::spec::value::read_word(&node, reader)
            }

            fn write(&self) -> vmdisk_document::Value {
                let word = $crate::spec::value::Word::word(*self);
                vmdisk_document::Value::Text(word.to_owned())
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({
                    "enum": <$type as $crate::spec::value::Word>::ALL_WORDS
                })
            }
        }
    };
}

/// Makes enums of the model values of a spec, with the words they have there.
macro_rules! model_words {
    ($($type:ty),+ $(,)?) => {$(
        impl Word for $type {
            const ALL_WORDS: &'static [&'static str] = <$type>::WORDS;

            fn word(self) -> &'static str {
                self.as_str()
            }

            fn from_word(word: &str) -> Option<Self> {
                <$type>::from_word(word)
            }
        }

        word_value!($type);
    )+};
}

model_words!(
    AioMode,
    Architecture,
    CacheMode,
    CpuMode,
    DetectZeroes,
    Discard,
    ErrorPolicy,
    Firmware,
    Format,
    Preallocation,
    Qcow2Preallocation,
    ReadErrorPolicy,
    VolumeMode,
);

/// Declares an enum of words that only specs have.
macro_rules! spec_words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $word:literal $(| $alias:literal)*, )+
        }
    ) => {
        vmdisk_source::words! {
            $(#[$meta])*
            pub enum $name as as_str { $( $(#[$variant_meta])* $variant = $word, )+ }
        }

        impl $crate::spec::value::Word for $name {
            const ALL_WORDS: &'static [&'static str] = &[$($word, $($alias,)*)+];

            fn word(self) -> &'static str {
                self.as_str()
            }

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $( $word $(| $alias)* => Some($name::$variant), )+
                    _ => None,
                }
            }
        }

        $crate::spec::value::word_value!($name);
    };
}

pub(crate) use {spec_words, word_value};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_written_in_the_largest_unit_that_every_tool_reads() {
        for (bytes, text) in [
            (0, "0"),
            (513, "513"),
            (64 << 10, "64K"),
            (1536 << 20, "1536M"),
            (40 << 30, "40G"),
            (3 << 40, "3T"),
            (2 << 50, "2048T"),
        ] {
            assert_eq!(size_text(Bytes(bytes)), text);
            assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)));
        }
    }
}
