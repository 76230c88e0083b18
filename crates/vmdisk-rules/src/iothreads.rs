//! The iothreads of a guest, and their users.

use std::collections::BTreeSet;

use vmdisk_model::{Controller, Disk, Domain, IoThreadId, IoThreadQueues};

/// Ids of the defined iothreads.
pub(crate) fn defined(domain: &Domain) -> BTreeSet<IoThreadId> {
    domain.iothreads.iter().map(|thread| thread.id).collect()
}

/// Ids of the iothreads that a disk or a controller uses.
pub(crate) fn named(domain: &Domain) -> BTreeSet<IoThreadId> {
    let disks = domain.disks.iter().flat_map(of_disk);
    let controllers = domain.controllers.iter().flat_map(of_controller);
    disks.chain(controllers).collect()
}

/// Indexes of the defined iothreads without users, in the order of their ids.
pub(crate) fn idle(domain: &Domain) -> Vec<usize> {
    let named = named(domain);
    let threads = domain.iothreads.iter().enumerate();
    let mut idle: Vec<usize> = threads
        .filter(|(_, thread)| !named.contains(&thread.id))
        .map(|(index, _)| index)
        .collect();
    idle.sort_by_key(|index| domain.iothreads[*index].id);
    idle
}

/// The iothreads that a disk uses.
pub(crate) fn of_disk(disk: &Disk) -> impl Iterator<Item = IoThreadId> {
    let frontend = &disk.frontend;
    frontend
        .iothread
        .into_iter()
        .chain(mapped(&frontend.iothread_mapping))
}

/// The iothreads that a controller uses.
pub(crate) fn of_controller(controller: &Controller) -> impl Iterator<Item = IoThreadId> {
    controller
        .iothread
        .into_iter()
        .chain(mapped(&controller.iothread_mapping))
}

/// The iothreads of a queue mapping.
pub(crate) fn mapped(mapping: &[IoThreadQueues]) -> impl Iterator<Item = IoThreadId> {
    mapping.iter().map(|row| row.iothread)
}

/// The virtio-scsi controller of a disk, with its index.
pub(crate) fn virtio_scsi_of<'a>(
    domain: &'a Domain,
    disk: &Disk,
) -> Option<(usize, &'a Controller)> {
    let found = domain.scsi_controller_of(disk)?;
    found.scsi_model.filter(|model| model.is_virtio())?;
    let mut controllers = domain.controllers.iter().enumerate();
    controllers.find(|(_, controller)| std::ptr::eq(*controller, found))
}

/// The id of an additional iothread if `<iothreads>` alone determines the ids: libvirt then assigns 1, 2, 3 and so on.
pub(crate) fn next(domain: &Domain) -> Option<IoThreadId> {
    let is_counted = domain.iothreads.iter().all(|thread| !thread.is_listed);
    let count = u32::try_from(domain.iothreads.len()).ok()?;
    (is_counted && count < u32::MAX).then_some(IoThreadId(count + 1))
}
