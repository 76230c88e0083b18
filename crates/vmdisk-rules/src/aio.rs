//! The threads of a guest that need slots of Linux AIO.

use std::collections::BTreeSet;

use vmdisk_model::{AioMode, Disk, Domain, IoThreadId};
use vmdisk_rule::Context;

use crate::io_uring::is_opened_by_path;
use crate::iothreads;

/// The first disk that uses Linux AIO, and the number of threads that reserve slots.
pub(crate) fn threads(context: &Context<'_>) -> Option<(usize, u64)> {
    let mut threads: BTreeSet<Option<IoThreadId>> = BTreeSet::new();
    let mut first = None;
    for (index, disk, image) in context.images() {
        if disk.backend.aio == Some(AioMode::Native) && is_opened_by_path(image) {
            first.get_or_insert(index);
            threads.extend(threads_of(context.domain, disk));
        }
    }
    Some((first?, u64::try_from(threads.len()).unwrap_or(u64::MAX)))
}

/// The threads that a disk's requests run in; `None` is the main loop.
fn threads_of(domain: &Domain, disk: &Disk) -> Vec<Option<IoThreadId>> {
    let mut own: Vec<Option<IoThreadId>> = iothreads::of_disk(disk).map(Some).collect();
    if let Some((_, controller)) = iothreads::virtio_scsi_of(domain, disk) {
        own.extend(iothreads::of_controller(controller).map(Some));
    }
    if own.is_empty() {
        own.push(None);
    }
    own
}
