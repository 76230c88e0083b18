//! Queues of a disk, and the metadata cache of a qcow2 image.

use vmdisk_facts::Capability;
use vmdisk_model::{
    BackendSource, Bytes, ControllerField, Creation, DiskField, FieldPath, Format, Image, TargetBus,
};

use super::choice::Chosen;
use super::planner::Planner;
use crate::spec::DiskSpec;

/// Default maximum memory of QEMU for the tables of a qcow2 image (QEMU 3.1).
pub(super) const DEFAULT_TABLES: u64 = 32 * Bytes::MIB;

/// Bytes of those tables for each cluster.
pub(super) const TABLE_ENTRY: u64 = 8;

impl Planner<'_> {
    /// Decides the queues of a disk that is a virtio device of its own.
    pub(crate) fn plan_queues(&mut self, index: usize, spec: &DiskSpec) {
        let disk = &self.domain.disks[index];
        let is_vhost = matches!(disk.backend.source, BackendSource::VhostUser(_));
        let is_virtio = disk.frontend.bus == Some(TargetBus::Virtio);
        let vcpus = self.domain.effective_vcpus();
        let queues = self.decide_disk(index, DiskField::Queues, "queues", spec.queues, |planner| {
            if vcpus < 2 || !is_virtio {
                None
            } else if is_vhost {
                let reason = "it is not known how many queues the daemon has, and QEMU refuses to start \
                    if it asks for more; one per vCPU is faster where the daemon has so many";
                Some(Chosen::by_default(1, reason))
            } else {
                planner.one_per_vcpu()
            }
        });
        let frontend = &mut self.disk(index).frontend;
        frontend.queues = queues;
        frontend.queue_size = spec.queue_size;
        self.note_asked(
            FieldPath::Disk(index, DiskField::QueueSize),
            "queue-size",
            spec.queue_size,
        );
    }

    /// One queue per vCPU, where the machine type would give only one.
    fn one_per_vcpu(&self) -> Option<Chosen<u32>> {
        let vcpus = self.domain.effective_vcpus();
        if self.host.may(Capability::MachineQueuePerVcpu) {
            return None;
        }
        let reason = "this machine type has one queue by default; current ones have one per vCPU";
        Some(Chosen::by_fact(vcpus.min(1024), reason))
    }

    /// Decides the queues of a SCSI controller for which no disk asks.
    pub(crate) fn controller_queues(&mut self, controller: usize) -> Option<u32> {
        if self.domain.effective_vcpus() < 2 {
            return None;
        }
        let at = FieldPath::Controller(controller, ControllerField::Queues);
        self.decide(at, "queues", None, |planner| planner.one_per_vcpu())
    }

    /// Decides the memory for the tables of a large qcow2 image.
    pub(crate) fn plan_metadata_cache(&mut self, index: usize, spec: &DiskSpec) {
        let BackendSource::Image(image) = &self.domain.disks[index].backend.source else {
            return;
        };
        let image = image.clone();
        let asked = spec.metadata_cache_size;
        let at = DiskField::MetadataCacheSize;
        let size = self.decide_disk(index, at, "metadata-cache-size", asked, |planner| {
            let (tables, cluster) = planner.tables_of(&image)?;
            if tables.0 <= DEFAULT_TABLES || !planner.host.may(Capability::LibvirtMetadataCache) {
                return None;
            }
            // QEMU keeps four clusters of it for reference counts.
            let whole = (tables.0 + 4 * cluster.0).next_multiple_of(Bytes::MIB);
            let reason = format!(
                "its tables take {tables}, QEMU keeps 32 MiB of them in memory, and each miss costs an additional read"
            );
            Some(Chosen::by_fact(Bytes(whole), reason))
        });
        self.disk(index).backend.metadata_cache_size = size;
    }

    /// The size of all second-level tables of a qcow2 image, and its cluster size.
    fn tables_of(&self, image: &Image) -> Option<(Bytes, Bytes)> {
        if image.format != Some(Format::Qcow2) {
            return None;
        }
        let default_cluster = Bytes(64 * Bytes::KIB);
        let (size, cluster, has_subclusters) = match &image.creation {
            Some(Creation::Qcow2(qcow2)) => (
                qcow2.size?,
                qcow2.cluster_size.unwrap_or(default_cluster),
                qcow2.extended_l2 == Some(true),
            ),
            _ => {
                let file = self.host.index.file(image.host_path()?)?;
                let header = file.image.as_ref().known()?;
                (
                    Bytes(header.virtual_size.clone().known()?),
                    Bytes(header.cluster.clone().known()?),
                    header.ext_l2.clone().known().unwrap_or(false),
                )
            }
        };
        let entry = if has_subclusters {
            2 * TABLE_ENTRY
        } else {
            TABLE_ENTRY
        };
        let clusters = size.0.div_ceil(cluster.0.max(512));
        Some((Bytes(clusters * entry), cluster))
    }
}
