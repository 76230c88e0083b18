//! `<target>`: the name and bus of a disk.

use vmdisk_model::{DiskField, FieldPath, Frontend, Switch, TargetBus, Tray};
use vmdisk_source::ProblemKind;

use crate::element::Element;
use crate::kept::{KeptAt, KeptInside};
use crate::reader::Reader;
use crate::value::unsigned32;
use crate::writer::Writer;

const AT: KeptAt = KeptAt::path("target");

/// Reads the target.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    disk: &mut Element<'_, '_>,
    frontend: &mut Frontend,
    kept: &mut KeptInside,
) {
    let mut place = disk.tag;
    if let Some(node) = disk.child("target") {
        let mut target = reader.open_child(disk, node, disk.whose);
        place = target.tag;
        frontend.target = target.take("dev", |name| (!name.is_empty()).then(|| name.to_owned()));
        frontend.bus = target.take("bus", TargetBus::from_wire);
        frontend.removable = target.take("removable", Switch::from_wire);
        frontend.rotation_rate = target.take("rotation_rate", unsigned32);
        frontend.tray = target.take("tray", Tray::from_wire);
        frontend.dpofua = target.take("dpofua", Switch::from_wire);
        kept.note(AT, reader.close(target));
    }
    if frontend.target.is_none() {
        let at = FieldPath::Disk(disk.whose.index, DiskField::TargetDev);
        let message = "the disk has no target: `<target dev=…>` is missing".to_owned();
        reader
            .problem(ProblemKind::MissingValue, at, place, message)
            .help = Some("name it, such as `<target dev='vda' bus='virtio'/>`".to_owned());
    }
}

/// Writes the target.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, frontend: &Frontend, kept: &'k KeptInside) {
    let parts = kept.at(AT);
    let is_set = frontend.target.is_some()
        || frontend.bus.is_some()
        || frontend.removable.is_some()
        || frontend.rotation_rate.is_some()
        || frontend.tray.is_some()
        || frontend.dpofua.is_some();
    if !is_set && parts.is_empty() {
        return;
    }
    writer.start("target", parts);
    writer.optional("dev", frontend.target.as_ref());
    writer.optional("bus", frontend.bus);
    writer.optional("tray", frontend.tray);
    writer.optional("removable", frontend.removable);
    writer.optional("rotation_rate", frontend.rotation_rate);
    writer.optional("dpofua", frontend.dpofua);
    writer.end();
}
