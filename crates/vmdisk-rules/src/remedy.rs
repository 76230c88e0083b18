//! Changes that several rules offer.

use vmdisk_model::{AioMode, CacheMode, Change, Disk, DiskField, FieldPath};

/// The mode that promises the guest the same and does without `O_DIRECT`.
pub(crate) const fn buffered(mode: CacheMode) -> CacheMode {
    match mode {
        CacheMode::None => CacheMode::Writeback,
        CacheMode::Directsync => CacheMode::Writethrough,
        CacheMode::Writeback | CacheMode::Writethrough | CacheMode::Unsafe => mode,
    }
}

/// The mode that promises the guest the same and does without a flush after every write.
pub(crate) const fn without_flush_per_write(mode: CacheMode) -> CacheMode {
    match mode {
        CacheMode::Writethrough => CacheMode::Writeback,
        CacheMode::Directsync => CacheMode::None,
        CacheMode::None | CacheMode::Writeback | CacheMode::Unsafe => mode,
    }
}

/// What to write to open the image without `O_DIRECT`, and the steps; no steps for a disk that other
/// guests use at the same time, which must not be cached.
pub(crate) fn without_direct(index: usize, disk: &Disk) -> (String, Option<Vec<Change>>) {
    let mode = buffered(disk.backend.effective_cache());
    let cache = FieldPath::Disk(index, DiskField::Cache);
    let mut words = format!("cache='{mode}'");
    let mut changes = vec![Change::set(cache, mode.as_wire())];
    if disk.backend.aio == Some(AioMode::Native) {
        // Linux AIO needs O_DIRECT, so it goes with it.
        words.push_str(" io='threads'");
        let aio = FieldPath::Disk(index, DiskField::Aio);
        changes.push(Change::set(aio, AioMode::Threads.as_wire()));
    }
    let is_shared = disk.backend.is_shareable && disk.is_writable();
    (words, (!is_shared).then_some(changes))
}

/// How the configuration asks for `O_DIRECT`: `cache='none'`, or that it is shareable.
pub(crate) fn how_direct_is_asked(disk: &Disk) -> String {
    match disk.backend.cache {
        Some(mode) => format!("cache='{mode}'"),
        None => "shareable, for which libvirt takes cache='none'".to_owned(),
    }
}
