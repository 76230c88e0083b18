//! The names of conditions: fields of a disk and of its guest, and facts of the host about the disk.

use std::collections::BTreeMap;

use minijinja::Value;
use vmdisk_facts::{BlockDevice, Fact, File, Filesystem, HostIndex, Missing, Mount};
use vmdisk_fields::DISK_FIELDS;
use vmdisk_model::{
    Bytes, Disk, DiskField, Domain, DomainField, FieldPath, FieldValue, ImageField, Protocol,
    Switch,
};

/// The name of a field of a disk in a condition, after `disk.`, and the field: the keys of a spec, with `_` for `-`.
pub fn fields() -> impl Iterator<Item = (String, DiskField)> {
    let named = |field: &DiskField| Some((word(*field)?, *field));
    DISK_FIELDS.iter().filter_map(named)
}

/// The name of a field of a disk, if it has one value and a spec has a key for it.
pub(super) fn word(field: DiskField) -> Option<String> {
    let row = vmdisk_fields::disk(field);
    let key = row.spec.filter(|_| row.kind.is_some())?;
    Some(key.replace('-', "_"))
}

/// A field of the image or of the guest.
pub(super) struct Computed<T: ?Sized> {
    pub(super) name: &'static str,
    /// The place of a disk's field, by the number of the disk.
    pub(super) at: fn(usize) -> FieldPath,
    pub(super) value: fn(&T) -> Value,
}

/// Fields of the image of a disk.
pub(super) const OF_IMAGE: &[Computed<Disk>] = &[
    Computed {
        name: "format",
        at: |disk| FieldPath::Image(disk, 0, ImageField::Format),
        value: |disk| {
            let format = disk.backend.image().and_then(|image| image.format);
            optional(format, |format| format.as_str().into())
        },
    },
    Computed {
        name: "path",
        at: |disk| FieldPath::Image(disk, 0, ImageField::Path),
        value: |disk| {
            let path = disk.backend.image().and_then(|image| image.host_path());
            optional(path, Value::from)
        },
    },
    Computed {
        name: "protocol",
        at: |disk| FieldPath::Image(disk, 0, ImageField::NetworkProtocol),
        value: |disk| {
            let network = disk
                .backend
                .image()
                .and_then(|image| match &image.protocol {
                    Protocol::Network(source) => Some(source.protocol),
                    _ => None,
                });
            optional(network, |protocol| protocol.as_str().into())
        },
    },
    Computed {
        name: "images",
        at: |disk| FieldPath::Disk(disk, DiskField::Source),
        value: |disk| {
            let image = disk.backend.image();
            image.map_or(0, |image| image.chain().count()).into()
        },
    },
];

/// Fields of a guest.
pub(super) const OF_GUEST: &[Computed<Domain>] = &[
    Computed {
        name: "name",
        at: |_| FieldPath::Domain(DomainField::Name),
        value: |guest| optional(guest.name.as_deref(), Value::from),
    },
    Computed {
        name: "type",
        at: |_| FieldPath::Domain(DomainField::DomainType),
        value: |guest| optional(guest.domain_type.as_ref(), |it| it.as_str().into()),
    },
    Computed {
        name: "machine",
        at: |_| FieldPath::Domain(DomainField::Machine),
        value: |guest| optional(guest.machine.as_ref(), |it| it.0.as_str().into()),
    },
    Computed {
        name: "vcpus",
        at: |_| FieldPath::Domain(DomainField::Domain),
        value: |guest| optional(guest.vcpus, Value::from),
    },
    Computed {
        name: "memory",
        at: |_| FieldPath::Domain(DomainField::Domain),
        value: |guest| optional(guest.memory, |Bytes(bytes)| bytes.into()),
    },
    Computed {
        name: "disks",
        at: |_| FieldPath::Domain(DomainField::Domain),
        value: |guest| guest.disks.len().into(),
    },
];

/// A value, or none.
fn optional<T>(value: Option<T>, into: impl Fn(T) -> Value) -> Value {
    value.map_or_else(|| Value::from(()), into)
}

/// Facts of the host about a disk.
pub(super) struct FactRow {
    pub(super) name: &'static str,
    pub(super) members: &'static [&'static str],
    pub(super) of: fn(&HostIndex<'_>, &str) -> Result<serde_json::Value, Missing>,
}

/// The facts about a disk that a condition can name, after `disk.`, and their members in a facts file.
pub fn facts() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    OF_HOST.iter().map(|row| (row.name, row.members))
}

pub(super) const OF_HOST: &[FactRow] = &[
    FactRow {
        name: "file",
        members: File::MEMBERS,
        of: |host, path| {
            known(
                "file",
                host.file(path).map_or(Fact::NotCollected, Fact::Known),
            )
        },
    },
    FactRow {
        name: "filesystem",
        members: Filesystem::MEMBERS,
        of: |host, path| known("file system", host.filesystem_of(path)),
    },
    FactRow {
        name: "mount",
        members: Mount::MEMBERS,
        of: |host, path| known("mount", host.mount_of(path)),
    },
    FactRow {
        name: "device",
        members: BlockDevice::MEMBERS,
        of: |host, path| known("device", host.block_device(path)),
    },
];

/// A fact as it is written, and null if there is none.
fn known<T: serde::Serialize>(what: &str, fact: Fact<T>) -> Result<serde_json::Value, Missing> {
    let known = fact.needed(|| what.to_owned())?;
    serde_json::to_value(known).map_err(|error| Missing::new(what, error.to_string()))
}

/// A fact as a value; what is unknown is undefined.
pub(super) fn of_json(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(switch) => switch.into(),
        serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => number.as_f64().unwrap_or_default().into(),
        },
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(values) => values.into_iter().map(of_json).collect(),
        // A facts file has this in place of a value that could not be collected.
        serde_json::Value::Object(members) if members.contains_key("unknown") => Value::UNDEFINED,
        serde_json::Value::Object(members) => map(members
            .into_iter()
            .map(|(name, value)| (name, of_json(value)))),
    }
}

/// An object with these members.
pub(super) fn map(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    let members: BTreeMap<String, Value> = members.into_iter().collect();
    Value::from_object(members)
}

/// The value of a field; none if it is not set.
pub(super) fn of_field(value: Option<FieldValue>) -> Value {
    match value {
        None => Value::from(()),
        Some(FieldValue::Set) => true.into(),
        Some(FieldValue::Switch(switch)) => (switch == Switch::On).into(),
        Some(FieldValue::Number(number)) => number.into(),
        Some(FieldValue::Count(count)) => count.into(),
        Some(FieldValue::Size(Bytes(bytes))) => bytes.into(),
        Some(FieldValue::Text(text)) => text.into(),
        Some(FieldValue::Word(word)) => word.into(),
        Some(FieldValue::IoThread(id)) => id.0.into(),
    }
}
