//! What becomes of the guest's discards.

use vmdisk_facts::{Answer, Basis, BlockDevice, BlockKind, Bug, Capability, Fact};
use vmdisk_model::{
    BackendSource, Bytes, Creation, DetectZeroes, Device, Discard, DiskField, Format, HostStorage,
    Image, Protocol, Qcow2Preallocation, Switch, TargetBus,
};

use super::aio::is_allocated;
use super::choice::Chosen;
use super::network;
use super::planner::Planner;
use crate::spec::{BackendSpec, DiskSpec};

impl<'a> Planner<'a> {
    /// Decides discard and what belongs to it.
    pub(crate) fn plan_discard(&mut self, index: usize, spec: &DiskSpec) {
        let disk = &self.domain.disks[index];
        let BackendSource::Image(image) = &disk.backend.source else {
            return;
        };
        let image = image.clone();
        let is_plain_disk = disk.frontend.device == Some(Device::Disk) && disk.is_writable();
        // Whatever it is, the zeroes that were asked to be found have to go somewhere.
        let is_virtio_blk = disk.frontend.effective_bus() == TargetBus::Virtio;
        let finds_zeroes = spec.detect_zeroes == Some(DetectZeroes::Unmap) && disk.is_writable();
        let discard = self.decide_disk(
            index,
            DiskField::Discard,
            "discard",
            spec.discard,
            |planner| {
                let chosen = || choose(planner, &image, spec, is_virtio_blk);
                (is_plain_disk || finds_zeroes).then(chosen)
            },
        );
        self.disk(index).backend.discard = discard;
        self.plan_discard_no_unref(index, spec, &image);
        if discard == Some(Discard::Unmap) && is_plain_disk {
            self.plan_granularity(index, spec, &image);
        } else {
            let granularity = spec.discard_granularity;
            let at = vmdisk_model::FieldPath::Disk(index, DiskField::DiscardGranularity);
            self.note_asked(at, "discard-granularity", granularity);
            self.disk(index).frontend.discard_granularity = granularity.map(as_u32);
        }
    }

    fn plan_discard_no_unref(&mut self, index: usize, spec: &DiskSpec, image: &Image) {
        let disk = &self.domain.disks[index];
        // libvirt refuses it on what is only read.
        let is_unmapped = disk.backend.discard == Some(Discard::Unmap) && disk.is_writable();
        let is_preallocated = match &image.creation {
            Some(Creation::Qcow2(qcow2)) => matches!(
                qcow2.preallocation,
                Some(Qcow2Preallocation::Falloc | Qcow2Preallocation::Full)
            ),
            _ => false,
        };
        let asked = spec.discard_no_unref;
        let kept = self.decide_disk(index, DiskField::DiscardNoUnref, "discard-no-unref", asked, |planner| {
            let reason = if is_on_device(image) {
                "on a device, an image that moves discarded clusters can outgrow it"
            } else {
                "the image is preallocated, and a discarded cluster would move when it is written again"
            };
            let moves = is_preallocated || is_on_device(image);
            (is_unmapped && moves && keeps_clusters(planner)).then(|| Chosen::by_fact(true, reason))
        });
        self.disk(index).backend.discard_no_unref =
            kept.map(|on| if on { Switch::On } else { Switch::Off });
    }

    /// Sets the discard granularity of the storage, so that the guest sends no discards that have no effect.
    fn plan_granularity(&mut self, index: usize, spec: &DiskSpec, image: &Image) {
        let bus = self.domain.disks[index].frontend.effective_bus();
        let asked = spec.discard_granularity;
        let logical = spec.logical_block_size.unwrap_or(Bytes(512));
        let at = DiskField::DiscardGranularity;
        let size = self.decide_disk(index, at, "discard-granularity", asked, |planner| {
            if bus != TargetBus::Virtio && bus != TargetBus::Scsi {
                return None;
            }
            let (size, whose) = planner.granularity_below(spec, image)?;
            let is_fit = size.0 > 4096
                && size.0.is_multiple_of(logical.0.max(4096))
                && u32::try_from(size.0).is_ok();
            if !is_fit || !planner.host.may(Capability::LibvirtDiscardGranularity) {
                return None;
            }
            let reason =
                format!("{whose} gives back {size} at once, and a smaller discard frees nothing");
            Some(Chosen::by_fact(size, reason))
        });
        self.disk(index).frontend.discard_granularity = size.map(as_u32);
    }

    /// The smallest discard that frees something below an image, and whose it is.
    fn granularity_below(&self, spec: &DiskSpec, image: &Image) -> Option<(Bytes, String)> {
        if let Some(Creation::ThinVolume(thin)) = &image.creation {
            let chunk = match thin.chunk_size {
                Some(chunk) => chunk,
                None => self.host.chunk_of(&thin.name, &thin.pool)?,
            };
            return Some((chunk, format!("the pool {}", thin.pool)));
        }
        let device = self.device_below(spec, image)?;
        match &device.queue.discard_granularity {
            Fact::Known(bytes) if *bytes > 0 => Some((Bytes(*bytes), device.name().into_owned())),
            Fact::Known(_) | Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => None,
        }
    }

    /// The device that an image is, or one that shows what it will be like.
    pub(crate) fn device_below(&self, spec: &DiskSpec, image: &Image) -> Option<&'a BlockDevice> {
        self.host.device(image).or_else(|| match &spec.backend {
            BackendSpec::Lvm(lvm) if lvm.size.is_some() => self.host.kindred(&lvm.group, None),
            BackendSpec::LvmThin(thin) if thin.size.is_some() => {
                self.host.kindred(&thin.group, thin.pool.as_deref())
            }
            _ => None,
        })
    }
}

