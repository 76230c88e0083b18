//! `<disk>`: a frontend and a backend.

use vmdisk_model::{Disk, DiskField, FieldPath, ImageField};
use vmdisk_rule::reading::MISSING_VALUE;

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::vocabulary::{DISK, Field, FieldOwner};
use crate::writer::{Unwritable, Writer};
use crate::xml::Node;
use crate::{address, driver, geometry, iotune, plain, source, throttle_filters};

const AT: UnmodeledPath = UnmodeledPath::path("");

/// Reads the nth disk.
pub(crate) fn read<'d>(
    reader: &mut Reader<'_>,
    node: Node<'d>,
    nth: usize,
    outer: FieldPath,
) -> (Disk, UnmodeledContent) {
    let fields = [
        Some(Field::Disk(DiskField::Disk)),
        Some(Field::Image(ImageField::Image)),
    ];
    let owner = FieldOwner::nth(nth);
    let mut element = reader.open(node, &DISK, fields, outer, owner);
    let kept = &mut UnmodeledContent::default();
    let mut disk = Disk::default();
    plain::read_attributes(&mut element, &mut disk);
    source::read(reader, &mut element, &mut disk, kept);
    for (nth, child) in DISK.children.iter().enumerate() {
        if !element.has_row(nth) {
            continue;
        }
        match child.name {
            "driver" => driver::read(reader, &mut element, &mut disk, kept),
            "geometry" => disk.frontend.geometry = geometry::read(reader, &mut element, kept),
            "iotune" => {
                disk.backend.iotune = iotune::read(reader, &mut element, kept).map(Box::new)
            }
            "throttlefilters" => {
                disk.backend.throttle_filters = throttle_filters::read(reader, &mut element, kept);
            }
            "address" => disk.frontend.address = address::read(reader, &mut element, kept),
            // Read with the source.
            "source" | "auth" | "encryption" | "backingStore" => {}
            _ => plain::read_child(reader, &mut element, child, &mut disk, kept),
        }
    }
    if disk.frontend.target.is_none() {
        report_missing_target(reader, &element);
    }
    kept.note(AT, reader.close(element));
    (disk, std::mem::take(kept))
}

fn report_missing_target(reader: &mut Reader<'_>, disk: &Element<'_>) {
    let at = |field| FieldPath::Disk(disk.owner.index, field);
    let target = reader.map.place(at(DiskField::Target));
    let place = target.map_or(disk.tag, |place| place.span);
    let message = "the disk has no target: `<target dev=…>` is missing".to_owned();
    let rule = &MISSING_VALUE;
    reader
        .problem(rule, at(DiskField::TargetDev), place, message)
        .help = Some("name it, such as `<target dev='vda' bus='virtio'/>`".to_owned());
}

/// Writes a disk, with its kept parts from reading.
///
/// ```
/// use vmdisk_libvirt::{UnmodeledContent, write_disk};
/// use vmdisk_model::{CacheMode, Disk, Format, Frontend, Image, TargetBus};
///
/// let image = Image::file("/srv/Tom's.qcow2", Format::Qcow2);
/// let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
/// disk.backend.cache = Some(CacheMode::None);
/// assert_eq!(
///     write_disk(&disk, &UnmodeledContent::default())?,
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
/// Fails if a text contains a character that XML cannot represent.
pub fn write_disk(disk: &Disk, kept: &UnmodeledContent) -> Result<String, Unwritable> {
    let mut writer = Writer::new();
    write(&mut writer, disk, kept);
    writer.finish()
}

/// Writes a disk into a document.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, disk: &Disk, kept: &'k UnmodeledContent) {
    let Disk { frontend, backend } = disk;
    writer.start("disk", kept.at(AT));
    writer.attribute("type", source::type_of_disk(&backend.source));
    plain::write_attributes(writer, &DISK, disk, |_| false);
    for child in DISK.children {
        match child.name {
            "driver" => driver::write(writer, disk, kept),
            "source" => source::write(writer, backend, kept),
            "encryption" => source::write_behind(writer, backend, kept),
            "geometry" => geometry::write(writer, frontend.geometry.as_ref(), kept),
            "iotune" => iotune::write(writer, backend.iotune.as_deref(), kept),
            "throttlefilters" => throttle_filters::write(writer, &backend.throttle_filters, kept),
            "address" => address::write(writer, frontend.address.as_ref(), kept),
            // Written with the source.
            "auth" | "backingStore" => {}
            _ => plain::write_child(writer, child, disk, kept),
        }
    }
    writer.end();
}
