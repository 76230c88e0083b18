//! Options that every node of a chain needs.

use vmdisk_model::{CacheSwitches, Discard};

use crate::json::JsonObject;

/// Options that every node of a chain needs.
///
/// QEMU passes these options to children that are written inside their parent, but not to named children. With named
/// nodes each node must set them; otherwise `O_DIRECT`, discard and read-only apply only to the first layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeOptions {
    pub(crate) cache: Option<CacheSwitches>,
    pub(crate) discard: Option<Discard>,
}

impl NodeOptions {
    /// Adds the options to a node.
    pub(super) fn push_to(self, node: &mut JsonObject) {
        if let Some(CacheSwitches {
            // The switch of the frontend.
            write_cache: _,
            direct,
            no_flush,
        }) = self.cache
        {
            let cache = JsonObject::new()
                .with("direct", direct)
                .with("no-flush", no_flush);
            node.push("cache", cache);
        }
        node.push_some("discard", self.discard.map(Discard::as_str));
    }
}
