//! Filter nodes, which are between the format and the device.

use vmdisk_model::{DiskField, FieldPath};

use super::NodeOptions;
use crate::json::JsonObject;
use crate::names::NodeNames;
use crate::writer::Writer;

impl Writer<'_> {
    /// Writes the filter that copies the data that the guest reads from the backing image.
    pub(crate) fn write_copy_on_read(
        &mut self,
        nth: usize,
        names: NodeNames<'_>,
        options: NodeOptions,
        is_writable: bool,
        below: &str,
    ) -> String {
        let at = FieldPath::Disk(nth, DiskField::CopyOnRead);
        if !is_writable {
            self.problem(at, "copy-on-read needs a writable disk");
        }
        let name = names.copy_on_read();
        let node = JsonObject::new()
            .with("driver", "copy-on-read")
            .with("node-name", name.as_str())
            .with("file", below);
        self.blockdev(finished(node, options, is_writable), at);
        name
    }

    /// Writes the filter that applies the limits of a throttle group.
    pub(crate) fn write_throttle(
        &mut self,
        nth: usize,
        names: NodeNames<'_>,
        options: NodeOptions,
        is_writable: bool,
        group: &str,
        below: &str,
    ) -> String {
        let name = names.throttle();
        let node = JsonObject::new()
            .with("driver", "throttle")
            .with("node-name", name.as_str())
            .with("throttle-group", group)
            .with("file", below);
        self.blockdev(
            finished(node, options, is_writable),
            FieldPath::Disk(nth, DiskField::Iotune),
        );
        name
    }
}

impl Writer<'_> {
    /// Writes the filters that apply the limits of the guest's throttle groups, the first one lowest, and returns the
    /// name of the topmost node.
    pub(crate) fn write_throttle_filters(
        &mut self,
        nth: usize,
        groups: &[String],
        names: NodeNames<'_>,
        options: NodeOptions,
        is_writable: bool,
        below: String,
    ) -> String {
        let at = FieldPath::Disk(nth, DiskField::ThrottleFilters);
        let mut top = below;
        for (filter, group) in groups.iter().enumerate() {
            let Some(id) = self.places().filter_group(group).map(str::to_owned) else {
                let known = self.places().filter_group_names();
                let near = vmdisk_source::nearest(group, known);
                let message = format!("throttle group '{group}' is not defined");
                match near {
                    Some(near) => {
                        self.problem_with_help(at, message, &format!("did you mean '{near}'?"));
                    }
                    None => self.problem(at, message),
                }
                continue;
            };
            let name = names.throttle_filter(filter);
            let node = JsonObject::new()
                .with("driver", "throttle")
                .with("node-name", name.as_str())
                .with("throttle-group", id)
                .with("file", top.as_str());
            self.blockdev(finished(node, options, is_writable), at);
            top = name;
        }
        top
    }
}

/// A filter with the options of the chain: without `discard` a filter drops discards, and a writable filter refuses a
/// read-only node.
fn finished(mut node: JsonObject, options: NodeOptions, is_writable: bool) -> JsonObject {
    options.push_to(&mut node);
    node.push("read-only", !is_writable);
    node
}
