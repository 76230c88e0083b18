//! libvirt's defaults for a disk itself.

use vmdisk_model::{
    BackendSource, Device, Disk, DiskField, FieldPath, Format, ImageField, Protocol, Snapshot,
    TargetBus,
};

use super::Resolved;
use crate::unmodeled::UnmodeledPath;

const DRIVER: UnmodeledPath = UnmodeledPath::path("driver");

const RAW: &str = "no format is set, and libvirt does not probe the image";

/// Fills in device, bus, format, read-only and snapshot of every disk.
pub(super) fn resolve(resolved: &mut Resolved) {
    for nth in 0..resolved.domain.disks.len() {
        let at = |field| FieldPath::Disk(nth, field);
        let Disk { frontend, backend } = &mut resolved.domain.disks[nth];
        let mut decided: Vec<(FieldPath, String, &'static str)> = Vec::new();
        let device = *frontend.device.get_or_insert_with(|| {
            let reason = "the default type of device";
            decided.push((at(DiskField::Device), Device::Disk.to_string(), reason));
            Device::Disk
        });
        if frontend.bus.is_none() {
            let target = frontend.target.as_deref().unwrap_or_default();
            let bus = TargetBus::default_for(device, target);
            let reason = match (device, TargetBus::of_target_name(target)) {
                (Device::Floppy, _) => "a floppy drive needs the floppy controller",
                (_, Some(_)) => "the prefix of the target's name selects it",
                (_, None) => "the target's name selects no bus",
            };
            frontend.bus = Some(bus);
            decided.push((at(DiskField::TargetBus), bus.to_string(), reason));
        }
        if device == Device::Cdrom && !backend.is_read_only {
            backend.is_read_only = true;
            let reason = "a CD drive is read-only";
            decided.push((at(DiskField::ReadOnly), "yes".to_owned(), reason));
        }
        let mut is_without_format = false;
        match &mut backend.source {
            BackendSource::Image(image) => {
                // For a volume, libvirt asks the pool when the guest starts.
                let is_volume = matches!(image.protocol, Protocol::Volume(_));
                if image.format.is_none() && !is_volume {
                    image.format = Some(Format::Raw);
                    let at = FieldPath::Image(nth, 0, ImageField::Format);
                    decided.push((at, Format::Raw.to_string(), RAW));
                }
            }
            BackendSource::Empty => is_without_format = true,
            BackendSource::VhostUser(_) => {
                is_without_format = true;
                if backend.snapshot.is_none() {
                    backend.snapshot = Some(Snapshot::No);
                    let reason = "only its daemon can copy the disk";
                    decided.push((at(DiskField::Snapshot), Snapshot::No.to_string(), reason));
                }
            }
        }
        resolved.decisions.extend(
            decided
                .into_iter()
                .map(|(at, value, reason)| super::Decision { at, value, reason }),
        );
        let is_kept = resolved
            .kept
            .disk(nth)
            .at(DRIVER)
            .position("type")
            .is_some();
        if is_without_format && !is_kept {
            resolved.keep_attribute(nth, DRIVER, "type", Format::Raw.as_str());
            let at = FieldPath::Image(nth, 0, ImageField::Format);
            resolved.decide(at, Format::Raw, RAW);
        }
    }
}
