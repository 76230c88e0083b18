//! `-object throttle-group`: the limits of one or several disks.

use vmdisk_facts::Capability;
use vmdisk_fields::{Zero, limit_faults};
use vmdisk_model::{DiskField, FieldPath, Iotune, LimitField};

use crate::argument::QemuOption;
use crate::json::JsonObject;
use crate::key_value::KeyValue;
use crate::names::is_identifier;
use crate::places::SharedGroup;
use crate::writer::Writer;

/// The limits that are set, under the names of QEMU's `ThrottleLimits`.
fn limits(iotune: &Iotune) -> impl Iterator<Item = (&'static str, u64)> {
    let all = iotune.limits().into_iter();
    all.filter_map(|(field, limit)| {
        let row = vmdisk_fields::limit(field)?;
        let is_unset = limit == Some(0) && row.zero == Zero::UnsetForLibvirt;
        Some((row.qemu, limit.filter(|_| !is_unset)?))
    })
}

impl<'a> Writer<'a> {
    /// Writes the throttle group of a disk, unless an earlier disk of the group did; returns its id.
    pub(crate) fn write_throttle_group(
        &mut self,
        nth: usize,
        stem: &str,
        iotune: &'a Iotune,
    ) -> String {
        let at = FieldPath::Disk(nth, DiskField::Iotune);
        let id = match &iotune.group {
            None => format!("throttle-{stem}"),
            Some(name) => {
                if let Some(SharedGroup { id, limits }) = self.places().shared_group(name) {
                    let id = id.clone();
                    if *limits != iotune {
                        self.problem(
                            at,
                            format!("the disks of throttle group '{name}' have different limits"),
                        );
                    }
                    return id;
                }
                // An id must start with a letter, and has a limited length.
                let id = format!("group-{name}");
                if is_identifier(&id) {
                    id
                } else {
                    format!("unnamed-group-{}", self.places().shared_groups())
                }
            }
        };
        let id = self.places().take_id(&id);
        if let Some(name) = &iotune.group {
            let shared = SharedGroup {
                id: id.clone(),
                limits: iotune,
            };
            self.places().share_group(name, shared);
        }
        self.write_limits(&id, iotune, at);
        id
    }

    /// Writes the guest's own groups, which disks use as filters. libvirt writes all of them; here unused groups may be
    /// dropped.
    pub(crate) fn write_throttle_limits(&mut self) {
        let domain = self.domain();
        for (nth, group) in domain.throttle_groups.iter().enumerate() {
            let at = FieldPath::ThrottleGroup(nth, LimitField::Limits);
            let Some(name) = group.group.as_deref() else {
                let message = "a throttle group without a name cannot be used";
                self.problem(at, message);
                continue;
            };
            if self.places().filter_group(name).is_some() {
                let message = format!("two throttle groups have the name '{name}'");
                self.problem(FieldPath::ThrottleGroup(nth, LimitField::Group), message);
                continue;
            }
            let id = format!("limits-{name}");
            let id = if is_identifier(&id) {
                id
            } else {
                format!("unnamed-limits-{nth}")
            };
            let id = self.places().take_filter_group(name, &id);
            self.write_limits(&id, group, at);
        }
    }

    /// Writes the object with these limits.
    fn write_limits(&mut self, id: &str, iotune: &Iotune, at: FieldPath) {
        for fault in limit_faults(iotune) {
            self.problem_with_help(at, fault.what, &fault.help);
        }
        let limits = limits(iotune);
        if self.takes_json(Capability::ObjectJson) {
            let mut members = JsonObject::new();
            for (name, value) in limits {
                members.push(name, value);
            }
            let object = JsonObject::new()
                .with("qom-type", "throttle-group")
                .with("id", id)
                .with("limits", members);
            self.object(object, at);
        } else {
            // Before JSON each limit was a separate property with a name marked as unstable.
            let mut pairs = KeyValue::first("throttle-group").with("id", id);
            for (name, value) in limits {
                pairs = pairs.with(format!("x-{name}"), value.to_string());
            }
            self.push_pairs(QemuOption::Object, pairs, at);
        }
    }
}
