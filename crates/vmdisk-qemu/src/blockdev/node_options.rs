//! What holds for every node of a chain.

use vmdisk_model::{CacheSwitches, Discard};

use crate::json::JsonObject;

/// What holds for every node of a chain.
///
/// QEMU hands these down to children that are written inside their parent, and not to children that
/// are named: with named nodes each must say them itself, or `O_DIRECT`, discard and read-only stop
/// at the first layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeOptions {
    pub(crate) cache: Option<CacheSwitches>,
    pub(crate) discard: Option<Discard>,
}

impl NodeOptions {
    /// Adds the options to a node.
    pub(super) fn push_to(self, node: &mut JsonObject) {
        if let Some(CacheSwitches {
            // The frontend's switch.
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
        node.push_some("discard", self.discard.map(Discard::as_wire));
    }
}