/// A size that was checked to fit.
fn as_u32(size: Bytes) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX)
}

/// True for a qcow2 image without a file around it.
fn is_on_device(image: &Image) -> bool {
    image.format == Some(Format::Qcow2) && matches!(image.protocol, Protocol::HostDevice { .. })
}

/// True if a qcow2 image can keep the clusters that the guest discards.
fn keeps_clusters(planner: &Planner<'_>) -> bool {
    planner.host.target.can(Capability::DiscardNoUnref).is_yes()
        && planner.host.may(Capability::LibvirtDiscardNoUnref)
}

fn choose(
    planner: &Planner<'_>,
    image: &Image,
    spec: &DiskSpec,
    is_virtio_blk: bool,
) -> Chosen<Discard> {
    if spec.detect_zeroes == Some(DetectZeroes::Unmap) {
        let reason = "detect-zeroes unmap only acts with it";
        return Chosen::by_fact(Discard::Unmap, reason)
            .instead_of("detect-zeroes-unmap-no-discard");
    }
    if is_virtio_blk && !planner.host.may(Capability::MachineVirtioBlkDiscard) {
        let reason = "this machine type hides discards from the guest";
        return Chosen::by_fact(Discard::Ignore, reason).instead_of("machine-type-old-defaults");
    }
    let thin = |whose: &str| {
        let reason = format!("{whose} frees what the guest deletes");
        Chosen::by_default(Discard::Unmap, reason).instead_of("discard-missing-thin")
    };
    if image.format == Some(Format::Qcow2) {
        let bug = Bug::Qcow2DiscardDuringCow;
        if let Answer::Yes(Basis::Assumed(qemu)) = planner.host.target.has_bug(bug) {
            let fix = bug.row().fix().unwrap_or_default();
            let reason = format!(
                "a discard can corrupt a qcow2 image in QEMU {qemu}; QEMU {fix} or later can free space"
            );
            return Chosen::by_fact(Discard::Ignore, reason).instead_of("qcow2-discard-corruption");
        }
        let is_kept = spec.discard_no_unref == Some(true) || keeps_clusters(planner);
        if is_on_device(image) && !is_kept {
            let reason =
                "discards make a qcow2 image outgrow its device, without `discard_no_unref`";
            return Chosen::by_fact(Discard::Ignore, reason)
                .instead_of("qcow2-on-device-fragments");
        }
        return thin("a qcow2 image");
    }
    if let Some(Creation::ThinVolume(_)) = image.creation {
        return thin("a thin volume");
    }
    if let Protocol::Network(source) = &image.protocol {
        return network::discard(source.protocol);
    }
    if let Protocol::Nvme(_) | Protocol::VhostVdpa { .. } = image.protocol {
        let reason = "QEMU passes discards to the device, which frees what it can";
        return Chosen::by_default(Discard::Unmap, reason);
    }
    match image.protocol.on_host() {
        Some(HostStorage::File(path)) => {
            if is_allocated(planner, image) {
                let reason = "every block is allocated, and a discard would free it";
                return Chosen::by_default(Discard::Ignore, reason);
            }
            let is_new = matches!(image.creation, Some(Creation::RawFile { .. }));
            let file = planner.host.index.file(path);
            let allocation = file.and_then(|file| file.allocation().known());
            let is_sparse = allocation.is_some_and(|it| it.is_sparse());
            if is_new || is_sparse {
                return thin("a sparse file");
            }
            let reason =
                "it is not known whether the file is sparse, and discards would make it sparse";
            Chosen::by_default(Discard::Ignore, reason)
        }
        Some(HostStorage::Device(_)) => on_device(planner, image, spec),
        None => Chosen::by_default(Discard::Ignore, "the type of the storage is not known"),
    }
}

/// Discards of a device whose spec does not make it known as thin.
fn on_device(planner: &Planner<'_>, image: &Image, spec: &DiskSpec) -> Chosen<Discard> {
    let Some(device) = planner.device_below(spec, image) else {
        let is_thin = matches!(spec.backend, BackendSpec::LvmThin(_));
        if is_thin {
            let reason = "a thin volume frees what the guest deletes";
            return Chosen::by_default(Discard::Unmap, reason).instead_of("discard-missing-thin");
        }
        if matches!(spec.backend, BackendSpec::Zvol(_)) {
            let reason = "a ZFS volume frees what the guest deletes";
            return Chosen::by_default(Discard::Unmap, reason).instead_of("discard-missing-thin");
        }
        let reason = "it is not known whether the device supports discards";
        return Chosen::by_default(Discard::Ignore, reason);
    };
    let name = device.name();
    if matches!(device.kind, BlockKind::LvmThin | BlockKind::Zvol) {
        let reason = format!("{name} is thin and frees what the guest deletes");
        return Chosen::by_fact(Discard::Unmap, reason).instead_of("discard-missing-thin");
    }
    let path = image.host_path().unwrap_or(&name);
    match planner.host.drops_discards(path, device) {
        Ok(Some(reason)) => Chosen::by_fact(Discard::Ignore, reason).instead_of("discard-dropped"),
        Ok(None) if planner.host.is_fast(image, Some(device)).is_some() => {
            let reason = format!("{name} supports discards, and flash lasts longer with them");
            Chosen::by_fact(Discard::Unmap, reason)
        }
        Ok(None) | Err(_) => {
            let reason = format!("{name} gains nothing by discards as far as is known");
            Chosen::by_default(Discard::Ignore, reason)
        }
    }
}
