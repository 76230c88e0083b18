//! `<driver>` of a disk: options of the frontend and of the backend, in one element.

use vmdisk_model::{BackendSource, Disk, DiskField, FieldPath, Format};
use vmdisk_rule::reading::INVALID_VALUE;

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::vocabulary::{DRIVER, Field};
use crate::writer::Writer;
use crate::{iothread_mapping, metadata_cache, plain, statistics};

const AT: UnmodeledPath = UnmodeledPath::path("driver");
const METADATA_CACHE: metadata_cache::Paths =
    ["driver/metadata_cache", "driver/metadata_cache/max_size"];

/// Reads the driver element, after the source, which determines if a format is possible.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    element: &mut Element<'_>,
    disk: &mut Disk,
    kept: &mut UnmodeledContent,
) {
    let Some(mut driver) = reader.child(element, "driver") else {
        return;
    };
    // The writer always adds `qemu`.
    driver.take("name", |name| (name == "qemu").then_some(()));
    report_foreign_name(reader, &driver);
    if let BackendSource::Image(image) = &mut disk.backend.source {
        image.format = driver.take("type", Format::from_word);
    }
    plain::read_attributes(&mut driver, disk);
    let (frontend, backend) = (&mut disk.frontend, &mut disk.backend);
    frontend.iothread_mapping = iothread_mapping::read(reader, &mut driver, kept);
    backend.metadata_cache_size = metadata_cache::read(reader, &mut driver, METADATA_CACHE, kept);
    frontend.statistics = statistics::read(reader, &mut driver, kept);
    kept.note(AT, reader.close(driver));
}

/// Reports a driver of another hypervisor: Xen has `phy`, `tap` and `file`.
fn report_foreign_name(reader: &mut Reader<'_>, driver: &Element<'_>) {
    let foreign = driver.peek("name").filter(|name| *name != "qemu");
    if let (true, Some(name), Some(span)) =
        (reader.is_run_by_qemu, foreign, driver.value_span("name"))
    {
        let at = FieldPath::Disk(driver.owner.index, DiskField::DriverName);
        let message = format!("invalid driver `{name}`, expected `qemu`");
        reader.problem(&INVALID_VALUE, at, span, message);
    }
}

/// Writes the driver element.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, disk: &Disk, kept: &'k UnmodeledContent) {
    let Disk { frontend, backend } = disk;
    writer.start("driver", kept.at(AT));
    writer.attribute("name", "qemu");
    writer.optional("type", backend.image().and_then(|image| image.format));
    // The daemon's own options determine how it opens the image; libvirt refuses the setting.
    let is_daemons = backend
        .socket()
        .is_some_and(|socket| socket.served.is_some());
    plain::write_attributes(writer, &DRIVER, disk, |field| {
        is_daemons
            && matches!(
                field,
                Field::Disk(
                    DiskField::Cache
                        | DiskField::Aio
                        | DiskField::Discard
                        | DiskField::DetectZeroes
                )
            )
    });
    iothread_mapping::write(writer, &frontend.iothread_mapping, kept);
    metadata_cache::write(writer, backend.metadata_cache_size, METADATA_CACHE, 0, kept);
    statistics::write(writer, &frontend.statistics, kept);
    writer.end();
}
