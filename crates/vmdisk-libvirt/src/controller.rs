//! `<controller>` elements of types that disks can be attached to.

use vmdisk_model::{Controller, ControllerField, ControllerType, FieldPath, ScsiControllerModel};

use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::vocabulary::{CONTROLLER, CONTROLLER_DRIVER, Field, FieldOwner, SCSI_CONTROLLER};
use crate::writer::{Unwritable, Writer};
use crate::xml::Node;
use crate::{address, iothread_mapping, plain};

const AT: UnmodeledPath = UnmodeledPath::path("");
const DRIVER: UnmodeledPath = UnmodeledPath::path("driver");

/// Reads the nth controller, whose type is already known.
pub(crate) fn read<'d>(
    reader: &mut Reader<'_>,
    node: Node<'d>,
    controller_type: ControllerType,
    nth: usize,
    outer: FieldPath,
) -> (Controller, UnmodeledContent) {
    let is_scsi = controller_type == ControllerType::Scsi;
    let spec = if is_scsi {
        &SCSI_CONTROLLER
    } else {
        &CONTROLLER
    };
    let fields = [Some(Field::Controller(ControllerField::Controller)), None];
    let owner = FieldOwner::nth(nth);
    let mut element = reader.open(node, spec, fields, outer, owner);
    let kept = &mut UnmodeledContent::default();
    let mut controller = Controller::new(controller_type, 0);
    element.take_known("type");
    controller.index = None;
    if is_scsi {
        controller.scsi_model = element.take("model", ScsiControllerModel::from_word);
    } else {
        controller.other_model = element.take_text("model");
    }
    plain::read_attributes(&mut element, &mut controller);
    for (row, child) in spec.children.iter().enumerate() {
        if !element.has_row(row) {
            continue;
        }
        if let ("driver", Some(node)) = (child.name, element.child("driver")) {
            let mut driver = reader.open_child(&element, node, owner);
            plain::read_attributes(&mut driver, &mut controller);
            controller.iothread_mapping = iothread_mapping::read(reader, &mut driver, kept);
            kept.note(DRIVER, reader.close(driver));
        } else if child.name != "address" {
            plain::read_child(reader, &mut element, child, &mut controller, kept);
        }
    }
    controller.address = address::read(reader, &mut element, kept);
    kept.note(AT, reader.close(element));
    (controller, std::mem::take(kept))
}

/// One `<controller>`.
///
/// # Errors
/// Fails if a name contains a character that XML cannot represent.
pub fn write_controller(controller: &Controller) -> Result<String, Unwritable> {
    let kept = UnmodeledContent::default();
    let mut writer = Writer::new();
    write(&mut writer, controller, &kept);
    writer.finish()
}

/// Writes a controller into a document.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    controller: &Controller,
    kept: &'k UnmodeledContent,
) {
    writer.start("controller", kept.at(AT));
    writer.attribute("type", controller.controller_type);
    writer.optional("index", controller.index);
    match controller.scsi_model {
        Some(model) => writer.attribute("model", model),
        None => writer.optional("model", controller.other_model.as_ref()),
    }
    writer.optional("ports", controller.ports);
    let has_driver = plain::has_attribute(&CONTROLLER_DRIVER, controller)
        || !controller.iothread_mapping.is_empty()
        || kept.has_within("driver", 0);
    for child in CONTROLLER.children {
        match child.name {
            "driver" if has_driver => {
                writer.start("driver", kept.at(DRIVER));
                plain::write_attributes(writer, &CONTROLLER_DRIVER, controller, |_| false);
                iothread_mapping::write(writer, &controller.iothread_mapping, kept);
                writer.end();
            }
            "driver" => {}
            "address" => address::write(writer, controller.address.as_ref(), kept),
            _ => plain::write_child(writer, child, controller, kept),
        }
    }
    writer.end();
}
