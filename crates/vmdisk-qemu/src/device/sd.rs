//! SD cards: the only disks that need `-drive`, because their slot is built in.

use vmdisk_fields::{self as fields, DISK_FIELDS};
use vmdisk_model::{
    BackendSource, Backing, CacheMode, Disk, DiskField, FieldPath, Fields, Format, Geometry, Image,
    ImageField, Protocol, Switch, target_number,
};

use crate::argument::QemuOption;
use crate::blockdev::format::driver as format_driver;
use crate::board::Board;
use crate::key_value::KeyValue;
use crate::options::Style;
use crate::writer::Writer;

impl Writer<'_> {
    /// Writes a disk in a slot of the board.
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
        let backend = &disk.backend;
        let source = &backend.source;
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
            // A path that starts like a protocol remains a path.
            Style::Readable => KeyValue::default()
                .with("file.driver", driver)
                .with("file.filename", path),
        };
        drive = drive
            .with("format", format)
            .with("if", "sd")
            .with("index", index.to_string());
        let key = |field| fields::disk(field).node.unwrap_or_default();
        let words = [
            ("readonly", backend.is_read_only.then_some("on")),
            ("cache", backend.cache.map(CacheMode::as_wire)),
            (
                key(DiskField::DetectZeroes),
                backend.detect_zeroes.map(|mode| mode.as_wire()),
            ),
            (
                key(DiskField::Discard),
                backend.discard.map(|mode| mode.as_wire()),
            ),
            (key(DiskField::Aio), backend.aio.map(|mode| mode.as_wire())),
        ];
        for (key, word) in words {
            if let Some(word) = word {
                drive = drive.with(key, word);
            }
        }
        self.push_pairs(QemuOption::Drive, drive, at(DiskField::Disk));
    }

    /// True for boards that are known to have no slot; libvirt writes the card anyway.
    fn has_no_slot(&self) -> bool {
        !matches!(
            (self.style(), self.machine().board),
            (Style::Libvirt, _)
                | (
                    Style::Readable,
                    Board::Mmio | Board::OtherPci | Board::Unknown
                )
        )
    }

    /// The driver and path of a source that is one file or device; reports any other source.
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
                _ => None,
            },
            BackendSource::VhostUser(_) | BackendSource::Empty => None,
        };
        let is_path = |path: &str| path.starts_with('/') || self.style() == Style::Readable;
        let plain = plain.filter(|(_, path)| is_path(path));
        if plain.is_none() {
            let message = "an SD card needs one file or device of the host, with its absolute path";
            self.problem(FieldPath::Disk(nth, DiskField::Source), message);
        }
        plain
    }

    /// Reports settings that require a device.
    #[allow(clippy::too_many_lines, reason = "a row for each field")]
    fn refuse_beyond_sd(&mut self, nth: usize, disk: &Disk) {
        let backend = &disk.backend;
        if backend.image().is_some_and(has_more_than_a_path) {
            self.refuse_on_sd(nth, DiskField::Source);
        }
        for field in DISK_FIELDS {
            // Set to an empty value, or an option of `-drive`.
            let is_harmless = *field == DiskField::Cache
                || *field == DiskField::CopyOnRead && backend.copy_on_read == Some(Switch::Off)
                || *field == DiskField::Geometry
                    && disk.frontend.geometry == Some(Geometry::default());
            if disk.has(*field) && fields::disk(*field).is_of_the_device && !is_harmless {
                self.refuse_on_sd(nth, *field);
            }
        }
    }

    fn refuse_on_sd(&mut self, nth: usize, field: DiskField) {
        let at = FieldPath::Disk(nth, field);
        let option = fields::disk(field).libvirt.name();
        self.problem(at, format!("`{option}` is not supported by an SD card"));
    }
}

/// True if an image is more than a format on a path.
fn has_more_than_a_path(image: &Image) -> bool {
    let Image {
        format: _,
        protocol: _,
        // Checked together with the path.
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
