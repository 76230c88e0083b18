//! One list of keys per group of a spec: the type, its reader, its writer and its schema come from it.

use serde_json::{Map, Value as Json};
use serde_json::{Value as Schema, json};

use super::limits::narrow;
use super::node::{describe, shortened};
use super::suggest::nearest;
use super::{SpecError, SpecPath};
use vmdisk_document::{Entry, Node, Value};

/// Maximum number of errors reported at once.
const MAX_ERRORS: usize = 100;

/// The state of reading a spec: the position of the reader, and the mistakes so far.
pub(crate) struct Reader {
    /// The mistakes so far.
    pub(crate) errors: Vec<SpecError>,
    /// Keys allowed next to the keys at the top: in a one-liner, the keys of the backend.
    beside: Vec<&'static str>,
    /// Keys at the top that are not allowed next to those: a one-liner begins with its backend.
    pub(crate) not_beside: &'static [&'static str],
    /// Keys of a disk, which are refused in the groups below it.
    pub(crate) of_disk: Vec<&'static str>,
    at: SpecPath,
    /// Numbers of the disks that could be read.
    pub(crate) disks: Vec<usize>,
}

impl Reader {
    /// A reader at the top, where these keys are allowed next to the others.
    pub(crate) fn new(beside: Vec<&'static str>) -> Self {
        Reader {
            errors: Vec::new(),
            beside,
            not_beside: &[],
            of_disk: Vec::new(),
            at: SpecPath::default(),
            disks: Vec::new(),
        }
    }

    /// Where the reader is.
    pub(crate) fn at(&self) -> &SpecPath {
        &self.at
    }

    /// Reads something one step further down.
    pub(crate) fn inside<T>(&mut self, below: SpecPath, read: impl FnOnce(&mut Self) -> T) -> T {
        let above = std::mem::replace(&mut self.at, below);
        let value = read(self);
        self.at = above;
        value
    }

    /// Reads the items of a list; `None` after an error in one of them was noted, and all were read.
    pub(crate) fn items<T>(
        &mut self,
        items: Vec<Node>,
        mut read: impl FnMut(Value, &mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = items.into_iter().enumerate().map(|(nth, item)| {
            let below = self.at.index(nth);
            self.inside(below, |reader| read(item.value, reader))
        });
        items.collect::<Vec<_>>().into_iter().collect()
    }

    /// Notes that the value here is wrong.
    pub(crate) fn refuse(&mut self, message: impl Into<String>) -> &mut SpecError {
        self.refuse_as(SpecError::value(self.at.clone(), message))
    }

    /// Notes an error; beyond [`MAX_ERRORS`] only the last one is kept.
    pub(crate) fn refuse_as(&mut self, error: SpecError) -> &mut SpecError {
        if self.is_full() {
            self.errors.pop();
        }
        let at = self.errors.len();
        self.errors.push(error);
        &mut self.errors[at]
    }

    /// True if so much is wrong that more would help nobody.
    fn is_full(&self) -> bool {
        self.errors.len() > MAX_ERRORS
    }
}

/// A value that a key of a spec can have.
pub(crate) trait SpecValue: Sized {
    /// The usual value, to be named where a required one is missing.
    const USUAL: Option<&'static str> = None;

    /// Reads it; `None` after an error was noted.
    fn read(node: Value, reader: &mut Reader) -> Option<Self>;

    /// Writes it.
    fn write(&self) -> Value;

    /// Its JSON Schema.
    fn schema() -> Schema;
}

/// The unread keys of one group.
pub(crate) struct Keys<'a> {
    entries: Vec<(String, Option<Value>)>,
    pub(crate) reader: &'a mut Reader,
}

impl<'a> Keys<'a> {
    /// The keys of a group; `None` after an error was recorded because the value is not a group.
    pub(crate) fn new(node: Value, reader: &'a mut Reader, known: &[&str]) -> Option<Self> {
        match node {
            Value::Map(map) => {
                let mut entries: Vec<(String, Option<Value>)> = Vec::with_capacity(map.len());
                let mut seen = std::collections::BTreeSet::new();
                for Entry { key, node, .. } in map {
                    if !seen.insert(key.clone()) {
                        let at = reader.at().key(key.as_str());
                        let message = format!("`{}` is written twice", shortened(&key));
                        reader.refuse_as(SpecError::key(at, message));
                        continue;
                    }
                    entries.push((key, Some(node.value)));
                }
                Some(Keys { entries, reader })
            }
            _ => {
                let message = format!("expected a group of keys, found {}", describe(&node));
                let help = format!("its keys are {}", all_of(known));
                reader.refuse(message).help = Some(help);
                None
            }
        }
    }

