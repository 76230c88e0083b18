//! How requests reach the host's kernel.

use vmdisk_facts::{Fact, File};
use vmdisk_model::{
    AioMode, BackendSource, Creation, DiskField, Format, Image, Preallocation, Protocol,
    Qcow2Preallocation,
};

use super::choice::Chosen;
use super::host::Direct;
use super::planner::Planner;
use crate::spec::{DiskSpec, IoThreadSpec, Spec};

impl Planner<'_> {
    /// Decides the AIO mode of a disk, once its cache mode is known.
    pub(crate) fn plan_aio(&mut self, index: usize, spec: &DiskSpec) {
        let backend = &self.domain.disks[index].backend;
        let BackendSource::Image(image) = &backend.source else {
            return;
        };
        if let Protocol::Network(_)
        | Protocol::Nvme(_)
        | Protocol::VhostVdpa { .. }
        | Protocol::Directory { .. } = image.protocol
        {
            // It is a member of nodes on files and devices only.
            return;
        }
        let (image, is_direct) = (image.clone(), backend.is_direct());
        let threads = threads_of(spec);
        let aio = self.decide_disk(index, DiskField::Aio, "io", spec.io, |planner| {
            Some(choose(planner, &image, is_direct, threads))
        });
        self.disk(index).backend.aio = aio;
        // Explicit values were counted before.
        if aio == Some(AioMode::Native) && spec.io.is_none() {
            self.native_threads += threads;
        }
    }
}

/// The threads of all disks that are to have native AIO, whatever is chosen for the others.
pub(super) fn asked_native_threads(spec: &Spec) -> u64 {
    let asked = spec
        .disks
        .iter()
        .filter(|disk| disk.io == Some(AioMode::Native));
    asked.map(threads_of).sum()
}

/// How many threads a disk's requests come from.
fn threads_of(disk: &DiskSpec) -> u64 {
    match &disk.iothread {
        Some(IoThreadSpec::Several(threads)) => threads.len() as u64,
        Some(IoThreadSpec::Auto | IoThreadSpec::Number(_)) | None => 1,
    }
}

/// The mode for an image whose requests come from so many threads.
fn choose(planner: &Planner<'_>, image: &Image, is_direct: bool, threads: u64) -> Chosen<AioMode> {
    if !is_direct {
        let reason = "QEMU refuses native AIO through the page cache, where it would block";
        return Chosen::by_default(AioMode::Threads, reason).instead_of("native-without-direct");
    }
    let is_device = matches!(image.protocol, Protocol::HostDevice { .. });
    match planner.host.direct_io(image) {
        Direct::Fails { because, .. } => {
            let reason = format!("O_DIRECT is requested, but {because}: native AIO would block");
            return Chosen::by_fact(AioMode::Threads, reason)
                .instead_of("io-native-on-buffered-dio");
        }
        Direct::Unknown { why } if !is_device && is_allocated(planner, image) => {
            let reason = format!(
                "it is not known whether direct I/O works: {why}; otherwise native AIO would block"
            );
            return Chosen::by_default(AioMode::Threads, reason)
                .instead_of("io-native-on-buffered-dio");
        }
        Direct::Works { .. } | Direct::Unknown { .. } => {}
    }
    if is_device || is_allocated(planner, image) {
        let threads = planner.native_threads + threads;
        if let Some(reason) = planner.host.lacks_aio_slots(threads) {
            return Chosen::by_fact(AioMode::Threads, reason).instead_of("aio-slots-exhausted");
        }
        let reason = if is_device {
            "a block device has no blocks to allocate, which is what io_submit waits for in files"
        } else {
            "every block of the file is allocated, so io_submit does not wait for that"
        };
        return Chosen::by_default(AioMode::Native, reason);
    }
    match planner.host.io_uring(image) {
        Ok(because) => {
            let reason =
                format!("the file grows as the guest writes, where native AIO waits; {because}");
            Chosen::by_fact(AioMode::IoUring, reason)
        }
        Err(why) => {
            let reason =
                format!("the file grows as the guest writes, where native AIO waits; {why}");
            Chosen::by_default(AioMode::Threads, reason)
        }
    }
}

/// True if all blocks of an image are known to be there already.
pub(crate) fn is_allocated(planner: &Planner<'_>, image: &Image) -> bool {
    match &image.creation {
        Some(Creation::RawFile { preallocation, .. }) => matches!(
            preallocation,
            Some(Preallocation::Falloc | Preallocation::Full)
        ),
        Some(Creation::Qcow2(qcow2)) => matches!(
            qcow2.preallocation,
            Some(Qcow2Preallocation::Falloc | Qcow2Preallocation::Full)
        ),
        Some(Creation::LogicalVolume { .. }) => true,
        Some(Creation::ThinVolume(_) | Creation::Other { .. }) => false,
        None => {
            let path = image.host_path();
            let file = path.and_then(|path| planner.host.index.file(path));
            file.is_some_and(|file| has_all_blocks(file, image.format))
        }
    }
}

/// True if a file that exists has a block for each block of the disk.
fn has_all_blocks(file: &File, format: Option<Format>) -> bool {
    let allocation = file.allocation().known();
    let header = file.image.as_ref().known();
    let is_told = match format {
        // The sizes are conclusive only for a raw file, whatever the disk calls it.
        Some(Format::Raw) => {
            header.is_none_or(|it| it.virtual_size.as_ref().known() == file.size.as_ref().known())
        }
        // What is allocated for a snapshot, or beside a backing image, is not free for the disk.
        Some(Format::Qcow2) => header.is_some_and(|it| {
            it.format.as_str().is(&"qcow2")
                && it.snapshots.is(&0)
                && matches!(it.backing, Fact::Absent)
        }),
        _ => false,
    };
    is_told && allocation.is_some_and(|it| !it.is_sparse())
}
