//! SD cards: the one kind of disk that `-drive` alone reaches, because its slot is soldered on.

use vmdisk_model::{
    Backend, BackendSource, Backing, CacheMode, Disk, DiskField, FieldPath, Format, Frontend,
    Geometry, Image, ImageField, Protocol, Statistics, Switch, VirtioOptions, target_number,
};

use crate::argument::QemuOption;
use crate::blockdev::format::driver as format_driver;
use crate::board::Board;
use crate::key_value::KeyValue;
use crate::options::Style;
use crate::writer::Writer;

impl Writer<'_> {
    /// Writes a disk that sits in a slot of the board.
    pub(crate) fn write_sd_card(&mut self, nth: usize, disk: &Disk) {
        let at = |field| FieldPath::Disk(nth, field);
        if self.has_no_slot() {
            self.problem_with_help(
                at(DiskField::TargetBus),
                format!("{} has no slot for an SD card", self.machine().board.name()),
                "use another bus",
            );
            return;
        }
        self.refuse_beyond_sd(nth, disk);
        let Backend {
            source,
            cache,
            aio,
            discard,
            detect_zeroes,
            is_read_only,
            // Noted by `refuse_beyond_sd`, or not about the command line.
            copy_on_read: _,
            discard_no_unref: _,
            metadata_cache_size: _,
            iotune: _,
            throttle_filters: _,
            snapshot: _,
            is_shareable: _,
            is_transient: _,
            share_backing: _,
            startup_policy: _,
        } = &disk.backend;
        let Some((driver, path)) = self.plain_file(nth, source) else {
            return;
        };
        let format = match source {
            BackendSource::Image(image) => image.format.unwrap_or(Format::Raw),
            BackendSource::VhostUser(_) | BackendSource::Empty => Format::Raw,
        };
        let format = format_driver(format).unwrap_or_else(|reason| {
            let at = FieldPath::Image(nth, 0, ImageField::Format);
            self.problem(at, format!("format '{format}': {reason}"));
            format.as_wire()
        });
        let target = disk.frontend.target.as_deref().unwrap_or_default();
        let index = target_number(target).unwrap_or_default();
        let mut drive = match self.style() {
            Style::Libvirt => KeyValue::default().with("file", path),
            // A path that begins like a protocol stays a path.
            Style::Readable => KeyValue::default()
                .with("file.driver", driver)
                .with("file.filename", path),
        };
        drive = drive
            .with("format", format)
            .with("if", "sd")
            .with("index", index.to_string());
        let words = [
            ("readonly", is_read_only.then_some("on")),
            ("cache", cache.map(CacheMode::as_wire)),
            ("detect-zeroes", detect_zeroes.map(|mode| mode.as_wire())),
            ("discard", discard.map(|mode| mode.as_wire())),
            ("aio", aio.map(|mode| mode.as_wire())),
        ];
        for (key, word) in words {
            if let Some(word) = word {
                drive = drive.with(key, word);
            }
        }
        self.push_pairs(QemuOption::Drive, drive, at(DiskField::Disk));
    }

    /// True for boards that are known to have no slot; libvirt writes the card all the same.
    fn has_no_slot(&self) -> bool {
        match (self.style(), self.machine().board) {
            (Style::Libvirt, _)
            | (Style::Readable, Board::Mmio | Board::OtherPci | Board::Unknown) => false,
            (
                Style::Readable,
                Board::Q35 | Board::I440fx | Board::PcieVirt | Board::Pseries | Board::Ccw,
            ) => true,
        }
    }

    /// The driver and path of a source that is one file or device; notes it if it is another.
    fn plain_file<'s>(
        &mut self,
        nth: usize,
        source: &'s BackendSource,
    ) -> Option<(&'static str, &'s str)> {
        let plain = match source {
            BackendSource::Image(image) => match (&image.protocol, &image.backing) {
                (Protocol::File { path }, Backing::Unspecified | Backing::Terminated) => {
                    Some(("file", path.as_str()))
                }
                (Protocol::HostDevice { path }, Backing::Unspecified | Backing::Terminated) => {
                    Some(("host_device", path.0.as_str()))
                }
                (
                    Protocol::File { .. }
                    | Protocol::HostDevice { .. }
                    | Protocol::Directory { .. }
                    | Protocol::Network(_)
                    | Protocol::Volume(_)
                    | Protocol::Nvme(_)
                    | Protocol::VhostVdpa { .. }
                    | Protocol::Other(_),
                    _,
                ) => None,
            },
            BackendSource::VhostUser(_) | BackendSource::Empty => None,
        };
        let is_path = |path: &str| path.starts_with('/') || self.style() == Style::Readable;
        let plain = plain.filter(|(_, path)| is_path(path));
        if plain.is_none() {
            let message = "an SD card is one file or device of the host, by its full path";
            self.problem(FieldPath::Disk(nth, DiskField::Source), message);
        }
        plain
    }

    /// Notes what only disks with a device of their own have.
    #[allow(clippy::too_many_lines, reason = "a row for each field")]
    fn refuse_beyond_sd(&mut self, nth: usize, disk: &Disk) {
        let Frontend {
            device: _,
            target: _,
            bus: _,
            model,
            rawio: _,
            sgio: _,
            ioeventfd,
            event_idx,
            virtio,
            statistics,
            queues,
            queue_size,
            iothread,
            iothread_mapping,
            geometry,
            logical_block_size,
            physical_block_size,
            discard_granularity,
            error_policy,
            read_error_policy,
            serial,
            wwn,
            vendor,
            product,
            rotation_rate,
            removable,
            tray: _,
            dpofua,
            boot_order,
            loadparm,
            address,
            alias: _,
            acpi_index,
        } = &disk.frontend;
        let backend = &disk.backend;
        let has_more = match &backend.source {
            BackendSource::Image(image) => has_more_than_a_path(image),
            BackendSource::VhostUser(_) | BackendSource::Empty => false,
        };
        for (field, is_set) in [
            (DiskField::Source, has_more),
            (DiskField::Model, model.is_some()),
            (DiskField::IoEventFd, ioeventfd.is_some()),
            (DiskField::EventIdx, event_idx.is_some()),
            (DiskField::Iommu, *virtio != VirtioOptions::default()),
            (DiskField::Statistics, *statistics != Statistics::default()),
            (DiskField::Queues, queues.is_some()),
            (DiskField::QueueSize, queue_size.is_some()),
            (DiskField::IoThread, iothread.is_some()),
            (DiskField::IoThreadMapping, !iothread_mapping.is_empty()),
            (
                DiskField::Geometry,
                geometry.is_some_and(|geometry| geometry != Geometry::default()),
            ),
            (DiskField::LogicalBlockSize, logical_block_size.is_some()),
            (DiskField::PhysicalBlockSize, physical_block_size.is_some()),
            (DiskField::DiscardGranularity, discard_granularity.is_some()),
            (DiskField::ErrorPolicy, error_policy.is_some()),
            (DiskField::ReadErrorPolicy, read_error_policy.is_some()),
            (DiskField::Serial, serial.is_some()),
            (DiskField::Wwn, wwn.is_some()),
            (DiskField::Vendor, vendor.is_some()),
            (DiskField::Product, product.is_some()),
            (DiskField::RotationRate, rotation_rate.is_some()),
            (DiskField::Removable, removable.is_some()),
            (DiskField::DpoFua, dpofua.is_some()),
            (DiskField::BootOrder, boot_order.is_some()),
            (DiskField::LoadParm, loadparm.is_some()),
            (DiskField::Address, address.is_some()),
            (DiskField::AcpiIndex, acpi_index.is_some()),
            (
                DiskField::CopyOnRead,
                backend.copy_on_read == Some(Switch::On),
            ),
            (
                DiskField::DiscardNoUnref,
                backend.discard_no_unref.is_some(),
            ),
            (
                DiskField::MetadataCacheSize,
                backend.metadata_cache_size.is_some(),
            ),
            (DiskField::Iotune, backend.iotune.is_some()),
            (
                DiskField::ThrottleFilters,
                !backend.throttle_filters.is_empty(),
            ),
            (DiskField::Shareable, backend.is_shareable),
            (DiskField::Transient, backend.is_transient),
        ] {
            if is_set {
                self.problem(
                    FieldPath::Disk(nth, field),
                    "an SD card does not have this option",
                );
            }
        }
    }
}

/// True if an image is more than a format on a path.
fn has_more_than_a_path(image: &Image) -> bool {
    let Image {
        format: _,
        protocol: _,
        // Judged with the path.
        backing: _,
        slice,
        data_file,
        encryption,
        authentication,
        reservations,
        fd_group,
        metadata_cache_size,
        creation: _,
    } = image;
    slice.is_some()
        || data_file.is_some()
        || encryption.is_some()
        || authentication.is_some()
        || reservations.is_some()
        || fd_group.is_some()
        || metadata_cache_size.is_some()
}