    /// Takes the value of a key, if it was written.
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        self.entries
            .iter_mut()
            .find(|(name, value)| name == key && value.is_some())
            .and_then(|(_, value)| value.take())
    }

    /// True if the key was written and not taken yet.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries
            .iter()
            .any(|(name, value)| name == key && value.is_some())
    }

    /// Reads the value of a key, if it was written; `Err` after an error was noted.
    pub(crate) fn read<T: SpecValue>(&mut self, key: &str) -> Result<Option<T>, ErrorReported> {
        match self.take(key) {
            // `key:` without a value is an option that was left open.
            None | Some(Value::Null) => Ok(None),
            Some(node) => {
                let below = self.reader.at().key(key);
                self.reader
                    .inside(below, |reader| T::read(node, reader))
                    .map(Some)
                    .ok_or(ErrorReported)
            }
        }
    }

    /// Refuses the keys that nobody took; `explain` knows better than the nearest word, sometimes.
    pub(crate) fn refuse_rest(
        self,
        known: &[&str],
        explain: impl Fn(&str, &Value) -> Option<String>,
    ) {
        let Keys { entries, reader } = self;
        let mut known = known.to_vec();
        if reader.at().is_top() && !reader.beside.is_empty() {
            known.retain(|key| !reader.not_beside.contains(key));
            known.extend(&reader.beside);
        }
        for (key, value) in entries {
            let Some(value) = value else { continue };
            if reader.is_full() {
                return;
            }
            let at = reader.at().key(key.as_str());
            let is_below_disk = reader.at().is_below_disk();
            let of_disk = nearest(&key, &reader.of_disk).filter(|_| is_below_disk);
            let is_of_disk = of_disk == Some(key.as_str());
            let help = explain(&key, &value).unwrap_or_else(|| {
                match (nearest(&key, &known).filter(|_| !is_of_disk), of_disk) {
                    (Some(meant), _) => format!("did you mean `{meant}`?"),
                    (None, Some(meant)) => format!("write `{meant}` in the item of `disks`"),
                    (None, None) => format!("the keys here are {}", all_of(&known)),
                }
            });
            let message = format!("unknown key `{}`", shortened(&key));
            reader.refuse_as(SpecError::key(at, message)).help = Some(help);
        }
    }
}

/// An error was noted; there is nothing more to say.
pub(crate) struct ErrorReported;

/// Alternatives for people: `a`, `b` or `c`.
pub(crate) fn list_of(words: &[&str]) -> String {
    joined(words, "or")
}

/// Words that hold together, for people: `a`, `b` and `c`.
pub(crate) fn all_of(words: &[&str]) -> String {
    joined(words, "and")
}

fn joined(words: &[&str], conjunction: &str) -> String {
    match words {
        [] => "none".to_owned(),
        [only] => format!("`{only}`"),
        [rest @ .., last] => {
            let rest: Vec<String> = rest.iter().map(|word| format!("`{word}`")).collect();
            format!("{} {conjunction} `{last}`", rest.join(", "))
        }
    }
}

