//! Changes that several rules offer.

use vmdisk_fields::{Phrase, Setting, phrase, setting};
use vmdisk_model::{AioMode, CacheMode, Change, Disk, DiskField, FieldPath, FieldValue};

/// The mode without `O_DIRECT` that gives the guest the same guarantees.
pub(crate) const fn buffered(mode: CacheMode) -> CacheMode {
    match mode {
        CacheMode::None => CacheMode::Writeback,
        CacheMode::Directsync => CacheMode::Writethrough,
        CacheMode::Writeback | CacheMode::Writethrough | CacheMode::Unsafe => mode,
    }
}

/// The mode without a flush after every write that gives the guest the same guarantees.
pub(crate) const fn without_flush_per_write(mode: CacheMode) -> CacheMode {
    match mode {
        CacheMode::Writethrough => CacheMode::Writeback,
        CacheMode::Directsync => CacheMode::None,
        CacheMode::None | CacheMode::Writeback | CacheMode::Unsafe => mode,
    }
}

/// The setting that opens the image without `O_DIRECT`, and the changes; no changes for a disk that other guests use at
/// the same time, which must not be cached.
pub(crate) fn without_direct(index: usize, disk: &Disk) -> (Vec<Setting>, Option<Vec<Change>>) {
    let mode = buffered(disk.backend.effective_cache());
    let cache = FieldPath::Disk(index, DiskField::Cache);
    let mut settings = vec![setting(cache, mode)];
    let mut changes = vec![Change::set(cache, mode)];
    if disk.backend.aio == Some(AioMode::Native) {
        // Linux AIO needs O_DIRECT, so it is removed too.
        let aio = FieldPath::Disk(index, DiskField::Aio);
        settings.push(setting(aio, AioMode::Threads));
        changes.push(Change::set(aio, AioMode::Threads));
    }
    let is_shared = disk.backend.is_shareable && disk.is_writable();
    (settings, (!is_shared).then_some(changes))
}

/// The setting that enables `O_DIRECT`: a cache mode, or that the disk is shareable.
pub(crate) fn how_direct_is_asked(index: usize, disk: &Disk) -> Phrase {
    let at = FieldPath::Disk(index, DiskField::Cache);
    match disk.backend.cache {
        Some(mode) => phrase!("{cache}", cache = setting(at, mode)),
        None => phrase!(
            "{shareable}, for which libvirt uses `none`",
            shareable = setting(
                FieldPath::Disk(index, DiskField::Shareable),
                FieldValue::Set
            )
        ),
    }
}
