//! What a person asks for: disks, and the machine around them, with everything else left open.

mod backend;
mod check;
mod check_backend;
mod check_iotune;
mod check_network;
mod disk;
mod error;
mod guest;
mod iotune;
mod locate;
mod network;
mod network_address;
mod node;
mod of_domain;
mod of_network;
mod one_liner;
mod path;
mod section;
mod suggest;
mod value;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use backend::{
    BackendSpec, BackingSpec, DeviceAccess, DeviceSpec, LvmSpec, LvmThinSpec, Qcow2Spec, RawSpec,
    VhostUserBlkSpec,
};
pub use disk::{BusSpec, DiskSpec, IoThreadSpec, MediaSpec};
pub use error::{SpecError, SpecPlace};
pub use guest::{GuestSpec, GuestType, HugePagesSpec, IoThreadCount};
pub use iotune::IotuneSpec;
pub use network::{
    AuthenticationSpec, NetworkHostSpec, NetworkIdentitySpec, NetworkSpec, SecretSpec,
};
pub use of_domain::NotCarried;
pub use path::{SpecPath, SpecSegment};

pub(crate) use value::size_text;

use node::{Node, NodeSeed};
use section::{Keys, Reader, Slot, SpecValue, section};

/// Largest spec that is read, in bytes.
pub const MAX_SPEC_BYTES: usize = 1024 * 1024;

/// How much text is read again to find the places of faults; the rest is told without line and column.
const MOST_READ_AGAIN: usize = 16 * MAX_SPEC_BYTES;

section! {
    /// A spec: disks to be, or disks that exist, and the machine around them.
    pub struct Spec {
        /// Version of this format.
        version: SpecVersion = "version",
        /// The machine around the disks.
        guest: Option<GuestSpec> = "guest",
        /// The disks, in the order in which the guest has them.
        disks: Vec<DiskSpec> = "disks",
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
    fn read(node: Node, reader: &mut Reader) -> Option<Self> {
        if node == Node::Integer(1) {
            return Some(SpecVersion::V1);
        }
        let message = format!("expected version 1, found {}", node.describe());
        reader.refuse(message).help = Some("this vmdisk knows `version: 1`".to_owned());
        None
    }

    fn write(&self) -> Node {
        match self {
            SpecVersion::V1 => Node::Integer(1),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "const": 1 })
    }
}

impl Slot for Vec<DiskSpec> {
    fn keys(declared: &'static str) -> Vec<&'static str> {
        vec![declared]
    }

    fn take(keys: &mut Keys<'_>, declared: &'static str) -> Option<Self> {
        let below = keys.reader.at().key(declared);
        match keys.take(declared) {
            Some(Node::List(items)) => keys.reader.inside(below, |reader| {
                let mut disks = Vec::with_capacity(items.len());
                let mut is_complete = true;
                for (index, item) in items.into_iter().enumerate() {
                    let at = reader.at().index(index);
                    match reader.inside(at, |reader| DiskSpec::read(item, reader)) {
                        Some(disk) => disks.push(disk),
                        None => is_complete = false,
                    }
                }
                is_complete.then_some(disks)
            }),
            None | Some(Node::Null) => {
                keys.reader.refuse("`disks` is missing");
                None
            }
            Some(other) => {
                let message = format!("expected a list of disks, found {}", other.describe());
                let help = "begin each disk with `- `".to_owned();
                keys.reader
                    .inside(below, |reader| reader.refuse(message).help = Some(help));
                None
            }
        }
    }

    fn put(&self, declared: &'static str, map: &mut Vec<(String, Node)>) {
        let disks = self.iter().map(SpecValue::write).collect();
        map.push((declared.to_owned(), Node::List(disks)));
    }

    fn describe(declared: &'static str, description: &str, group: &mut section::GroupSchema) {
        let list = json_schema!({ "type": "array", "items": DiskSpec::schema() });
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
    /// Everything that is wrong with it, each with its path and, as far as the YAML reader tells,
    /// with line and column. A text larger than [`MAX_SPEC_BYTES`] is refused unread.
    pub fn from_yaml(text: &str) -> Result<Self, Vec<SpecError>> {
        if text.len() > MAX_SPEC_BYTES {
            let message = format!(
                "the spec has {} bytes, and {MAX_SPEC_BYTES} is the most that is read",
                text.len()
            );
            return Err(vec![SpecError::value(SpecPath::default(), message)]);
        }
        if let Some((line, column)) = vmdisk_facts::yaml::overworked(text) {
            let mut fault = SpecError::value(SpecPath::default(), "too many brackets");
            fault.place = Some(SpecPlace { line, column });
            return Err(vec![fault]);
        }
        let node = NodeSeed::read(serde_yaml::Deserializer::from_str(text)).map_err(|error| {
            let mut fault = SpecError::value(SpecPath::default(), without_place(&error));
            // A few errors of the YAML reader are about the whole text.
            let beginning = SpecPlace { line: 1, column: 1 };
            fault.place = locate::place_of(&error).or(Some(beginning));
            vec![fault]
        })?;
        Spec::from_node(node).map_err(|mut errors| {
            let places = MOST_READ_AGAIN / text.len().max(1);
            for error in errors.iter_mut().take(places) {
                error.place = locate::locate(text, &error.at, error.is_about_key);
            }
            // In the order of the text, as a person mends it; what has no place comes last.
            errors.sort_by_key(|error| (error.place.is_none(), error.place));
            errors
        })
    }

    fn from_node(node: Node) -> Result<Self, Vec<SpecError>> {
        let mut reader = Reader::new(Vec::new());
        let spec = Spec::read(node, &mut reader);
        match spec {
            Some(spec) if reader.errors.is_empty() => {
                let errors = spec.check();
                if errors.is_empty() {
                    Ok(spec)
                } else {
                    Err(errors)
                }
            }
            Some(_) | None => Err(reader.errors),
        }
    }

    /// The place of a value in the YAML text of a spec; of what encloses it, if it is not written.
    ///
    /// Errors of planning name values of the spec; with this they can be shown in its text.
    pub fn place_in_yaml(text: &str, at: &SpecPath) -> Option<SpecPlace> {
        locate::locate(text, at, false)
    }

    /// Writes the spec as YAML; reading it gives the same spec.
    pub fn to_yaml(&self) -> String {
        serde_yaml::to_string(&self.write())
            .expect("nodes are plain values with text keys, which YAML can express")
    }

    /// The JSON Schema of specs.
    pub fn json_schema() -> Schema {
        let mut schema = <Spec as SpecValue>::schema();
        let meta = "https://json-schema.org/draft/2020-12/schema";
        schema.insert("$schema".into(), meta.into());
        schema.insert(
            "$id".into(),
            "https://github.com/vmdisk/vmdisk/spec/1".into(),
        );
        schema.insert("title".into(), "vmdisk spec, version 1".into());
        schema
    }
}

/// The message of the YAML reader without the place, which is told beside it.
fn without_place(error: &serde_yaml::Error) -> String {
    let message = error.to_string();
    let message = match message.find(" at line ") {
        Some(end) => &message[..end],
        None => &message,
    };
    node::one_line(message.trim_end_matches('.'))
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = NodeSeed::read(deserializer)?;
        Spec::from_node(node).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(SpecError::to_string).collect();
            serde::de::Error::custom(lines.join("\n"))
        })
    }
}

impl JsonSchema for Spec {
    fn schema_name() -> Cow<'static, str> {
        "Spec".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        <Spec as SpecValue>::schema()
    }
}
