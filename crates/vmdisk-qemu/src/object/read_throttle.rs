//! Reads throttle groups.

use std::collections::{HashMap, HashSet};

use vmdisk_model::{DiskField, FieldPath, Iotune, LimitField};

use crate::index::Index;
use crate::members::Members;
use crate::notes::Notes;
use crate::syntax::properties::Property;
use crate::syntax::value::number_of;

/// The names of the throttle groups that disks use as filters.
#[derive(Default)]
pub(crate) struct FilterGroups<'a> {
    /// By the id of the object.
    names: HashMap<&'a str, String>,
    taken: HashSet<String>,
}

impl<'a> FilterGroups<'a> {
    /// The name of a group: its id without the prefix of libvirt or of this crate's writer.
    fn name(&mut self, id: &'a str) -> String {
        if let Some(name) = self.names.get(id) {
            return name.clone();
        }
        let short = ["limits-", "throttle-"]
            .iter()
            .find_map(|start| id.strip_prefix(start))
            .filter(|short| !short.is_empty())
            .unwrap_or(id);
        let is_taken = self.taken.contains(short);
        let name = if is_taken { id } else { short }.to_owned();
        self.taken.insert(name.clone());
        self.names.insert(id, name.clone());
        name
    }

    /// The name of the guest's group that a filter of a disk refers to.
    pub(crate) fn of_filter(
        &mut self,
        nth: usize,
        id: &'a Property,
        index: &Index<'_>,
        notes: &mut Notes<'_>,
    ) -> String {
        let word = id.value.as_str();
        if index.object(word).is_none() {
            report_missing(
                word,
                id,
                FieldPath::Disk(nth, DiskField::ThrottleFilters),
                notes,
            );
        }
        self.name(word)
    }

    /// Reads the guest's own throttle groups, with and without disks that use them.
    pub(crate) fn read_all(&mut self, index: &Index<'a>, notes: &mut Notes<'_>) -> Vec<Iotune> {
        let mut groups = Vec::new();
        for (option, properties) in index.objects("throttle-group") {
            let Some(id) = properties.get("id") else {
                continue;
            };
            if notes.owner(option).is_some() {
                // The limits of one disk, or of several that share them.
                continue;
            }
            let name = self.name(id.value.as_str());
            let at = |field| FieldPath::ThrottleGroup(groups.len(), field);
            notes.own(option, at(LimitField::Limits));
            notes.record_option(at(LimitField::Limits), option);
            notes.record(at(LimitField::Group), id);
            let limits = limits_of(properties);
            groups.push(Iotune {
                group: Some(name),
                ..limits.unwrap_or_default()
            });
        }
        groups
    }
}

/// Reads the limits of a disk from the group that its throttle node names.
pub(crate) fn read_throttle_group(
    nth: usize,
    name: &Property,
    index: &Index<'_>,
    notes: &mut Notes<'_>,
) -> Option<Iotune> {
    let id = name.value.as_str();
    let Some(option) = index.object(id) else {
        report_missing(id, name, FieldPath::Disk(nth, DiskField::Iotune), notes);
        return None;
    };
    let properties = index.properties(option)?;
    if notes.owner(option).is_none() {
        notes.own(option, FieldPath::Disk(nth, DiskField::Iotune));
    }
    let iotune = limits_of(properties);
    // The generated name for a disk's own limits does not name a shared group.
    let group = (!id.starts_with("throttle-")).then(|| {
        let name = id.strip_prefix("group-").unwrap_or(id);
        name.to_owned()
    });
    Some(Iotune {
        group,
        ..iotune.unwrap_or_default()
    })
}

fn report_missing(id: &str, written: &Property, at: FieldPath, notes: &mut Notes<'_>) {
    let message = format!("throttle group `{id}` is not defined");
    notes.undefined(
        at,
        written.span,
        message,
        "write its -object throttle-group",
    );
}

/// The limits of a throttle group's object.
fn limits_of(properties: Members<'_>) -> Option<Iotune> {
    properties.accept(&["qom-type", "id"]);
    iotune_of(|limit| {
        properties
            .take(&format!("limits.{limit}"))
            .or_else(|| properties.take(&format!("x-{limit}")))
    })
}

/// The limits of a throttle group, by QEMU's names; `None` if there are none.
pub(crate) fn iotune_of<'p>(get: impl Fn(&str) -> Option<&'p Property>) -> Option<Iotune> {
    let mut iotune = Iotune::default();
    for (field, limit) in iotune.limits_mut() {
        let property = vmdisk_fields::limit(field).and_then(|row| get(row.qemu));
        *limit = property.and_then(|property| number_of(property.value.as_str()));
    }
    (iotune != Iotune::default()).then_some(iotune)
}
