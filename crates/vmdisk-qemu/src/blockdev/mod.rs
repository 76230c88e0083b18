//! `-blockdev`: the nodes of a backend, base image first.

pub(crate) mod filter;
pub(crate) mod format;
mod image;
pub(crate) mod name_obstacle;
mod network;
mod node_options;
pub(crate) mod nodes;
mod one_node;
pub(crate) mod protocol;
pub(crate) mod read;
mod read_network;
mod read_protocol;
mod url;

use vmdisk_fields::{self as fields, DISK_FIELDS};
use vmdisk_model::{
    Backend, BackendSource, CacheSwitches, DetectZeroes, Device, Discard, Disk, DiskField,
    FieldPath, Fields, Image, Switch,
};

pub(crate) use image::Layer;
use node_options::NodeOptions;

use crate::names::{DEEPEST, NodeNames};
use crate::writer::Writer;

/// The cache switches to write; `None` if QEMU's default is correct.
pub(crate) fn written_cache(backend: &Backend) -> Option<CacheSwitches> {
    let effective = backend.effective_cache();
    // An unset mode on a shareable disk means uncached, which is not QEMU's default.
    let is_default = backend.cache.is_none() && effective == vmdisk_model::CacheMode::Writeback;
    (!is_default).then(|| effective.switches())
}

/// The supported value for zero detection: QEMU refuses `unmap` if discards are dropped, and libvirt then writes `on`
/// (`virDomainDiskGetDetectZeroesMode`).
fn written_detect_zeroes(backend: &Backend) -> Option<DetectZeroes> {
    match (backend.detect_zeroes?, backend.discard) {
        (DetectZeroes::Unmap, Some(Discard::Ignore) | None) => Some(DetectZeroes::On),
        (mode, _) => Some(mode),
    }
}

impl<'a> Writer<'a> {
    /// Writes the nodes of a disk and returns the name of the topmost, which the device uses; `None` for an empty
    /// drive, or after a problem.
    pub(crate) fn write_backend(
        &mut self,
        nth: usize,
        disk: &'a Disk,
        names: NodeNames<'_>,
    ) -> Option<String> {
        let backend = &disk.backend;
        let Backend {
            source,
            // Read through `written_cache`, here and for the device's `write-cache`.
            cache: _,
            aio,
            discard,
            // Read through `written_detect_zeroes`.
            detect_zeroes: _,
            discard_no_unref,
            metadata_cache_size,
            // Written by `write_filters`.
            copy_on_read: _,
            iotune: _,
            throttle_filters: _,
            // Reported by `check_lifetime`.
            snapshot: _,
            is_transient: _,
            // Read through `is_writable`.
            is_read_only: _,
            // The device's `share-rw`.
            is_shareable: _,
            // Settings of a transient disk, which is refused or handled by libvirt.
            share_backing: _,
            // libvirt handles a missing source before QEMU starts.
            startup_policy: _,
        } = backend;
        let at = |field| FieldPath::Disk(nth, field);
        self.check_lifetime(nth, backend);
        let image = match source {
            BackendSource::Image(image) => image,
            BackendSource::Empty => {
                self.empty_drive(nth, disk);
                return None;
            }
            // The disk has no nodes: the daemon does the I/O.
            BackendSource::VhostUser(_) => return None,
        };
        let options = NodeOptions {
            cache: written_cache(backend),
            discard: *discard,
        };
        let is_writable = disk.is_writable();
        let chain: Vec<&Image> = image.chain().collect();
        if chain.len() > DEEPEST {
            let message = format!("a chain of more than {DEEPEST} images cannot be written");
            self.problem(at(DiskField::Source), message);
            return None;
        }
        let detect_zeroes = written_detect_zeroes(backend);
        let device = disk.frontend.effective_device();
        let mut below: Option<String> = None;
        for (depth, image) in chain.iter().enumerate().rev() {
            let layer = Layer {
                nth,
                depth,
                image,
                is_data: false,
                names: names.image(depth),
                options,
                is_writable: is_writable && depth == 0,
                is_optical: device == Device::Cdrom,
                is_floppy: device == Device::Floppy,
                aio: *aio,
                detect_zeroes,
                metadata_cache_size: match depth {
                    0 => *metadata_cache_size,
                    _ => image.metadata_cache_size,
                },
                discard_no_unref: discard_no_unref.filter(|_| depth == 0),
                below: below.take(),
            };
            below = Some(self.write_image(&layer));
        }
        Some(self.write_filters(nth, backend, names, options, is_writable, below?))
    }

    /// Writes the filters of a disk on its top image, and returns the name of the topmost node.
    fn write_filters(
        &mut self,
        nth: usize,
        backend: &'a Backend,
        names: NodeNames<'_>,
        options: NodeOptions,
        is_writable: bool,
        mut top: String,
    ) -> String {
        let at = |field| FieldPath::Disk(nth, field);
        if backend.copy_on_read == Some(Switch::On) {
            top = self.write_copy_on_read(nth, names, options, is_writable, &top);
        }
        if let Some(iotune) = &backend.iotune {
            let group = self.write_throttle_group(nth, names.stem, iotune);
            top = self.write_throttle(nth, names, options, is_writable, &group, &top);
        }
        if backend.iotune.is_some() && !backend.throttle_filters.is_empty() {
            self.problem(
                at(DiskField::ThrottleFilters),
                "a disk can have its own limits or throttle groups as filters, not both",
            );
        }
        top = self.write_throttle_filters(
            nth,
            &backend.throttle_filters,
            names,
            options,
            is_writable,
            top,
        );
        top
    }

    /// Reports settings that libvirt implements at the start or during a snapshot, for which QEMU has no option.
    fn check_lifetime(&mut self, nth: usize, backend: &Backend) {
        let at = |field| FieldPath::Disk(nth, field);
        if backend.snapshot.is_some() {
            let message = "`snapshot` is not written: only libvirt decides how a snapshot of the guest treats the disk";
            self.leave_out(at(DiskField::Snapshot), message);
        }
        if backend.is_transient {
            self.problem_with_help(
                at(DiskField::Transient),
                "a transient disk needs a new overlay at each start, which QEMU cannot create for -blockdev",
                "create an overlay with qemu-img create and delete it afterwards",
            );
        }
    }

    fn empty_drive(&mut self, nth: usize, disk: &Disk) {
        let at = |field| FieldPath::Disk(nth, field);
        match disk.frontend.effective_device() {
            Device::Cdrom | Device::Floppy => {}
            Device::Disk | Device::Lun => {
                self.problem_with_help(
                    at(DiskField::Source),
                    "the disk has no source, and only drives with removable media can be empty",
                    "name a file or device",
                );
            }
        }
        for field in DISK_FIELDS {
            if fields::disk(*field).is_of_the_medium && disk.has(*field) {
                self.leave_out(
                    at(*field),
                    "it is a setting of the medium, but the drive is empty",
                );
            }
        }
    }
}
