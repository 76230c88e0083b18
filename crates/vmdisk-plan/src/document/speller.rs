//! How a spec spells settings.

use vmdisk_document::Value;
use vmdisk_fields::{Setting, Speller, disk, image, limit};
use vmdisk_model::{
    DiskField, Domain, DomainField, FieldPath, FieldValue, ImageField, IoThreadField, IoThreadId,
    LimitField, Protocol, Switch,
};

use crate::spec::{BusSpec, MediaSpec, size_text};

/// The keys of `guest`, and what they ask for.
pub(super) const GUEST: &[(&str, DomainField)] = &[
    ("name", DomainField::Name),
    ("uuid", DomainField::Uuid),
    ("type", DomainField::DomainType),
    ("arch", DomainField::Architecture),
    ("machine", DomainField::Machine),
    ("firmware", DomainField::Firmware),
    ("vcpus", DomainField::Vcpus),
    ("cpu", DomainField::Cpu),
    ("memory", DomainField::Memory),
    ("iothreads", DomainField::IoThreads),
    ("hugepages", DomainField::HugePages),
];

/// Spells settings as keys with their values: `cache: none`.
#[derive(Clone, Copy, Debug)]
pub struct SpecSpeller<'d>(pub &'d Domain);

impl Speller for SpecSpeller<'_> {
    fn disk(&self, nth: usize) -> String {
        match self.0.disks.get(nth) {
            Some(disk) => format!("`{}`", disk.name()),
            None => format!("disk {nth}"),
        }
    }

    fn controller(&self, nth: usize) -> String {
        match self.0.controllers.get(nth) {
            Some(controller) => format!("the {} controller", controller.controller_type),
            None => format!("controller {nth}"),
        }
    }

    fn iothread(&self, id: IoThreadId) -> String {
        id.to_string()
    }

    fn settings(&self, settings: &[Setting]) -> Option<String> {
        let spelled = settings.iter().map(|Setting { at, value }| {
            if let Some(kind) = self.backend_of(*at, value) {
                return Some(format!("`{kind}`"));
            }
            let (key, value) = (key_of(*at)?, value_text(*at, value)?);
            Some(format!("`{key}: {value}`"))
        });
        Some(spelled.collect::<Option<Vec<_>>>()?.join(" and "))
    }

    fn field(&self, at: FieldPath) -> Option<String> {
        key_of(at).map(|key| format!("`{key}`"))
    }
}

impl SpecSpeller<'_> {
    /// The key of the backend, which says the kind of source and the format of a file.
    fn backend_of(&self, at: FieldPath, value: &FieldValue) -> Option<&'static str> {
        let of_format = |word: &str| ["raw", "qcow2"].into_iter().find(|kind| *kind == word);
        match (at, value) {
            (FieldPath::Disk(nth, DiskField::SourceType), FieldValue::Text(word)) => {
                let image = self.0.disks.get(nth)?.backend.image()?;
                match word.as_str() {
                    "block" => Some("device"),
                    "file" => of_format(image.format?.as_str()),
                    _ => None,
                }
            }
            (FieldPath::Image(nth, 0, ImageField::Format), FieldValue::Word(word)) => {
                let image = self.0.disks.get(nth)?.backend.image()?;
                let is_file = matches!(image.protocol, Protocol::File { .. });
                of_format(word).filter(|_| is_file)
            }
            _ => None,
        }
    }
}

/// The key of a field in its group; `None` if a spec has none.
pub(super) fn key_of(at: FieldPath) -> Option<String> {
    match at {
        // A key of the backend.
        FieldPath::Disk(_, DiskField::Reconnect) => Some("reconnect".to_owned()),
        FieldPath::Disk(_, field) => disk(field).spec.map(str::to_owned),
        FieldPath::Image(_, 0, ImageField::Image) => None,
        FieldPath::Image(_, _, field) => image(field).spec.map(str::to_owned),
        FieldPath::IoThread(_, field) => {
            let key = match field {
                IoThreadField::IoThread => "iothreads",
                IoThreadField::ThreadPoolMin => "thread-pool-min",
                IoThreadField::ThreadPoolMax => "thread-pool-max",
                IoThreadField::Polling => "poll-max-ns",
                IoThreadField::Id => return None,
            };
            Some(key.to_owned())
        }
        FieldPath::Iotune(_, LimitField::Limits) => Some("iotune".to_owned()),
        FieldPath::Iotune(_, field) => limit(field).map(|row| row.libvirt.replace('_', "-")),
        FieldPath::Domain(field) => {
            let known = GUEST.iter().find(|(_, known)| *known == field);
            known.map(|(key, _)| (*key).to_owned())
        }
        _ => None,
    }
}

/// A value of a field as YAML; `None` if a spec cannot ask for it.
pub(super) fn value_text(at: FieldPath, value: &FieldValue) -> Option<String> {
    Some(match value {
        FieldValue::Set | FieldValue::Switch(Switch::On) => "true".to_owned(),
        FieldValue::Switch(Switch::Off) => "false".to_owned(),
        FieldValue::Word(word) => {
            let is_bus = matches!(at, FieldPath::Disk(_, DiskField::TargetBus));
            let is_media = matches!(at, FieldPath::Disk(_, DiskField::Device));
            let is_known = !(is_bus && BusSpec::from_word(word).is_none()
                || is_media && MediaSpec::from_word(word).is_none());
            is_known.then(|| (*word).to_owned())?
        }
        FieldValue::Text(text) => Value::Text(text.clone()).to_yaml().trim_end().to_owned(),
        FieldValue::Size(size) => size_text(*size),
        FieldValue::Number(_) | FieldValue::Count(_) | FieldValue::IoThread(_) => value.to_string(),
    })
}
