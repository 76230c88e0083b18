//! A spec: disks, and the machine around them, with everything else left open.

mod access;
mod backend;
mod check;
mod check_backend;
mod check_direct;
mod check_iotune;
mod check_network;
mod check_path;
mod differences;
mod direct;
mod disk;
mod dropped;
mod encryption;
mod error;
mod faults;
mod guest;
mod guest_devices;
mod iotune;
mod limits;
mod network;
#[cfg(feature = "addresses")]
mod network_address;
mod node;
mod of_controllers;
mod of_domain;
mod of_image;
mod of_network;
mod one_liner;
mod path;
mod section;
mod suggest;
mod value;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Schema, json};
use vmdisk_document::{Value, read_yaml};
use vmdisk_source::{LineIndex, Position};

pub use access::DeviceAccess;
pub use backend::{
    BackendSpec, BackingSpec, DeviceSpec, EmptySpec, LvmSpec, LvmThinSpec, Qcow2Spec, RawSpec,
    SeedSpec, VhostUserBlkSpec,
};
pub use differences::Difference;
pub use direct::{DirectorySpec, NvmeSpec, VhostVdpaSpec, VolumeSpec, ZvolSpec};
pub use disk::{BusSpec, DiskSpec, IoThreadSpec, MediaSpec};
pub use dropped::NotCarried;
pub use encryption::EncryptionSpec;
pub use error::{SpecError, SpecErrors, SpecPlace};
pub use guest::{
    GuestDrivers, GuestOs, GuestSpec, GuestType, HugePagesSpec, IoThreadCount, IoThreadOptions,
};
pub use guest_devices::{GuestChannel, GuestConsole, GuestDevices, GuestNetwork};
pub use iotune::IotuneSpec;
pub use network::{
    AuthenticationSpec, NetworkHostSpec, NetworkIdentitySpec, NetworkSpec, SecretSpec,
};
pub use path::{SpecPath, SpecSegment};

pub(crate) use backend::NewFile;
pub(crate) use differences::with_planned_names;
pub(crate) use of_domain::{bus_of, disk_as_set};
pub(crate) use value::size_text;

use node::{describe, one_line};
use one_liner::{begins_one_liner, keys_instead, kind_among};
use section::{Keys, Reader, Slot, SpecValue, section};

/// Largest spec that is read, in bytes.
pub const MAX_SPEC_BYTES: usize = 1024 * 1024;

/// Most values in one spec: some thousand disks, and an end to aliases that multiply.
pub(crate) const MAX_VALUES: usize = 200_000;

section! {
    /// A spec: new or existing disks, and the machine that uses them.
    pub struct Spec {
        /// Version of this format.
        version: SpecVersion = "version",
        /// The machine around the disks.
        guest: Option<GuestSpec> = "guest",
        /// The disks, in the order in which the guest has them.
        disks: Vec<DiskSpec> = "disks",
    }
    unknown keys: explain_unknown_key;
}

/// Names the place of a key that is written at the top, but belongs to the guest or to a disk.
fn explain_unknown_key(key: &str, _: &Value) -> Option<String> {
    if GuestSpec::keys().contains(&key) {
        Some(format!("write `{key}` below `guest`"))
    } else if DiskSpec::keys().contains(&key) {
        Some(format!("write `{key}` in an item of `disks`"))
    } else {
        None
    }
}

/// Version of the format of specs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecVersion {
    /// The only one so far.
    #[default]
    V1,
}

impl SpecValue for SpecVersion {
    const USUAL: Option<&'static str> = Some("1");

    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        if node == Value::Unsigned(1) {
            return Some(SpecVersion::V1);
        }
        let message = format!("expected version 1, found {}", describe(&node));
        reader.refuse(message).help = Some("use `version: 1`".to_owned());
        None
    }

    fn write(&self) -> Value {
        match self {
            SpecVersion::V1 => Value::Unsigned(1),
        }
    }

    fn schema() -> Schema {
        json!({ "const": 1 })
    }
}

/// Reads an item of `disks`; a one-liner is refused with the keys that say the same.
fn read_disk(node: Value, reader: &mut Reader) -> Option<DiskSpec> {
    match &node {
        Value::Text(text) if begins_one_liner(text) => {
            let message = "a disk of a spec has keys, and this is a disk in one line";
            reader.refuse(message).help = Some(keys_instead(text));
            return None;
        }
        Value::Map(entries) => {
            let entry = |key: &str| entries.iter().find(|entry| entry.key == key);
            let has_backend = BackendSpec::KINDS.iter().any(|kind| entry(kind).is_some());
            let kind = kind_among(|kind| entry(kind).is_some()).filter(|_| !has_backend);
            if let Some(kind) = kind {
                let text = match entry(kind).map(|entry| &entry.node.value) {
                    Some(Value::Text(place)) => format!("{kind}:{place}"),
                    _ => kind.to_owned(),
                };
                let at = reader.at().key(kind);
                let message = format!("`{kind}` is a kind of `--disk`, and not a key of a spec");
                let error = SpecError::key(at, message);
                reader.refuse_as(error).help = Some(keys_instead(&text));
                return None;
            }
        }
        _ => {}
    }
    DiskSpec::read(node, reader)
}

