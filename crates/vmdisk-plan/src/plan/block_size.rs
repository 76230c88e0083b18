//! Sector sizes that the guest sees.

use vmdisk_facts::{BlockDevice, Fact};
use vmdisk_model::{
    BackendSource, Bytes, Device, DiskField, Firmware, HostStorage, Image, TargetBus,
};

use super::choice::Chosen;
use super::guest::is_pc;
use super::host::Direct;
use super::planner::Planner;
use crate::spec::DiskSpec;

/// Sector sizes of the storage below a disk.
struct Below {
    logical: u64,
    physical: u64,
    whose: String,
}

impl Planner<'_> {
    /// Decides the sector sizes of a disk; the logical one of a disk that exists is never touched.
    pub(crate) fn plan_block_sizes(&mut self, index: usize, spec: &DiskSpec) {
        let disk = &self.domain.disks[index];
        let BackendSource::Image(image) = &disk.backend.source else {
            return;
        };
        let image = image.clone();
        let is_disk = disk.frontend.device == Some(Device::Disk);
        let is_direct = disk.backend.is_direct();
        let has_sizes = is_disk
            && match disk.frontend.effective_bus() {
                TargetBus::Virtio | TargetBus::Scsi | TargetBus::Usb | TargetBus::Nvme => true,
                // QEMU's ATA disks have logical sectors of 512 bytes, and floppies no others.
                TargetBus::Sata | TargetBus::Ide | TargetBus::Fdc | TargetBus::Sd => false,
                TargetBus::Xen | TargetBus::Uml => false,
            };
        let below = if is_disk {
            self.sectors_below(spec, &image, is_direct)
        } else {
            None
        };
        // A new disk has no partition table that another size would make unreadable.
        let is_new = spec.backend.is_made() && !is_overlay(&image);
        let is_booted = is_new && self.boots_with_seabios(index);
        let logical_field = DiskField::LogicalBlockSize;
        let asked = spec.logical_block_size;
        let logical = self.decide_disk(index, logical_field, "logical-block-size", asked, |_| {
            let below = below.as_ref().filter(|below| below.logical == 4096)?;
            if !is_new || !has_sizes {
                return None;
            }
            let whose = &below.whose;
            Some(if is_booted {
                let reason = format!(
                    "{whose} has sectors of 4096 bytes, but SeaBIOS boots from no such disk and may have to \
                     boot from this one; with `firmware: efi` they are 4096"
                );
                Chosen::by_fact(Bytes(512), reason)
            } else {
                let reason = format!(
                    "{whose} has sectors of 4096 bytes, and QEMU would read, change and write them for \
                     smaller requests"
                );
                Chosen::by_fact(Bytes(4096), reason).instead_of("guest-sector-512-on-4kn")
            })
        });
        let physical_field = DiskField::PhysicalBlockSize;
        let asked = spec.physical_block_size;
        let physical = self.decide_disk(index, physical_field, "physical-block-size", asked, |_| {
            if let Some(logical) = logical.filter(|size| size.0 > 512) {
                let reason = "QEMU refuses a physical sector that is smaller than a logical one";
                return Some(Chosen::by_default(logical, reason));
            }
            // On a disk that exists this is a hint without harm, and worth it only on large sectors.
            let is_worth_it =
                |below: &&Below| below.physical == 4096 && (is_new || has_sizes && below.logical == 4096);
            let below = below.as_ref().filter(is_worth_it)?;
            let reason = format!(
                "{} writes 4096 bytes at once, and a guest that knows aligns its requests to that",
                below.whose
            );
            let mut chosen = Chosen::by_fact(Bytes(4096), reason);
            chosen.rule = (below.logical == 4096).then_some("guest-sector-512-on-4kn");
            Some(chosen)
        });
        let as_u32 = |size: Bytes| u32::try_from(size.0).unwrap_or(512);
        let frontend = &mut self.disk(index).frontend;
        frontend.logical_block_size = logical.map(as_u32);
        frontend.physical_block_size = physical.map(as_u32);
    }

    /// True if SeaBIOS may have to boot from a disk: it is the firmware of a PC unless the spec asks for another.
    fn boots_with_seabios(&self, index: usize) -> bool {
        let has_seabios =
            is_pc(self.domain.architecture) && self.domain.firmware != Some(Firmware::Efi);
        has_seabios && (self.spec.disks[index].boot.is_some() || self.boot_disk == Some(index))
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
        match image.protocol.on_host() {
            Some(HostStorage::Device(_)) => of_device(self.device_below(spec, image)?),
            Some(HostStorage::File(path)) => {
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
                // The device that the file system is on, not what lies below it: encryption can have larger sectors
                // than the disk.
                let filesystem = self.host.index.filesystem_of(path).known()?;
                let devices = self.host.index.devices_of(filesystem).known()?;
                devices
                    .into_iter()
                    .filter_map(of_device)
                    .max_by_key(|below| (below.logical, below.physical))
            }
            None => None,
        }
    }
}

/// True if an image shows what lies below it: that one's partition table has sectors already.
fn is_overlay(image: &Image) -> bool {
    matches!(image.backing, vmdisk_model::Backing::Image(_))
}