/// How a field of a group is filled: from a key that must be there, or from one that may be.
pub(crate) trait Slot: Sized {
    /// The keys that it takes, given the one it is declared with.
    fn keys(declared: &'static str) -> Vec<&'static str>;

    /// Takes it from the keys; `None` if an error was noted and the group makes no sense without the value.
    fn take(keys: &mut Keys<'_>, declared: &'static str) -> Option<Self>;

    /// Adds what was written to a map.
    fn put(&self, declared: &'static str, map: &mut Vec<(String, Value)>);

    /// Adds its schema to the schema of the group.
    fn describe(declared: &'static str, description: &str, group: &mut GroupSchema);
}

impl<T: SpecValue> Slot for T {
    fn keys(declared: &'static str) -> Vec<&'static str> {
        vec![declared]
    }

    fn take(keys: &mut Keys<'_>, declared: &'static str) -> Option<Self> {
        match keys.read(declared) {
            Ok(Some(value)) => Some(value),
            Ok(None) => {
                let at = keys.reader.at().clone();
                let message = format!("`{declared}` is missing");
                let mut error = SpecError::value(at, message);
                error.help = T::USUAL.map(|usual| format!("write `{declared}: {usual}`"));
                keys.reader.refuse_as(error);
                None
            }
            Err(ErrorReported) => None,
        }
    }

    fn put(&self, declared: &'static str, map: &mut Vec<(String, Value)>) {
        map.push((declared.to_owned(), self.write()));
    }

    fn describe(declared: &'static str, description: &str, group: &mut GroupSchema) {
        group.property::<T>(declared, description);
        group.require(declared);
    }
}

impl<T: SpecValue> Slot for Option<T> {
    fn keys(declared: &'static str) -> Vec<&'static str> {
        vec![declared]
    }

    fn take(keys: &mut Keys<'_>, declared: &'static str) -> Option<Self> {
        // The error is noted, and the rest can be read without the value.
        Some(keys.read(declared).unwrap_or_default())
    }

    fn put(&self, declared: &'static str, map: &mut Vec<(String, Value)>) {
        if let Some(value) = self {
            map.push((declared.to_owned(), value.write()));
        }
    }

    fn describe(declared: &'static str, description: &str, group: &mut GroupSchema) {
        group.property::<T>(declared, description);
    }
}

/// The schema of a group as it grows.
#[derive(Default)]
pub(crate) struct GroupSchema {
    properties: Map<String, Json>,
    required: Vec<Json>,
    /// Schemas of which exactly one must hold, if any are given.
    pub(crate) one_of: Vec<Json>,
}

impl GroupSchema {
    /// Adds a key.
    pub(crate) fn property<T: SpecValue>(&mut self, key: &str, description: &str) {
        self.property_of(key, description, T::schema());
    }

    /// Adds a key with this schema.
    pub(crate) fn property_of(&mut self, key: &str, description: &str, mut schema: Schema) {
        narrow(key, &mut schema);
        schema["description"] = description.trim().into();
        self.properties.insert(key.into(), schema);
    }

    /// Demands a key.
    pub(crate) fn require(&mut self, key: &str) {
        self.required.push(key.into());
    }

    /// The whole.
    pub(crate) fn finish(self) -> Schema {
        let GroupSchema {
            properties,
            required,
            one_of,
        } = self;
        let mut schema = json!({
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        });
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if !one_of.is_empty() {
            schema["oneOf"] = one_of.into();
        }
        schema
    }
}

/// Declares a group of keys: its type, and how it is read, written and described. A key that is the value of one field
/// of the model says which: `as Cache`.
macro_rules! section {
    (
        $(#[doc = $doc:literal])+
        $(#[derive($derive:ident)])?
        pub struct $name:ident $(of $names:ident)? {
            $( $(#[doc = $field_doc:literal])+ $field:ident: $type:ty = $key:literal $(as $of:ident)?, )*
        }
        $(unknown keys: $explain:path;)?
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        $(#[derive($derive)])?
        pub struct $name {
            $( $(#[doc = $field_doc])+ pub $field: $type, )*
        }

        $crate::spec::section::section! { @names [$($names)?] $name { $($($field: $of,)?)* } }

        impl $name {
            /// Every key, in the order in which it is written.
            pub(crate) fn keys() -> Vec<&'static str> {
                #[allow(unused_mut, reason = "a group may have no keys")]
                let mut keys = Vec::new();
                $( keys.extend(<$type as $crate::spec::section::Slot>::keys($key)); )*
                keys
            }
        }

        impl $crate::spec::section::SpecValue for $name {
            fn read(
                node: vmdisk_document::Value,
                reader: &mut $crate::spec::section::Reader,
            ) -> Option<Self> {
                let known = Self::keys();
                #[allow(unused_mut, reason = "a group may have no keys")]
                let mut keys = $crate::spec::section::Keys::new(node, reader, &known)?;
                $( let $field = <$type as $crate::spec::section::Slot>::take(&mut keys, $key); )*
                #[allow(unused_mut, unused_assignments, reason = "only some groups know better")]
                let mut explain: fn(&str, &vmdisk_document::Value) -> Option<String> = |_, _| None;
                $( explain = $explain; )?
                keys.refuse_rest(&known, explain);
                Some($name { $( $field: $field?, )* })
            }

            fn write(&self) -> vmdisk_document::Value {
                let $name { $( $field, )* } = self;
                #[allow(unused_mut, reason = "a group may have no keys")]
                let mut map: Vec<(String, vmdisk_document::Value)> = Vec::new();
                $( $crate::spec::section::Slot::put($field, $key, &mut map); )*
                vmdisk_document::Value::map(map)
            }

            fn schema() -> serde_json::Value {
                #[allow(unused_mut, reason = "a group may have no keys")]
                let mut group = $crate::spec::section::GroupSchema::default();
                $(
                    <$type as $crate::spec::section::Slot>::describe(
                        $key,
                        concat!($($field_doc),+),
                        &mut group,
                    );
                )*
                let mut schema = group.finish();
                schema["description"] = concat!($($doc),+).trim().into();
                schema
            }
        }
    };
    (@names [] $name:ident { }) => {};
    (@names [$names:ident] $name:ident $fields:tt) => {
        vmdisk_model::fields! { @names $names of $name $fields }
    };
}

pub(crate) use section;
