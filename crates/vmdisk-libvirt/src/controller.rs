//! `<controller>`, of the kinds that disks hang on.

use roxmltree::Node;
use vmdisk_model::{
    Controller, ControllerField, ControllerType, FieldPath, IoThreadId, ScsiControllerModel,
};

use crate::kept::{KeptAt, KeptInside};
use crate::reader::Reader;
use crate::value::unsigned32;
use crate::vocabulary::{CONTROLLER, Field, SCSI_CONTROLLER, Whose};
use crate::writer::Writer;
use crate::{address, iothread_mapping};

const AT: KeptAt = KeptAt::path("");
const DRIVER: KeptAt = KeptAt::path("driver");

/// Reads the nth controller; its type is known already.
pub(crate) fn read<'d>(
    reader: &mut Reader<'_>,
    node: Node<'d, 'd>,
    controller_type: ControllerType,
    nth: usize,
    outer: FieldPath,
) -> (Controller, KeptInside) {
    let is_scsi = controller_type == ControllerType::Scsi;
    let spec = if is_scsi {
        &SCSI_CONTROLLER
    } else {
        &CONTROLLER
    };
    let fields = [Some(Field::Controller(ControllerField::Controller)), None];
    let whose = Whose {
        index: nth,
        depth: 0,
    };
    let mut element = reader.open(node, spec, fields, outer, whose);
    let kept = &mut KeptInside::default();
    let mut controller = Controller::new(controller_type, 0);
    element.take_text("type");
    controller.index = element.take("index", unsigned32);
    if is_scsi {
        controller.scsi_model = element.take("model", ScsiControllerModel::from_wire);
    } else {
        controller.other_model = element.take_text("model");
    }
    if let Some(node) = element.child("driver") {
        let mut driver = reader.open_child(&element, node, whose);
        controller.queues = driver.take("queues", unsigned32);
        controller.cmd_per_lun = driver.take("cmd_per_lun", unsigned32);
        controller.max_sectors = driver.take("max_sectors", unsigned32);
        controller.iothread = driver.take("iothread", unsigned32).map(IoThreadId);
        controller.iothread_mapping = iothread_mapping::read(reader, &mut driver, kept);
        kept.note(DRIVER, reader.close(driver));
    }
    controller.address = address::read(reader, &mut element, kept);
    kept.note(AT, reader.close(element));
    (controller, std::mem::take(kept))
}

/// Writes a controller into a document.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, controller: &Controller, kept: &'k KeptInside) {
    let Controller {
        controller_type,
        index,
        scsi_model,
        other_model,
        queues,
        cmd_per_lun,
        max_sectors,
        iothread,
        iothread_mapping,
        address,
    } = controller;
    writer.start("controller", kept.at(AT));
    writer.attribute("type", controller_type);
    writer.optional("index", *index);
    match scsi_model {
        Some(model) => writer.attribute("model", model),
        None => writer.optional("model", other_model.as_ref()),
    }
    let is_set = queues.is_some()
        || cmd_per_lun.is_some()
        || max_sectors.is_some()
        || iothread.is_some()
        || !iothread_mapping.is_empty()
        || kept.has_within("driver", 0);
    if is_set {
        writer.start("driver", kept.at(DRIVER));
        writer.optional("queues", *queues);
        writer.optional("cmd_per_lun", *cmd_per_lun);
        writer.optional("max_sectors", *max_sectors);
        writer.optional("iothread", *iothread);
        iothread_mapping::write(writer, iothread_mapping, kept);
        writer.end();
    }
    address::write(writer, address.as_ref(), kept);
    writer.end();
}
