//! Sector sizes that the guest sees.

use vmdisk_facts::{BlockDevice, Fact};
use vmdisk_model::{
    BackendSource, Bytes, Device, DiskField, FieldPath, Image, Protocol, TargetBus,
};

use super::host::Direct;
use super::planner::{Chosen, Planner};
use crate::spec::DiskSpec;

/// Sector sizes of the storage below a disk.
struct Below {
    logical: u64,
    physical: u64,
    whose: String,
}

impl Planner<'_> {
    /// Decides the sector sizes of a disk; those of one that exists are never touched.
    pub(crate) fn plan_block_sizes(&mut self, index: usize, spec: &DiskSpec) {
        let disk = &self.domain.disks[index];
        let BackendSource::Image(image) = &disk.backend.source else {
            return;
        };
        let image = image.clone();
        let bus = disk.frontend.effective_bus();
        let is_disk = disk.frontend.device == Some(Device::Disk);
        let is_direct = disk.backend.is_direct();
        let is_new = spec.backend.is_made() && is_disk && !is_overlay(&image);
        // A new disk has no partition table that another size would make unreadable.
        let below = if is_new {
            self.sectors_below(spec, &image, is_direct)
        } else {
            None
        };
        let logical_field = DiskField::LogicalBlockSize;
        let asked = spec.logical_block_size;
        let logical = self.decide_disk(index, logical_field, "logical-block-size", asked, |_| {
            let below = below.as_ref()?;
            let is_possible = match bus {
                TargetBus::Virtio | TargetBus::Scsi | TargetBus::Usb | TargetBus::Nvme => true,
                // QEMU's ATA disks have sectors of 512 bytes.
                TargetBus::Sata | TargetBus::Ide | TargetBus::Fdc | TargetBus::Sd => false,
                TargetBus::Xen | TargetBus::Uml => false,
            };
            (below.logical == 4096 && is_possible).then(|| {
                let reason = format!(
                    "{} has sectors of 4096 bytes, and QEMU would read, change and write them for smaller \
                     requests; UEFI boots from such a disk, SeaBIOS does not",
                    below.whose
                );
                Chosen::by_fact(Bytes(4096), reason).instead_of("guest-sector-512-on-4kn")
            })
        });
        let physical_field = DiskField::PhysicalBlockSize;
        let asked = spec.physical_block_size;
        let physical =
            self.decide_disk(index, physical_field, "physical-block-size", asked, |_| {
                if let Some(logical) = logical.filter(|size| size.0 > 512) {
                    let reason =
                        "QEMU refuses a physical sector that is smaller than a logical one";
                    return Some(
                        Chosen::by_default(logical, reason).instead_of("logical-gt-physical"),
                    );
                }
                let below = below.as_ref().filter(|below| below.physical == 4096)?;
                let reason = format!(
                    "{} writes 4096 bytes at once, and the guest aligns its partitions to that",
                    below.whose
                );
                Some(Chosen::by_fact(Bytes(4096), reason).instead_of("guest-physical-512-on-512e"))
            });
        // QEMU's property and libvirt's check take both or neither.
        let logical = match (logical, physical) {
            (None, Some(_)) => self.decide(
                FieldPath::Disk(index, logical_field),
                "logical-block-size",
                None,
                |_| Some(Chosen::by_default(Bytes(512), "what QEMU takes too")),
            ),
            (logical, _) => logical,
        };
        let as_u32 = |size: Bytes| u32::try_from(size.0).unwrap_or(512);
        let frontend = &mut self.disk(index).frontend;
        frontend.logical_block_size = logical.map(as_u32);
        frontend.physical_block_size = physical.map(as_u32);
    }

    fn sectors_below(&self, spec: &DiskSpec, image: &Image, is_direct: bool) -> Option<Below> {
        let of_device = |device: &BlockDevice| {
            let known = |size: &Fact<u64>| size.clone().known();
            let logical = known(&device.queue.logical)?;
            Some(Below {
                logical,
                physical: known(&device.queue.physical).unwrap_or(logical),
                whose: device.name().into_owned(),
            })
        };
        match &image.protocol {
            Protocol::HostDevice { .. } => of_device(self.device_below(spec, image)?),
            Protocol::File { path } => {
                if let Direct::Works {
                    alignment: Some(offset @ 4096..),
                    ..
                } = self.host.direct_io(image)
                    && is_direct
                {
                    return Some(Below {
                        logical: offset,
                        physical: offset,
                        whose: "direct I/O there".to_owned(),
                    });
                }
                let leaves = self.host.index.leaves_of(path).known()?;
                leaves
                    .into_iter()
                    .filter_map(of_device)
                    .max_by_key(|below| (below.logical, below.physical))
            }
            Protocol::Other(_) => None,
        }
    }
}

/// True if an image shows what lies below it: that one's partition table has sectors already.
fn is_overlay(image: &Image) -> bool {
    matches!(image.backing, vmdisk_model::Backing::Image(_))
}
