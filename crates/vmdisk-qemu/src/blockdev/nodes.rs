//! The settings of a disk's nodes.

use vmdisk_model::{
    AioMode, Backend, BackendSource, CacheMode, CacheSwitches, DiskField, FieldPath, Switch,
};

use crate::notes::Notes;

/// The settings of a disk's nodes.
pub(crate) struct Nodes {
    pub(crate) backend: Backend,
    /// True if requests bypass the page cache, and if flushes are dropped; `None` if no node sets it.
    pub(crate) direct: Option<bool>,
    pub(crate) no_flush: Option<bool>,
    /// True if the node of the file is read-only, and the format node above it is not.
    pub(crate) is_read_only_below: bool,
}

impl Nodes {
    /// A backend without nodes.
    pub(crate) fn none(source: impl Into<BackendSource>) -> Self {
        Nodes {
            backend: Backend::new(source),
            direct: None,
            no_flush: None,
            is_read_only_below: false,
        }
    }

    /// Determines the cache mode from the switches of device and nodes.
    pub(crate) fn resolve_cache(
        &mut self,
        nth: usize,
        write_cache: Option<Switch>,
        notes: &mut Notes<'_>,
    ) {
        if self.direct.is_none() && self.no_flush.is_none() && write_cache.is_none() {
            // By default libvirt bypasses the page cache for shareable disks, but QEMU does not.
            if self.backend.is_shareable {
                self.backend.cache.get_or_insert(CacheMode::Writeback);
            }
            return;
        }
        let before = self.backend.cache.map(CacheMode::switches);
        let switches = CacheSwitches {
            write_cache: write_cache.map_or_else(
                || before.is_none_or(|mode| mode.write_cache),
                |switch| switch == Switch::On,
            ),
            direct: self
                .direct
                .or(before.map(|mode| mode.direct))
                .unwrap_or_default(),
            no_flush: self
                .no_flush
                .or(before.map(|mode| mode.no_flush))
                .unwrap_or_default(),
        };
        let mode = CacheMode::from_switches(switches);
        if mode.is_none() {
            // Dropped flushes matter more than the page cache. Linux AIO is not refused with both.
            let at = FieldPath::Disk(nth, DiskField::Cache);
            notes.keep(at, "cache.no-flush", notes.span_around(at));
            if switches.direct && self.backend.aio == Some(AioMode::Native) {
                let at = FieldPath::Disk(nth, DiskField::Aio);
                notes.keep(at, "aio", notes.span_around(at));
                self.backend.aio = None;
            }
            notes.slots_mut().direct_unsafe.insert(nth);
        }
        self.backend.cache = mode.or(Some(CacheMode::Unsafe));
    }
}
