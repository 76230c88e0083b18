//! The cache mode: whether the host's page cache lies between the guest and its storage.

use vmdisk_model::{
    AioMode, BackendSource, CacheMode, DiskField, FieldPath, HostStorage, Image, Protocol,
};

use super::choice::Chosen;
use super::host::Direct;
use super::network;
use super::planner::Planner;
use crate::spec::DiskSpec;

impl Planner<'_> {
    /// Decides the cache mode of a disk.
    pub(crate) fn plan_cache(&mut self, index: usize, spec: &DiskSpec) {
        let image = match &self.domain.disks[index].backend.source {
            BackendSource::Image(image) => image.clone(),
            // For the medium that somebody inserts.
            BackendSource::Empty => {
                self.note_asked(
                    FieldPath::Disk(index, DiskField::Cache),
                    "cache",
                    spec.cache,
                );
                self.disk(index).backend.cache = spec.cache;
                return;
            }
            // The daemon of a vhost-user disk decides what it caches.
            BackendSource::VhostUser(_) => return,
        };
        let cache = self.decide_disk(index, DiskField::Cache, "cache", spec.cache, |planner| {
            Some(choose(planner, &image, spec))
        });
        self.disk(index).backend.cache = cache;
    }
}

/// The cache mode of storage that QEMU does not open as a file or a block device.
fn without_page_cache(protocol: &Protocol) -> Option<Chosen<CacheMode>> {
    match protocol {
        Protocol::Nvme(_) => {
            let reason = "QEMU drives the controller directly, bypassing the host's page cache";
            Some(Chosen::by_default(CacheMode::None, reason))
        }
        Protocol::VhostVdpa { .. } => {
            let reason = "a vDPA device has no page cache, and libvirt requires this mode";
            let chosen = Chosen::by_default(CacheMode::None, reason);
            Some(chosen.instead_of("vhost-vdpa-needs-direct"))
        }
        Protocol::Directory { .. } => {
            let reason = "QEMU reads the files of a directory through the page cache";
            Some(Chosen::by_default(CacheMode::Writeback, reason))
        }
        _ => None,
    }
}

fn choose(planner: &Planner<'_>, image: &Image, spec: &DiskSpec) -> Chosen<CacheMode> {
    if spec.shareable == Some(true) {
        let reason = "two page caches on one disk would not agree";
        return Chosen::by_fact(CacheMode::None, reason).instead_of("shareable-cached");
    }
    if spec.io == Some(AioMode::Native) {
        let reason = "native AIO needs it";
        return Chosen::by_fact(CacheMode::None, reason).instead_of("native-without-direct");
    }
    if let Protocol::Network(source) = &image.protocol {
        return network::cache(source.protocol);
    }
    if let Some(chosen) = without_page_cache(&image.protocol) {
        return chosen;
    }
    if let Some(reason) = planner.host.end_is_out_of_reach(image) {
        return Chosen::by_fact(CacheMode::Writeback, reason).instead_of("image-size-unaligned");
    }
    let works = match (planner.host.direct_io(image), image.protocol.on_host()) {
        (Direct::Fails { because, rule, .. }, _) => {
            let mut chosen = Chosen::by_fact(CacheMode::Writeback, because);
            chosen.rule = rule;
            return chosen;
        }
        (Direct::Works { because, .. }, _) => because,
        (Direct::Unknown { .. }, Some(HostStorage::Device(_))) => {
            let reason = "block devices do direct I/O, and two caches would hold the same data";
            return Chosen::by_default(CacheMode::None, reason);
        }
        (Direct::Unknown { why }, Some(HostStorage::File(_)) | None) => {
            let reason = format!(
                "it is not known whether direct I/O works there: {why}; writeback works everywhere"
            );
            return Chosen::by_default(CacheMode::Writeback, reason);
        }
    };
    // The mode holds for the whole chain, so one image below that refuses O_DIRECT decides.
    let backing = image.chain().skip(1).map(|below| ("backing image", below));
    let data_file = image.data_file.as_deref();
    let below = backing.chain(data_file.map(|below| ("data file", below)));
    let written = below.map(|(what, below)| (what, planner.host.direct_io(below)));
    let of_headers = planner.host.refused_below(image);
    for (what, direct) in written.chain(of_headers.map(|direct| ("backing image", direct))) {
        match direct {
            Direct::Fails {
                because,
                is_refused: true,
                rule,
            } => {
                let reason = format!("the {what} is opened the same way, and there {because}");
                let mut chosen = Chosen::by_fact(CacheMode::Writeback, reason);
                chosen.rule = rule;
                return chosen;
            }
            // Reads alone do no harm where writes would.
            Direct::Fails { .. } | Direct::Works { .. } | Direct::Unknown { .. } => {}
        }
    }
    let reason = format!("{works}; the guest has its own page cache, and one is enough");
    Chosen::by_fact(CacheMode::None, reason)
}
