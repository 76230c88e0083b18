//! `<driver>` of a disk: options of the frontend and of the backend, in one element.

use vmdisk_model::{
    AioMode, Backend, BackendSource, Bytes, CacheMode, DetectZeroes, Discard, DiskField,
    ErrorPolicy, FieldPath, Format, Frontend, IoThreadId, ReadErrorPolicy, Switch,
};
use vmdisk_source::ProblemKind;

use crate::element::Element;
use crate::kept::{KeptAt, KeptInside};
use crate::reader::Reader;
use crate::value::{scaled, unsigned32};
use crate::writer::Writer;
use crate::{iothread_mapping, metadata_cache, statistics, virtio_options};

const AT: KeptAt = KeptAt::path("driver");
const METADATA_CACHE: metadata_cache::Paths =
    ["driver/metadata_cache", "driver/metadata_cache/max_size"];

/// Reads the driver element; returns the format, if the source can have one.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_, '_>,
    frontend: &mut Frontend,
    backend: &mut Backend,
    has_format: bool,
    kept: &mut KeptInside,
) -> Option<Format> {
    let node = disk.child("driver")?;
    let mut driver = reader.open_child(disk, node, disk.whose);
    // The writer says `qemu` by itself.
    driver.take("name", |name| (name == "qemu").then_some(()));
    report_foreign_name(reader, &driver);
    let format = if has_format {
        driver.take("type", Format::from_wire)
    } else {
        None
    };
    backend.cache = driver.take("cache", CacheMode::from_wire);
    frontend.error_policy = driver.take("error_policy", ErrorPolicy::from_wire);
    frontend.read_error_policy = driver.take("rerror_policy", ReadErrorPolicy::from_wire);
    backend.aio = driver.take("io", AioMode::from_wire);
    backend.copy_on_read = driver.take("copy_on_read", Switch::from_wire);
    backend.discard = driver.take("discard", Discard::from_wire);
    frontend.iothread = driver.take("iothread", unsigned32).map(IoThreadId);
    backend.detect_zeroes = driver.take("detect_zeroes", DetectZeroes::from_wire);
    backend.discard_no_unref = driver.take("discard_no_unref", Switch::from_wire);
    frontend.ioeventfd = driver.take("ioeventfd", Switch::from_wire);
    frontend.event_idx = driver.take("event_idx", Switch::from_wire);
    frontend.virtio = virtio_options::read(&mut driver);
    frontend.queues = driver.take("queues", unsigned32);
    frontend.queue_size = driver.take("queue_size", unsigned32);
    frontend.iothread_mapping = iothread_mapping::read(reader, &mut driver, kept);
    backend.metadata_cache_size = metadata_cache::read(reader, &mut driver, METADATA_CACHE, kept);
    frontend.statistics = statistics::read(reader, &mut driver, kept);
    kept.note(AT, reader.close(driver));
    format
}

/// Reports a driver of another hypervisor: Xen has `phy`, `tap` and `file`.
fn report_foreign_name(reader: &mut Reader<'_>, driver: &Element<'_, '_>) {
    let foreign = driver.peek("name").filter(|name| *name != "qemu");
    if let (true, Some(name), Some(span)) =
        (reader.is_run_by_qemu, foreign, driver.value_span("name"))
    {
        let at = FieldPath::Disk(driver.whose.index, DiskField::DriverName);
        let message = format!("`{name}` is no driver of QEMU, expected `qemu`");
        reader.problem(ProblemKind::InvalidValue, at, span, message);
    }
}

/// Reads a number with a `unit`: the size, or else the text to be kept.
pub(crate) fn read_scaled(
    reader: &mut Reader<'_>,
    element: &mut Element<'_, '_>,
    default_unit: &str,
    at: FieldPath,
) -> (Option<Bytes>, Option<String>) {
    let text = element.content();
    let unit = element.peek("unit").unwrap_or(default_unit);
    if let Some(size) = scaled(text.trim(), unit) {
        element.take_text("unit");
        return (Some(size), None);
    }
    if let Err(error) = Bytes::scale(unit) {
        let span = element.value_span("unit").unwrap_or(element.tag);
        reader.problem(ProblemKind::InvalidValue, at, span, error.to_string());
    } else if crate::value::unsigned64(text.trim()).is_some() {
        let message = format!("{} {unit} are more than 2^64 - 1 bytes", text.trim());
        reader.problem(ProblemKind::InvalidValue, at, element.tag, message);
    }
    // A number that is none has been reported along the table.
    (None, Some(text).filter(|text| !text.is_empty()))
}

/// Writes a size, in KiB where it is a whole number of them.
pub(crate) fn write_scaled<'k>(
    writer: &mut Writer<'k>,
    name: &'static str,
    size: Option<Bytes>,
    kept: &'k KeptInside,
    at: KeptAt,
) {
    let parts = kept.at(at);
    match size {
        Some(Bytes(bytes)) => {
            writer.start(name, parts);
            let (unit, count) = if bytes.is_multiple_of(Bytes::KIB) {
                ("KiB", bytes / Bytes::KIB)
            } else {
                ("bytes", bytes)
            };
            writer.attribute("unit", unit);
            writer.end_with_text(Some(count.to_string()));
        }
        None if parts.is_empty() => {}
        None => {
            writer.start(name, parts);
            writer.end_with_text(parts.text.clone());
        }
    }
}

/// What of a frontend and backend is written on the driver element; the rest is ignored here.
pub(crate) struct Driver<'m> {
    pub(crate) format: Option<Format>,
    pub(crate) frontend: &'m Frontend,
    pub(crate) backend: &'m Backend,
}

/// Writes the driver element.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, driver: &Driver<'_>, kept: &'k KeptInside) {
    let Driver {
        format,
        frontend,
        backend,
    } = driver;
    let Backend {
        source, // written by `source`
        cache,
        aio,
        discard,
        detect_zeroes,
        copy_on_read,
        discard_no_unref,
        metadata_cache_size,
        iotune: _, // written by `disk`, as all that follow
        throttle_filters: _,
        snapshot: _,
        is_read_only: _,
        is_shareable: _,
        is_transient: _,
        share_backing: _,
        startup_policy: _,
    } = backend;
    writer.start("driver", kept.at(AT));
    writer.attribute("name", "qemu");
    writer.optional("type", *format);
    // How a daemon opens the image is said to the daemon; libvirt refuses it here.
    let is_daemons = matches!(source, BackendSource::VhostUser(socket) if socket.served.is_some());
    writer.optional("cache", cache.filter(|_| !is_daemons));
    writer.optional("error_policy", frontend.error_policy);
    writer.optional("rerror_policy", frontend.read_error_policy);
    writer.optional("io", aio.filter(|_| !is_daemons));
    writer.optional("ioeventfd", frontend.ioeventfd);
    writer.optional("event_idx", frontend.event_idx);
    writer.optional("copy_on_read", *copy_on_read);
    writer.optional("discard", discard.filter(|_| !is_daemons));
    writer.optional("iothread", frontend.iothread);
    writer.optional("detect_zeroes", detect_zeroes.filter(|_| !is_daemons));
    writer.optional("discard_no_unref", *discard_no_unref);
    writer.optional("queues", frontend.queues);
    writer.optional("queue_size", frontend.queue_size);
    virtio_options::write(writer, &frontend.virtio);
    iothread_mapping::write(writer, &frontend.iothread_mapping, kept);
    metadata_cache::write(writer, *metadata_cache_size, METADATA_CACHE, 0, kept);
    statistics::write(writer, &frontend.statistics, kept);
    writer.end();
}
