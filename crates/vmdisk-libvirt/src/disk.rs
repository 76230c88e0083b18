//! `<disk>`: a frontend and a backend.

use roxmltree::Node;
use vmdisk_model::{
    BackendSource, Device, Disk, DiskField, FieldPath, Frontend, ImageField, Sgio, Snapshot,
    VirtioModel,
};

use crate::driver::Driver;
use crate::element::Element;
use crate::kept::{KeptAt, KeptInside};
use crate::reader::Reader;
use crate::value::unsigned32;
use crate::vocabulary::{DISK, Field, Whose, switch_from_yes_no, switch_to_yes_no};
use crate::writer::{Unwritable, Writer};
use crate::{address, blockio, driver, geometry, iotune, source, target, throttle_filters};

const AT: KeptAt = KeptAt::path("");
const BOOT: KeptAt = KeptAt::path("boot");
const ALIAS: KeptAt = KeptAt::path("alias");
const ACPI: KeptAt = KeptAt::path("acpi");
const TRANSIENT: KeptAt = KeptAt::path("transient");

/// Reads the nth disk.
pub(crate) fn read<'d>(
    reader: &mut Reader<'_>,
    node: Node<'d, 'd>,
    nth: usize,
    outer: FieldPath,
) -> (Disk, KeptInside) {
    let fields = [
        Some(Field::Disk(DiskField::Disk)),
        Some(Field::Image(ImageField::Image)),
    ];
    let whose = Whose {
        index: nth,
        depth: 0,
    };
    let mut disk = reader.open(node, &DISK, fields, outer, whose);
    let kept = &mut KeptInside::default();
    let mut frontend = Frontend::unset();
    frontend.device = disk.take("device", Device::from_wire);
    frontend.model = disk.take("model", VirtioModel::from_wire);
    frontend.rawio = disk.take("rawio", switch_from_yes_no);
    frontend.sgio = disk.take("sgio", Sgio::from_wire);
    let device = frontend.effective_device();
    let mut backend = source::read(reader, &mut disk, device, kept);
    backend.snapshot = disk.take("snapshot", Snapshot::from_wire);
    let has_format = match backend.source {
        BackendSource::Image(_) => true,
        BackendSource::VhostUser(_) | BackendSource::Empty => false,
    };
    let read_format = driver::read(
        reader,
        &mut disk,
        &mut frontend,
        &mut backend,
        has_format,
        kept,
    );
    match &mut backend.source {
        BackendSource::Image(image) => image.format = read_format,
        BackendSource::VhostUser(_) | BackendSource::Empty => {}
    }
    frontend.geometry = geometry::read(reader, &mut disk, kept);
    blockio::read(reader, &mut disk, &mut frontend, kept);
    target::read(reader, &mut disk, &mut frontend, kept);
    backend.iotune = iotune::read(reader, &mut disk, kept);
    backend.throttle_filters = throttle_filters::read(reader, &mut disk, kept);
    backend.is_read_only = read_flag(reader, &mut disk, "readonly", kept);
    backend.is_shareable = read_flag(reader, &mut disk, "shareable", kept);
    if let Some(node) = disk.child("transient") {
        let mut transient = reader.open_child(&disk, node, whose);
        backend.is_transient = true;
        backend.share_backing = transient.take("shareBacking", switch_from_yes_no);
        kept.note(TRANSIENT, reader.close(transient));
    }
    frontend.serial = read_text(reader, &mut disk, "serial", kept);
    frontend.wwn = read_text(reader, &mut disk, "wwn", kept);
    frontend.vendor = read_text(reader, &mut disk, "vendor", kept);
    frontend.product = read_text(reader, &mut disk, "product", kept);
    if let Some(node) = disk.child("boot") {
        let mut boot = reader.open_child(&disk, node, whose);
        frontend.boot_order = boot.take("order", unsigned32);
        frontend.loadparm = boot.take_text("loadparm");
        kept.note(BOOT, reader.close(boot));
    }
    if let Some(node) = disk.child("alias") {
        let mut alias = reader.open_child(&disk, node, whose);
        frontend.alias = alias.take_text("name");
        kept.note(ALIAS, reader.close(alias));
    }
    if let Some(node) = disk.child("acpi") {
        let mut acpi = reader.open_child(&disk, node, whose);
        frontend.acpi_index = acpi.take("index", unsigned32);
        kept.note(ACPI, reader.close(acpi));
    }
    frontend.address = address::read(reader, &mut disk, kept);
    kept.note(AT, reader.close(disk));
    (Disk { frontend, backend }, std::mem::take(kept))
}

/// Reads an element whose presence says it all.
fn read_flag(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_, '_>,
    name: &'static str,
    kept: &mut KeptInside,
) -> bool {
    let Some(node) = disk.child(name) else {
        return false;
    };
    let flag = reader.open_child(disk, node, disk.whose);
    kept.note(KeptAt::path(name), reader.close(flag));
    true
}

