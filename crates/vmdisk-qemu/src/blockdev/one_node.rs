//! Switches that are set on only one node of an image.

use vmdisk_model::{Discard, DiskField, FieldPath, Switch};
use vmdisk_source::Edit;

use super::read::{Chain, NodeReader};
use crate::rules::{direct_on_one_node, discard_on_one_node, read_only_on_one_node};
use crate::slots::Slots;

impl NodeReader<'_, '_> {
    /// Reports switches that are set on only one node of an image, if that matters.
    pub(super) fn compare_nodes(&mut self, chain: &Chain) {
        let (Some((top, top_option)), Some((bottom, bottom_option))) = (chain.top, chain.bottom)
        else {
            return;
        };
        if !chain.has_format || bottom.is_inline || top_option == bottom_option {
            return;
        }
        let place = |reader: &Self, field| {
            let at = FieldPath::Disk(chain.nth, field);
            let span = reader.notes.place(at).map(|place| place.span);
            (at, span.unwrap_or(reader.index.span(top_option)))
        };
        let file_node = self.node_name(bottom_option);
        if top.discard == Some(Discard::Unmap) && bottom.discard != Some(Discard::Unmap) {
            let (at, span) = place(self, DiskField::Discard);
            let message = format!(
                "discard=unmap is set only on the format node: {file_node} does not pass discards on"
            );
            let fix = self
                .index
                .properties(bottom_option)
                .and_then(|properties| match properties.get("discard") {
                    Some(property) => Some(Edit::replace(property.span, "unmap")),
                    None => Slots::added(properties.properties(), "discard", "unmap"),
                });
            let problem = self
                .notes
                .problem(&discard_on_one_node::RULE, at, span, message);
            problem.help = Some(format!("write discard=unmap on {file_node} too"));
            problem.fix.extend(fix);
        }
        if top.direct == Some(Switch::On) && bottom.direct != Some(Switch::On) {
            let (at, span) = place(self, DiskField::Cache);
            let message = format!(
                "cache.direct=on is set only on the format node: {file_node} opens the file through the page cache"
            );
            let problem = self
                .notes
                .problem(&direct_on_one_node::RULE, at, span, message);
            problem.help = Some(format!("write cache.direct=on on {file_node} too"));
        }
        let is_on = |switch: Option<Switch>| switch == Some(Switch::On);
        if is_on(top.read_only) && !is_on(bottom.read_only) && !is_on(bottom.auto_read_only) {
            let (at, span) = place(self, DiskField::ReadOnly);
            let message = format!(
                "read-only=on is set only on the format node: {file_node} opens the file for writing"
            );
            let problem = self
                .notes
                .problem(&read_only_on_one_node::RULE, at, span, message);
            problem.help = Some(format!("write read-only=on on {file_node} too"));
        }
    }

    fn node_name(&self, option: usize) -> String {
        self.index
            .properties(option)
            .and_then(|properties| properties.get("node-name"))
            .map_or_else(
                || "the file's node".to_owned(),
                |name| format!("`{}`", name.value.as_str()),
            )
    }
}
