//! The meanings of fields and of their words, from the documentation of the model.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use vmdisk_facts::Version;
use vmdisk_fields::{FieldRow, Since, controller, disk, image};
use vmdisk_libvirt::vocabulary::{AttributeSpec, Field};
use vmdisk_model::{FieldPath, NetworkSource};

/// Written by `cargo xtask codegen`.
const TABLE: &str = include_str!("meanings.txt");

/// The meaning of a field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meaning {
    pub(crate) text: &'static str,
    words: Vec<(&'static str, &'static str)>,
}

impl Meaning {
    /// The meaning of a word of the field.
    pub(crate) fn of_word(&self, word: &str) -> Option<&'static str> {
        let mut words = self.words.iter();
        words
            .find(|(known, _)| *known == word)
            .map(|(_, meaning)| *meaning)
    }
}

fn table() -> &'static BTreeMap<&'static str, Meaning> {
    static PARSED: OnceLock<BTreeMap<&'static str, Meaning>> = OnceLock::new();
    PARSED.get_or_init(|| {
        let mut table: BTreeMap<&str, Meaning> = BTreeMap::new();
        let mut last = "";
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let (name, text) = line.trim_start().split_once(": ").unwrap_or((line, ""));
            if line.starts_with(' ') {
                table.entry(last).or_default().words.push((name, text));
            } else {
                table.entry(name).or_default().text = text;
                last = name;
            }
        }
        table
    })
}

/// The meaning of the first field of an attribute.
pub(crate) fn of_row(row: &AttributeSpec) -> Option<Meaning> {
    row.fields.iter().flatten().next().map(|field| of(*field))
}

/// The meaning of a field; empty for one that the model documents elsewhere.
pub(crate) fn of(field: Field) -> Meaning {
    let key = match field {
        Field::Disk(field) => format!("DiskField::{field:?}"),
        Field::Controller(field) => format!("ControllerField::{field:?}"),
        Field::Iotune(field) | Field::ThrottleGroup(field) => format!("LimitField::{field:?}"),
        Field::Image(field) => format!("ImageField::{field:?}"),
        Field::Domain(field) => format!("DomainField::{field:?}"),
        Field::IoThread(field) => format!("IoThreadField::{field:?}"),
    };
    table().get(key.as_str()).cloned().unwrap_or_default()
}

/// The field of a path, without the number of its disk.
pub(crate) const fn field_of(path: FieldPath) -> Field {
    match path {
        FieldPath::Domain(field) => Field::Domain(field),
        FieldPath::Disk(_, field) => Field::Disk(field),
        FieldPath::Image(_, _, field) => Field::Image(field),
        FieldPath::Controller(_, field) => Field::Controller(field),
        FieldPath::IoThread(_, field) => Field::IoThread(field),
        FieldPath::Iotune(_, field) => Field::Iotune(field),
        FieldPath::ThrottleGroup(_, field) => Field::ThrottleGroup(field),
    }
}

/// The row of a field in the table of fields, if it has one.
pub(crate) const fn row(field: Field) -> Option<&'static FieldRow> {
    match field {
        Field::Disk(field) => Some(disk(field)),
        Field::Controller(field) => Some(controller(field)),
        Field::Image(field) if NetworkSource::kind_of(field).is_some() => Some(image(field)),
        _ => None,
    }
}

/// The meaning of a field and its names in the other formats.
pub(crate) fn about_field(title: &str, field: Field) -> String {
    let meaning = of(field).text;
    let mut out = format!("**`{title}`**\n\n{meaning}\n");
    if let Some(row) = row(field) {
        let names = names(row);
        if !names.is_empty() {
            let _ = write!(out, "\n{names}\n");
        }
    }
    out
}

/// The names of a field in each format, as a list.
fn names(row: &FieldRow) -> String {
    let mut out = String::new();
    if let Some(version) = row.libvirt.since {
        let _ = writeln!(
            out,
            "- libvirt: `{}` ({})",
            row.libvirt.place,
            since(version, None)
        );
    }
    if let Some(node) = row.node {
        let _ = writeln!(out, "- `-blockdev` of QEMU: `{node}`");
    }
    if let Some(property) = row.property() {
        let _ = writeln!(out, "- `-device` of QEMU: `{property}`");
    }
    if let Some(key) = row.spec {
        let _ = writeln!(out, "- spec of `vmdisk generate`: `{key}`");
    }
    out
}

/// The first versions with something, in words.
pub(crate) fn since(libvirt: Since, qemu: Option<Since>) -> String {
    let (major, minor, micro) = libvirt;
    let libvirt = format!("libvirt {}", Version(major, minor, micro));
    match qemu {
        Some((major, minor, micro)) => {
            format!("{libvirt}, QEMU {}", Version(major, minor, micro))
        }
        None => libvirt,
    }
}