impl Slot for Vec<DiskSpec> {
    fn keys(declared: &'static str) -> Vec<&'static str> {
        vec![declared]
    }

    fn take(keys: &mut Keys<'_>, declared: &'static str) -> Option<Self> {
        let below = keys.reader.at().key(declared);
        match keys.take(declared) {
            Some(Value::List(items)) => keys.reader.inside(below, |reader| {
                let mut disks = Vec::with_capacity(items.len());
                for (index, item) in items.into_iter().enumerate() {
                    let at = reader.at().index(index);
                    if let Some(disk) = reader.inside(at, |reader| read_disk(item.value, reader)) {
                        reader.disks.push(index);
                        disks.push(disk);
                    }
                }
                Some(disks)
            }),
            None | Some(Value::Null) => {
                keys.reader.refuse("`disks` is missing");
                None
            }
            Some(other) => {
                let message = format!("expected a list of disks, found {}", describe(&other));
                let help = "begin each disk with `- `".to_owned();
                keys.reader
                    .inside(below, |reader| reader.refuse(message).help = Some(help));
                None
            }
        }
    }

    fn put(&self, declared: &'static str, map: &mut Vec<(String, Value)>) {
        let disks = Value::list(self.iter().map(SpecValue::write));
        map.push((declared.to_owned(), disks));
    }

    fn describe(declared: &'static str, description: &str, group: &mut section::GroupSchema) {
        let list = json!({ "type": "array", "items": DiskSpec::schema() });
        group.property_of(declared, description, list);
        group.require(declared);
    }
}

impl Default for Spec {
    /// A spec without disks.
    fn default() -> Self {
        Spec::new(Vec::new())
    }
}

impl Spec {
    /// A spec of these disks, with everything else left open.
    pub fn new(disks: Vec<DiskSpec>) -> Self {
        Spec {
            version: SpecVersion::V1,
            guest: None,
            disks,
        }
    }

    /// Reads a spec from YAML, of which JSON is a part.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its path, line and column. A text larger than [`MAX_SPEC_BYTES`] is refused unread.
    pub fn from_yaml(text: &str) -> Result<Self, SpecErrors> {
        if text.len() > MAX_SPEC_BYTES {
            let message = format!(
                "the spec has {} bytes, and {MAX_SPEC_BYTES} is the most that is read",
                text.len()
            );
            return Err(vec![SpecError::value(SpecPath::default(), message)].into());
        }
        let document = read_yaml(text, MAX_VALUES).map_err(|error| {
            let mut fault = SpecError::value(SpecPath::default(), one_line(&error.message));
            fault.place = Some(place_at(&LineIndex::new(text), text, error.span.start));
            let begins_another = text[error.span.start..].starts_with("---");
            fault.help = begins_another
                .then(|| "a spec is one document: write all disks into one list".to_owned());
            SpecErrors::from(vec![fault])
        })?;
        Spec::from_value(document.root.value.clone()).map_err(|mut errors| {
            let lines = LineIndex::new(text);
            for error in errors.0.iter_mut() {
                let span = error.at.span_in(&document.root, error.is_about_key);
                error.place = Some(place_at(&lines, text, span.start));
            }
            // In the order of the text, in which a person fixes them.
            errors.0.sort_by_key(|error| error.place);
            errors
        })
    }

    fn from_value(value: Value) -> Result<Self, SpecErrors> {
        let Reading { spec, errors, .. } = Reading::of(value);
        let spec = spec.filter(|_| errors.is_empty()).ok_or(errors)?;
        let errors = spec.check();
        match errors.is_empty() {
            true => Ok(spec),
            false => Err(errors.into()),
        }
    }

    /// The places of values in the YAML text of a spec; of what encloses a value, if it is not written. None if the text
    /// cannot be read.
    ///
    /// Errors of planning name values of the spec; with this they can be shown in its text.
    pub fn places_in_yaml<'p>(
        text: &str,
        values: impl IntoIterator<Item = &'p SpecPath>,
    ) -> Option<Vec<SpecPlace>> {
        let document = read_yaml(text, MAX_VALUES).ok()?;
        let lines = LineIndex::new(text);
        let place = |at: &SpecPath| place_at(&lines, text, at.span_in(&document.root, false).start);
        Some(values.into_iter().map(place).collect())
    }

    /// Writes the spec as YAML; reading it gives the same spec.
    pub fn to_yaml(&self) -> String {
        self.write().to_yaml()
    }

    /// The JSON Schema of specs.
    pub fn json_schema() -> Schema {
        let mut schema = <Spec as SpecValue>::schema();
        let meta = "https://json-schema.org/draft/2020-12/schema";
        schema["$schema"] = meta.into();
        schema["$id"] = "https://github.com/vmdisk/vmdisk/spec/1".into();
        schema["title"] = "vmdisk spec, version 1".into();
        schema
    }
}

fn place_at(lines: &LineIndex, text: &str, offset: usize) -> SpecPlace {
    let Position { line, column } = lines.position(text, offset);
    SpecPlace { line, column }
}

/// What could be read of a spec.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// The spec, without the disks and options that have mistakes; `None` if nothing is left of it.
    pub(crate) spec: Option<Spec>,
    /// Numbers of its disks in the list of the text.
    pub(crate) numbers: Vec<usize>,
    /// The mistakes.
    pub(crate) errors: Vec<SpecError>,
}

impl Reading {
    /// Reads the values of a spec; what fits together is not checked.
    pub(crate) fn of(value: Value) -> Self {
        let mut reader = Reader::new(Vec::new());
        reader.of_disk = DiskSpec::keys();
        let spec = Spec::read(value, &mut reader);
        Reading {
            spec,
            numbers: reader.disks,
            errors: reader.errors,
        }
    }
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Spec::from_value(value).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(SpecError::to_string).collect();
            serde::de::Error::custom(lines.join("\n"))
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Spec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Spec".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let schema = <Spec as SpecValue>::schema();
        schema.try_into().expect("a schema is an object")
    }
}