/// Reads an element that holds text; libvirt takes an empty one for none at all.
fn read_text(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_, '_>,
    name: &'static str,
    kept: &mut KeptInside,
) -> Option<String> {
    let node = disk.child(name)?;
    let element = reader.open_child(disk, node, disk.whose);
    let text = element.content();
    kept.note(KeptAt::path(name), reader.close(element));
    Some(text).filter(|text| !text.is_empty())
}

/// Writes a disk, with what was kept of it when it was read.
///
/// ```
/// use vmdisk_libvirt::{KeptInside, write_disk};
/// use vmdisk_model::{CacheMode, Disk, Format, Frontend, Image, TargetBus};
///
/// let image = Image::file("/srv/Tom's.qcow2", Format::Qcow2);
/// let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
/// disk.backend.cache = Some(CacheMode::None);
/// assert_eq!(
///     write_disk(&disk, &KeptInside::default())?,
///     "<disk type='file'>
///   <driver name='qemu' type='qcow2' cache='none'/>
///   <source file='/srv/Tom&apos;s.qcow2'/>
///   <target dev='vda' bus='virtio'/>
/// </disk>
/// "
/// );
/// # Ok::<(), vmdisk_libvirt::Unwritable>(())
/// ```
///
/// # Errors
/// If a text holds a character that XML cannot carry.
pub fn write_disk(disk: &Disk, kept: &KeptInside) -> Result<String, Unwritable> {
    let mut writer = Writer::new();
    write(&mut writer, disk, kept);
    writer.finish()
}

/// Writes a disk into a document.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, disk: &Disk, kept: &'k KeptInside) {
    let Disk { frontend, backend } = disk;
    let Frontend {
        device,
        target: _, // written by `target`, as the next five
        bus: _,
        rotation_rate: _,
        removable: _,
        tray: _,
        dpofua: _,
        model,
        rawio,
        sgio,
        ioeventfd: _, // written by `driver`, as the next nine
        event_idx: _,
        virtio: _,
        statistics: _,
        queues: _,
        queue_size: _,
        iothread: _,
        iothread_mapping: _,
        error_policy: _,
        read_error_policy: _,
        geometry,
        logical_block_size,
        physical_block_size,
        discard_granularity,
        serial,
        wwn,
        vendor,
        product,
        boot_order,
        loadparm,
        address,
        alias,
        acpi_index,
    } = frontend;
    writer.start("disk", kept.at(AT));
    let (source_type, format) = source::type_and_format(&backend.source);
    writer.attribute("type", source_type);
    writer.optional("device", *device);
    writer.optional("model", *model);
    writer.optional("rawio", rawio.map(switch_to_yes_no));
    writer.optional("sgio", *sgio);
    writer.optional("snapshot", backend.snapshot);
    let options = Driver {
        format,
        frontend,
        backend,
    };
    driver::write(writer, &options, kept);
    source::write(writer, backend, kept);
    geometry::write(writer, geometry.as_ref(), kept);
    blockio::write(
        writer,
        *logical_block_size,
        *physical_block_size,
        *discard_granularity,
        kept,
    );
    target::write(writer, frontend, kept);
    iotune::write(writer, backend.iotune.as_ref(), kept);
    throttle_filters::write(writer, &backend.throttle_filters, kept);
    for (name, is_set) in [
        ("readonly", backend.is_read_only),
        ("shareable", backend.is_shareable),
    ] {
        if is_set {
            writer.start(name, kept.at(KeptAt::path(name)));
            writer.end();
        }
    }
    if backend.is_transient {
        writer.start("transient", kept.at(TRANSIENT));
        writer.optional("shareBacking", backend.share_backing.map(switch_to_yes_no));
        writer.end();
    }
    for (name, text) in [
        ("serial", serial),
        ("wwn", wwn),
        ("vendor", vendor),
        ("product", product),
    ] {
        writer.text_element(name, text.as_ref(), kept.at(KeptAt::path(name)));
    }
    source::write_behind(writer, backend, kept);
    if boot_order.is_some() || loadparm.is_some() || !kept.at(BOOT).is_empty() {
        writer.start("boot", kept.at(BOOT));
        writer.optional("order", *boot_order);
        writer.optional("loadparm", loadparm.as_ref());
        writer.end();
    }
    if alias.is_some() || !kept.at(ALIAS).is_empty() {
        writer.start("alias", kept.at(ALIAS));
        writer.optional("name", alias.as_ref());
        writer.end();
    }
    if acpi_index.is_some() || !kept.at(ACPI).is_empty() {
        writer.start("acpi", kept.at(ACPI));
        writer.optional("index", *acpi_index);
        writer.end();
    }
    address::write(writer, address.as_ref(), kept);
    writer.end();
}
